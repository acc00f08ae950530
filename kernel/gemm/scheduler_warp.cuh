// Part 2. scheduler_warp: asks for tiles by cluster launch control.
#pragma once
#include "tiles/work_iterator.cuh"

// Ask for one more tile: advance_to_next_work. Frame 1.10.
__device__ __forceinline__ void request_work(const SharedStorage& storage,
                                             Producer<CLC_STAGES>& clc) {
    const Stage stage = clc.acquire();
    ClcRequest::ask(storage, stage);
}

// Ask for a tile each time the load warp has started one. The throttle keeps the warp from
// taking tiles that another SM would do sooner.
__device__ __forceinline__ void request_tiles(const SharedStorage& storage, WorkIterator work,
                                              Consumer<CLC_STAGES> throttle,
                                              Producer<CLC_STAGES> clc) {
    while (work.has_work()) {
        arrive_on_empty(throttle.wait());
        request_work(storage, clc);
        work.next();
    }
    clc.tail();
}

// Serve every role of this CTA's cluster that needs tiles.
__device__ __forceinline__ void scheduler_warp(const SharedStorage& storage) {
    init_barriers(storage);
    if (!storage.cta.is_first()) return;
    request_tiles(storage, WorkIterator(storage), {storage.throttle()}, {storage.clc()});
}
