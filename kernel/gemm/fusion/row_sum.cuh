// row_sum: the sum of each column, whose values are handed on.
//
// The lanes of a warp add 32 rows as a butterfly, and the host adds these sums, the first
// rows first, then the batches.
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

    // Lane j stores column j's sum of the warp's rows.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        float sum = 0.0f;
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j) {
            const float of_warp = sum_of_lanes(values[j]);
            sum = lane_index() == j ? of_warp : sum;
        }
        store_partial(params.*SUMS, work.l, (params.d_rows() + SUM_BLOCK - 1) / SUM_BLOCK,
                      params.d_columns(), e.d_row(work, subtile) / SUM_BLOCK,
                      e.d_column(work, subtile) + lane_index(), sum);
    }
};
