// Part 2. clc_request: asks for one more tile, or for one more cluster of tiles.
#pragma once
#include "../../hardware/clc.cuh"
#include "../shared_storage.cuh"

// Ask for one CTA: the answer comes to this one. Frame 1.10.
struct TileRequest {
    static __device__ __forceinline__ void ask(const SharedStorage& storage, Stage stage) {
        mbarrier_arrive_expect_tx(stage.full, CLC_RESPONSE_NBYTES);
        clc_try_cancel(storage.clc_response(stage.index), stage.full);
    }
};

// Ask for one cluster: the answer comes to every CTA of this one. Each of them has its own full
// barrier, which is told from here what will come. Frame 1.10.
struct ClusterRequest {
    static __device__ __forceinline__ void ask(const SharedStorage& storage, Stage stage) {
#pragma unroll
        for (u32 rank = 0; rank < CLUSTER_SIZE; ++rank)
            mbarrier_arrive_expect_tx<true>(cluster_mapa(stage.full, rank),
                                            CLC_RESPONSE_NBYTES);
        clc_try_cancel_multicast(storage.clc_response(stage.index), stage.full);
    }
};
