// col_sum: the sum of each row, whose values are handed on.
//
// A thread adds 32 columns, the first ones first, and the host adds these sums in the same
// order, then the batches.
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

    // Each thread stores the sum of its row.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        store_partial(params.*SUMS, work.l, params.d_rows(),
                      (params.d_columns() + SUM_BLOCK - 1) / SUM_BLOCK, e.d_row(work, subtile),
                      e.d_column(work, subtile) / SUM_BLOCK, sum_of_columns(values));
    }
};
