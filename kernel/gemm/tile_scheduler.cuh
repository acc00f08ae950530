// Part 2. tile_scheduler: which output tile next, by a static stride or by CLC.
//
// Both schedulers have one interface. With CLC the grid holds every tile; only as many CTAs as
// there are SMs start, and each takes over tiles of CTAs that never start.
#pragma once
#include "../hardware/clc.cuh"
#include "config.cuh"
#include "pipeline.cuh"

struct WorkTile {
    u32 m, n, l;
    bool valid;
};

// Output tiles of the problem; x runs along the raster dimension. Frame 2.1.
struct TileGrid {
    u32 tiles_m, tiles_n, batches;

    // Frame 2.2.
    __device__ __forceinline__ WorkTile tile(u32 x, u32 y, u32 z) const {
        return RASTER_ALONG_M ? WorkTile{x, y, z, true} : WorkTile{y, x, z, true};
    }

    __device__ __forceinline__ WorkTile tile_of_number(u32 number) const {
        if (number >= tiles_m * tiles_n * batches) return {0, 0, 0, false};
        const u32 along_x = RASTER_ALONG_M ? tiles_m : tiles_n;
        const u32 along_y = RASTER_ALONG_M ? tiles_n : tiles_m;
        return tile(number % along_x, number / along_x % along_y, number / (along_x * along_y));
    }
};

// Persistent CTAs take every gridDim-th tile.
struct StaticTileScheduler {
    TileGrid grid;
    u32 number = 0;

    __device__ __forceinline__ StaticTileScheduler(u32, TileGrid tiles) : grid(tiles) {}

    // Frame 2.2.
    __device__ __forceinline__ WorkTile initial_work() {
        number = blockIdx.x;
        return grid.tile_of_number(number);
    }

    // Frame 2.4.
    __device__ __forceinline__ WorkTile fetch_next_work() {
        number += gridDim.x;
        return grid.tile_of_number(number);
    }
};

__device__ __forceinline__ u32 clc_response(u32 base, u32 stage) {
    return base + smem_map::CLC_RESPONSE + CLC_RESPONSE_NBYTES * stage;
}

// Reads the answers that the scheduler warp asked for.
struct ClcTileScheduler {
    TileGrid grid;
    u32 base;
    Consumer<CLC_STAGES> consumer;

    __device__ __forceinline__ ClcTileScheduler(u32 shared_base, TileGrid tiles)
        : grid(tiles), base(shared_base), consumer{Rings{shared_base}.clc()} {}

    // Frame 2.2.
    __device__ __forceinline__ WorkTile initial_work() {
        return grid.tile(blockIdx.x, blockIdx.y, blockIdx.z);
    }

    // Wait for the answer, read it, give its slot back. Frames 1.10 and 2.4.
    __device__ __forceinline__ WorkTile fetch_next_work() {
        const Stage stage = consumer.wait();
        ClcResponse response;
        smem_ld(clc_response(base, stage.index), response.low, response.high);
        // The next try_cancel overwrites the slot through the async proxy.
        smem_fence_proxy_async();
        arrive_on_empty(stage);
        if (!clc_is_canceled(response)) return {0, 0, 0, false};
        const uint3 ctaid = clc_get_first_ctaid(response);
        return grid.tile(ctaid.x, ctaid.y, ctaid.z);
    }
};

template <bool CLC>
struct Scheduler {
    using type = StaticTileScheduler;
};
template <>
struct Scheduler<true> {
    using type = ClcTileScheduler;
};
using TileScheduler = Scheduler<SCHEDULER_IS_CLC>::type;

// Ask for one more tile: advance_to_next_work. Frame 1.10.
__device__ __forceinline__ void request_work(Producer<CLC_STAGES>& producer, u32 base) {
    const Stage stage = producer.acquire();
    mbarrier_arrive_expect_tx(stage.full, CLC_RESPONSE_NBYTES);
    clc_try_cancel(clc_response(base, stage.index), stage.full);
}

// Ask for a tile each time the load warp has started one. The throttle keeps the warp from
// taking tiles that another SM would do sooner.
__device__ __forceinline__ void scheduler_warp(TileScheduler scheduler,
                                               Consumer<CLC_STAGES> throttle,
                                               Producer<CLC_STAGES> producer, u32 base) {
    WorkTile work = scheduler.initial_work();
    while (work.valid) {
        arrive_on_empty(throttle.wait());
        request_work(producer, base);
        work = scheduler.fetch_next_work();
    }
    producer.tail();
}
