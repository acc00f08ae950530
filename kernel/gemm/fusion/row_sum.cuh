// row_sum: the sum of each column, whose values are handed on.
//
// The lanes of a warp add 16 rows, and the host adds these sums, the first rows first, then the
// batches.
#pragma once
#include "partial_sums.cuh"

template <class A, auto SUMS>
struct RowSum : Unary<A> {
    Subtile values;

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        values[v.column] = v.inside ? x : 0.0f;
        return x;
    }

    // Of 16 columns lane j stores the j-th one's sum of its 16 lanes.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u32 lane = lane_index() % SUM_BLOCK;
#pragma unroll
        for (u32 first = 0; first < SUBTILE_N; first += SUM_BLOCK) {
            float sum = 0.0f;
#pragma unroll
            for (u32 j = 0; j < SUM_BLOCK; ++j) {
                const float of_lanes = sum_of_lanes(values[first + j]);
                sum = lane == j ? of_lanes : sum;
            }
            store_partial(params.*SUMS, work.l, sum_blocks(params.d_rows()), params.d_columns(),
                          e.d_row(work, subtile) / SUM_BLOCK,
                          e.d_column(work, subtile) + first + lane, sum);
        }
    }
};
