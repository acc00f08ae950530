// Part 7. staged_tile: one accumulator becomes one tile of D, each warp for itself.
//
// Document 003's phases. A warp has its rows in halves of 128 columns: phase 1 stages the first
// one, 1B the second. While a load of 1B is under way, 2A stores rows of the first; 2B stores the
// second. No warp waits for another: the accumulator's barrier counts them.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../../hardware/tmem.cuh"
#include "../accumulator_stage.cuh"
#include "../parts.cuh"
#include "packed.cuh"
#include "staged_rows.cuh"

// Load a subtile, and meanwhile store rows of the half before. Frame 7.5.
__device__ __forceinline__ void load_beside_stores(Epilogue& e, Fusion& fusion, WorkTile work,
                                                   u32 subtile, u32 number, bool stores,
                                                   u32 before, u32 i, Subtile& acc) {
    const u32 column = number * ACCUMULATOR_STRIDE + subtile * SUBTILE_N;
    tmem_ld(e.taddr + tmem_address(e.lane, column), acc);
    walk(fusion, [&](auto& node) { node.previsit(e, work, subtile); });
    if (stores) Staging::store_part(e, work, before, i);
    tmem_wait_ld(acc);
}

// Give the accumulator back to the MMA warp. Frame 7.10.
__device__ __forceinline__ void release(Stage accumulator) {
    tcgen05_fence_before_thread_sync();
    arrive_on_empty(accumulator);
}

// Compute the formula and stage it. Frames 7.6 and 7.7.
__device__ __forceinline__ void stage_subtile(Epilogue& e, Fusion& fusion, WorkTile work,
                                              u32 subtile, const Subtile& acc, u32 half, u32 i) {
    const GemmParams& params = e.storage.params;
    const u32 first = e.d_column(work, subtile);
    const bool of_d = e.d_row(work, subtile) < params.d_rows();
    const u32 columns = of_d && params.d_columns() > first ? params.d_columns() - first : 0;
    u32 words[SUBTILE_N / 2];
#pragma unroll
    for (u32 j = 0; j < SUBTILE_N; j += 2)
        words[j / 2] = Packed<Fusion>::of_pair(fusion, {params, acc[j], j, j < columns},
                                               {params, acc[j + 1], j + 1, j + 1 < columns});
    walk(fusion, [&](auto& node) { node.reduce(e, work, subtile); });
    Staging::put(e, work, half, i, words);
    walk(fusion, [&](auto& node) { node.postreduce(e, work, subtile); });
    walk(fusion, [&](auto& node) { node.end_loop(e, work, subtile); });
}

// Turn one accumulator into D. Frames 7.2 to 7.10.
__device__ __forceinline__ void finish_staged_tile(Epilogue& e, WorkTile work) {
    const Stage accumulator = e.accumulator.wait();  // 7.4
    tcgen05_fence_after_thread_sync();
    const u32 number = consumed_accumulator(accumulator);
    const Halves halves = halves_of();
    constexpr u32 UNROLL = Loop::UNROLL;
    Fusion fusion;
    walk(fusion, [&](auto& node) { node.begin(e, work); });
    u32 half = halves.first;
#pragma unroll
    for (u32 turn = 0; turn < STORE_STAGES; ++turn) {
        if (half >= STORE_STAGES) break;
        Staging::acquire(e);
#pragma unroll UNROLL
        for (u32 i = 0; i < HALF_SUBTILES; ++i) {
            const u32 subtile = half * HALF_SUBTILES + i;
            walk(fusion, [&](auto& node) { node.begin_loop(e, work, subtile); });
            Subtile acc;
            load_beside_stores(e, fusion, work, subtile, number, turn > 0, half - halves.step, i,
                               acc);
            const bool last = half + halves.step >= STORE_STAGES && i == HALF_SUBTILES - 1;
            if (!Loop::RELEASES_LATE && last) release(accumulator);
            stage_subtile(e, fusion, work, subtile, acc, half, i);
        }
        Staging::written(e, work, half);
        half += halves.step;
    }
#pragma unroll
    for (u32 i = 0; i < HALF_SUBTILES; ++i) Staging::store_part(e, work, half - halves.step, i);
    if (Loop::RELEASES_LATE) release(accumulator);
    walk(fusion, [&](auto& node) { node.end(e, work); });
}
