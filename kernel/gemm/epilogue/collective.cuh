// Part 7. collective: one accumulator becomes one tile of D.
//
// The order of CUTLASS's collective epilogue: for each subtile load, visit the formula, store,
// with the callbacks of the formula's nodes around each. The accumulator is released right after
// the last load that the next but one tile waits for, before that subtile is stored.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../../hardware/tmem.cuh"
#include "../accumulator_stage.cuh"
#include "direct_writer.cuh"
#include "fragment.cuh"
#include "subtile_order.cuh"
#include "tile_writer.cuh"

// Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5.
__device__ __forceinline__ void load_accumulator(const Epilogue& e, u32 accumulator,
                                                 u32 subtile, Subtile& acc) {
    const u32 column = accumulator * ACCUMULATOR_STRIDE + subtile * SUBTILE_N;
    load_fragment(e.taddr + tmem_address(e.lane, column), acc);
}

// The formula of every element; `z` comes in as the accumulator. Frame 7.6.
//
// What lies outside D becomes +0, so that it cannot reach a block scale.
__device__ __forceinline__ void fuse(const Epilogue& e, Fusion& fusion, WorkTile work, u32 subtile,
                                     Subtile& z) {
    const GemmParams& params = e.storage.params;
    const u32 first = e.d_column(work, subtile);
    const u32 columns = params.d_columns() > first ? params.d_columns() - first : 0;
#pragma unroll
    for (u32 j = 0; j < SUBTILE_N; ++j) {
        const u32 of_row = e.d_row(work, subtile, j) < params.d_rows() ? columns : 0;
        const bool inside = e.column(j) < of_row;
        const float x = fusion.visit({params, z[j], j, inside});
        z[j] = inside ? x : 0.0f;
    }
}

// Wait for a stage that holds a tile, and for its splits.
__device__ __forceinline__ Stage wait_for_accumulator(Epilogue& e, WorkTile work) {
    const Stage accumulator = e.accumulator.wait();  // 7.4
    tcgen05_fence_after_thread_sync();
    Fixup::wait(e, work);
    return accumulator;
}

// Take the i-th subtile of an accumulator and its other splits.
__device__ __forceinline__ void take_subtile(const Epilogue& e, WorkTile work, Stage accumulator,
                                             u32 number, u32 i, Subtile& acc) {
    const u32 subtile = subtile_order(number, i);
    load_accumulator(e, number, subtile, acc);
    if (i == SUBTILES_TO_RELEASE - 1) {  // 7.10
        tcgen05_fence_before_thread_sync();
        arrive_on_empty(accumulator);
    }
    Fixup::load_add(e, work, subtile, acc);
}

// Turn one accumulator into D. Frames 7.2 to 7.10.
__device__ __forceinline__ void finish_tile(Epilogue& e, WorkTile work) {
    const Stage accumulator = wait_for_accumulator(e, work);
    const u32 number = consumed_accumulator(accumulator);
    e.load_wait = load_wait_state(e.store);
    Fusion fusion;
    walk(fusion, [&](auto& node) { node.begin(e, work); });
#pragma unroll 1
    for (u32 i = 0; i < SUBTILES; ++i) {
        const u32 subtile = subtile_order(number, i);
        walk(fusion, [&](auto& node) { node.begin_loop(e, work, subtile); });
        Subtile z;
        take_subtile(e, work, accumulator, number, i, z);
        ElementWise::place(e, z);
        walk(fusion, [&](auto& node) { node.previsit(e, work, subtile); });
        if constexpr (WAITS_FOR_C) synchronize();
        fuse(e, fusion, work, subtile, z);
        if (DELAY_TMA_STORE && i > 0) send_subtile(e, fusion, work, subtile_order(number, i - 1));
        walk(fusion, [&](auto& node) { node.reduce(e, work, subtile); });
        if constexpr (STAGES_D)
            store_subtile(e, fusion, work, subtile, z);
        else
            leave_subtile(e, fusion, work, subtile, z);
        walk(fusion, [&](auto& node) { node.end_loop(e, work, subtile); });
    }
    if constexpr (DELAY_TMA_STORE)
        send_subtile(e, fusion, work, subtile_order(number, SUBTILES - 1));
    walk(fusion, [&](auto& node) { node.end(e, work); });
}
