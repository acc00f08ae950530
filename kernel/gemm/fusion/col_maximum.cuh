// col_maximum: the largest magnitude of each row, whose values are handed on.
//
// The bits of magnitudes are ordered as integers, so that the maximum of all warps comes of
// red.max in any order. A NaN is larger than infinity: it stays.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

template <class A, auto MAXIMA>
struct ColMaximum : Unary<A> {
    u32 largest;

    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) { largest = 0; }

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        const u32 size = v.inside ? __float_as_uint(fabsf(x)) : 0;
        largest = size > largest ? size : largest;
        return x;
    }

    // Each thread has a row.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u32 row = e.d_row(work, subtile);
        if (row < params.d_rows()) gmem_red_max(params.*MAXIMA + 4ull * row, largest);
    }
};
