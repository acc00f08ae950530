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

    // Of 32 columns lane j gets the j-th one's of the warp's rows.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        constexpr u32 COLUMNS = SUBTILE_N < WARP_THREADS ? SUBTILE_N : WARP_THREADS;
#pragma unroll
        for (u32 first = 0; first < SUBTILE_N; first += COLUMNS) {
            u32 largest = 0;
#pragma unroll
            for (u32 j = 0; j < COLUMNS; ++j) {
                const u32 of_warp = warp_max(sizes[first + j]);
                largest = lane_index() == j ? of_warp : largest;
            }
            const u32 column = e.d_column(work, subtile) + first + lane_index();
            const bool inside = lane_index() < COLUMNS && column < params.d_columns();
            if (inside) gmem_red_max(params.*MAXIMA + 4ull * column, largest);
        }
    }
};
