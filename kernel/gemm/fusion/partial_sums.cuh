// partial_sums: sums of blocks of 16 rows or columns, and where they are stored.
//
// A block is added as halves: its first eight to its last eight, the first four of these sums to
// the others, and so on. Each block of D has one sum, so no order of tiles or warps can change it;
// the host adds the blocks up in their order. What lies outside D adds +0.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

constexpr u32 SUM_BLOCK = 16;
static_assert(SUBTILE_N % SUM_BLOCK == 0 && WARP_THREADS % SUM_BLOCK == 0);

// Blocks of 16 among the rows or columns of D.
__device__ __forceinline__ u32 sum_blocks(u32 extent) {
    return (extent + SUM_BLOCK - 1) / SUM_BLOCK;
}

// Add a row's numbers of a block.
__device__ __forceinline__ float sum_of_columns(const float* values) {
    float total[SUM_BLOCK];
#pragma unroll
    for (u32 j = 0; j < SUM_BLOCK; ++j) total[j] = values[j];
#pragma unroll
    for (u32 half = SUM_BLOCK / 2; half > 0; half /= 2)
#pragma unroll
        for (u32 j = 0; j < half; ++j) total[j] = add_f32(total[j], total[j + half]);
    return total[0];
}

// Add the numbers of 16 lanes as a butterfly, 8 lanes apart, then 4, 2 and 1.
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
