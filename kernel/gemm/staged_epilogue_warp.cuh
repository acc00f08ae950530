// Part 7. staged_epilogue_warp: an epilogue whose warps bring their own rows of D.
//
// Four warps, or more of which two share the lanes of a quarter: a warp reaches only its own.
// They meet each other nowhere.
#pragma once
#include "../hardware/named_barrier.cuh"
#include "epilogue/accumulator_tail.cuh"
#include "epilogue/staged_tile.cuh"
#include "tiles/work_iterator.cuh"

// Finish this warp's rows of every tile of this CTA. Frame 7 ctx.
__device__ __forceinline__ void staged_epilogue_warp(const SharedStorage& storage) {
    init_barriers(storage);
    named_barrier_sync(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);  // 7.1
    const u32 lane = WARP_THREADS * (warp_index() % QUARTERS);
    Epilogue e = {storage,
                  smem_ld(storage.tmem_pointer()),
                  {released_in(storage.cta.leader(), storage.accumulator())},
                  {storage.c()},
                  lane,
                  lane + lane_index(),
                  warp_index() == EPILOGUE};
    WorkIterator work(storage);
    while (work.has_work()) finish_staged_tile(e, work.next_prefetch());
    accumulator_tail(storage);
    Staging::tail(e);
}
