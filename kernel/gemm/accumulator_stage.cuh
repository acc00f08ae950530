// Part 6. accumulator_stage: which accumulator a stage of the ring stands for.
//
// CUTLASS's acc_stage. Overlapped accumulators have one pair of barriers, and take turns with its
// phase: a consumer's phase is the number, a producer's the opposite, because it starts with the
// other one.
#pragma once
#include "plan.cuh"

// The number of the accumulator that the MMA warp fills.
__device__ __forceinline__ u32 produced_accumulator(Stage stage) {
    return OVERLAPPED ? stage.phase ^ 1 : stage.index;
}

// The number of the accumulator that the epilogue reads.
__device__ __forceinline__ u32 consumed_accumulator(Stage stage) {
    return OVERLAPPED ? stage.phase : stage.index;
}
