// scalar_sum: the sum of all values, which are handed on.
//
// A thread adds 16 columns, and 16 lanes add these sums. The host adds the blocks, first along a
// row, then the rows, then the batches.
#pragma once
#include "partial_sums.cuh"

template <class A, auto SUMS, bool M_MAJOR = false>
struct ScalarSum : Unary<A> {
    Subtile values;

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        values[v.column] = v.inside ? x : 0.0f;
        return x;
    }

    // Where D lies in rows of M the lanes are its columns, which are added first.
    static __device__ __forceinline__ float sum_of_block(float* block) {
        if constexpr (!M_MAJOR) return sum_of_lanes(sum_of_columns(block));
#pragma unroll
        for (u32 j = 0; j < SUM_BLOCK; ++j) block[j] = sum_of_lanes(block[j]);
        return sum_of_columns(block);
    }

    // The first of 16 lanes stores the sum of their rows.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
#pragma unroll
        for (u32 first = 0; first < SUBTILE_N; first += SUM_BLOCK) {
            const float sum = sum_of_block(values + first);
            if (lane_index() % SUM_BLOCK == 0)
                store_partial(params.*SUMS, work.l, sum_blocks(params.d_rows()),
                              sum_blocks(params.d_columns()), e.d_row(work, subtile) / SUM_BLOCK,
                              (e.d_column(work, subtile) + first) / SUM_BLOCK, sum);
        }
    }
};
