// partial_sums: sums of a warp's 32 rows and 32 columns, and where they are stored.
//
// Each block of D has one sum, so no order of tiles or warps can change it; the host adds the
// blocks up in their order. What lies outside D adds +0.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

constexpr u32 SUM_BLOCK = 32;
static_assert(SUBTILE_N == SUM_BLOCK && WARP_THREADS == SUM_BLOCK);

// Add a row's values, the first ones first.
__device__ __forceinline__ float sum_of_columns(const Subtile& values) {
    float total = values[0];
#pragma unroll
    for (u32 j = 1; j < SUBTILE_N; ++j) total = add_f32(total, values[j]);
    return total;
}

// Add the lanes' values as a butterfly: 16 lanes apart, then 8, 4, 2 and 1.
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
    for (u32 mask = SUM_BLOCK / 2; mask > 0; mask /= 2)
        value = add_f32(value, warp_xor(value, mask));
    return value;
}

// Store a sum at a row and a column of (L, rows, columns); none beyond them.
__device__ __forceinline__ void store_partial(u64 sums, u32 batch, u32 rows, u32 columns, u32 row,
                                              u32 column, float sum) {
    const u64 index = (static_cast<u64>(batch) * rows + row) * columns + column;
    if (row < rows && column < columns) gmem_st(sums + 4 * index, __float_as_uint(sum));
}
