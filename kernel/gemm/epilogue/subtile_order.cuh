// Part 7. subtile_order: which subtile of an accumulator is finished when.
//
// Overlapped accumulators share the last columns of the first and the first columns of the
// second. These are finished first, so that the MMA warp can go on with the other one: in the
// first accumulator subtiles run backwards.
#pragma once
#include "../plan.cuh"

// The i-th subtile of an accumulator of this number.
__device__ __forceinline__ u32 subtile_order(u32 accumulator, u32 i) {
    return OVERLAPPED && accumulator == 0 ? SUBTILES - 1 - i : i;
}
