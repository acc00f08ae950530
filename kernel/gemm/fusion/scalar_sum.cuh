// scalar_sum: the sum of all values, which are handed on.
//
// A thread adds 32 columns, the first ones first, and the lanes of a warp add these sums as
// a butterfly. The host adds the blocks, first along a row, then the rows, then the batches.
#pragma once
#include "partial_sums.cuh"

template <class A, auto SUMS>
struct ScalarSum : Unary<A> {
    Subtile values;

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        values[v.column] = v.inside ? x : 0.0f;
        return x;
    }

    // One lane stores the warp's sum.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const float sum = sum_of_lanes(sum_of_columns(values));
        if (lane_index() != 0) return;
        store_partial(params.*SUMS, work.l, (params.d_rows() + SUM_BLOCK - 1) / SUM_BLOCK,
                      (params.d_columns() + SUM_BLOCK - 1) / SUM_BLOCK,
                      e.d_row(work, subtile) / SUM_BLOCK, e.d_column(work, subtile) / SUM_BLOCK,
                      sum);
    }
};
