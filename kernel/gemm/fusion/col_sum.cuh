// col_sum: the sum of each row, whose values are handed on.
//
// A thread adds 16 columns, and the host adds these sums, the first columns first, then the
// batches.
#pragma once
#include "partial_sums.cuh"

template <class A, auto SUMS>
struct ColSum : Unary<A> {
    Subtile values;

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        values[v.column] = v.inside ? x : 0.0f;
        return x;
    }

    // Each thread stores the sums of its row.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
#pragma unroll
        for (u32 first = 0; first < SUBTILE_N; first += SUM_BLOCK)
            store_partial(params.*SUMS, work.l, params.d_rows(), sum_blocks(params.d_columns()),
                          e.d_row(work, subtile), (e.d_column(work, subtile) + first) / SUM_BLOCK,
                          sum_of_columns(values + first));
    }
};
