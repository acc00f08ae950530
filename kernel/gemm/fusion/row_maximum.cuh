// row_maximum: the largest magnitude of each column, whose values are handed on.
//
// The bits of magnitudes are ordered as integers, so that the maximum of all warps comes of
// red.max in any order. A NaN is larger than infinity: it stays.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

template <class A, auto MAXIMA>
struct RowMaximum : Unary<A> {
    u32 sizes[SUBTILE_N];

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        const u32 size = v.inside ? __float_as_uint(fabsf(x)) : 0;
        sizes[v.column] = size;
        return x;
    }

    // Lane j gets column j's of the warp's rows.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        static_assert(SUBTILE_N == WARP_THREADS, "a lane for each column");
        u32 largest = 0;
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j) {
            const u32 of_warp = warp_max(sizes[j]);
            largest = lane_index() == j ? of_warp : largest;
        }
        const u32 column = e.d_column(work, subtile) + lane_index();
        if (column < params.d_columns()) gmem_red_max(params.*MAXIMA + 4ull * column, largest);
    }
};
