// Part 7. epilogue_warp: TMEM to registers, fusion, quantisation, TMA store.
//
// Four warps, 128 threads; thread t of warp w owns row 32 * (w % 4) + t, because a warp
// reaches only its own quarter of the lanes.
#pragma once
#include "cleanup.cuh"
#include "epilogue/accumulator_tail.cuh"
#include "epilogue/collective.cuh"
#include "epilogue/partial_tile.cuh"
#include "epilogue_start.cuh"
#include "tiles/work_iterator.cuh"

// Finish a tile, or hand on this CTA's share of one.
__device__ __forceinline__ void finish_work(Epilogue& e, WorkTile work) {
    if (Fixup::computes_epilogue(e, work))
        finish_tile(e, work);
    else
        hand_on_tile(e, work);
}

// Finish every tile of this CTA, or its share of one. Frame 7 ctx.
__device__ __forceinline__ void epilogue_warp(const SharedStorage& storage) {
    Epilogue e = start_epilogue(storage);  // 7.1
    WorkIterator work(storage);
    while (work.has_work()) finish_work(e, work.next_prefetch());
    accumulator_tail(storage);
    if (STAGES_D && e.issues_stores) store_tail();
    release_tail(e);
}
