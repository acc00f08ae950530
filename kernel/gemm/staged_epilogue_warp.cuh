// Part 7. staged_epilogue_warp: an epilogue whose warps bring their own rows of D.
//
// Four warps, or more of which two share the lanes of a quarter: a warp reaches only its own.
// They meet each other nowhere. Staging and loop are choices that no other epilogue has, so it is
// a role of its own.
#pragma once
#include "epilogue/accumulator_tail.cuh"
#include "epilogue/staged_tile.cuh"
#include "epilogue_start.cuh"
#include "tiles/work_iterator.cuh"

// Finish this warp's rows of every tile of this CTA. Frame 7 ctx.
__device__ __forceinline__ void staged_epilogue_warp(const SharedStorage& storage) {
    Epilogue e = start_epilogue(storage);  // 7.1
    WorkIterator work(storage);
    while (work.has_work()) finish_staged_tile(e, work.next_prefetch());
    accumulator_tail(storage);
    Staging::tail(e);
}
