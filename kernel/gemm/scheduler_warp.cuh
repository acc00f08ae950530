// Part 2. scheduler_warp: asks for tiles by cluster launch control.
#pragma once
#include "tiles/scheduler_work_iterator.cuh"

// Serve every role of this CTA's cluster that needs tiles.
__device__ __forceinline__ void scheduler_warp(const SharedStorage& storage) {
    init_barriers(storage);
    if (!storage.cta.is_first()) return;
    SchedulerWorkIterator work(storage);
    while (work.has_work()) {
        work.signal_and_advance();
        work.next();
    }
    work.drain();
}
