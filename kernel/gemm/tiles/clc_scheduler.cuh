// Part 2. clc_scheduler: which tile next, by asking cluster launch control.
//
// The grid holds every tile; only as many CTAs as there are SMs start, and each takes over
// tiles of CTAs that never start. The scheduler warp asks; every working warp reads the same
// answer, which names the first CTA of a cluster.
#pragma once
#include "../../hardware/clc.cuh"
#include "../shared_storage.cuh"

// Reads the answers that the scheduler warp asked for.
struct ClcTileScheduler {
    TileGrid grid;
    Buffers buffers;
    Consumer<CLC_STAGES> consumer;

    __device__ __forceinline__ explicit ClcTileScheduler(const SharedStorage& storage)
        : grid(storage.params.grid()), buffers(storage), consumer{released_in(0, storage.clc())} {}

    // Frame 2.2.
    __device__ __forceinline__ WorkTile initial_work() {
        return grid.tile(blockIdx.x, blockIdx.y, blockIdx.z);
    }

    // Wait for the answer, read it, give its slot back. Frames 1.10 and 2.4.
    __device__ __forceinline__ WorkTile fetch_next_work() {
        const Stage stage = consumer.wait();
        ClcResponse response;
        smem_ld(buffers.clc_response(stage.index), response.low, response.high);
        // The next try_cancel overwrites the slot through the async proxy.
        smem_fence_proxy_async();
        arrive_on_empty(stage);
        if (!clc_is_canceled(response)) return {0, 0, 0, 0, false};
        const uint3 ctaid = clc_get_first_ctaid(response);
        const CtaInCluster cta;
        return grid.tile(ctaid.x + cta.m, ctaid.y + cta.n, ctaid.z);
    }
};
