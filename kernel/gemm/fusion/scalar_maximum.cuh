// scalar_maximum: the largest magnitude of all values, which are handed on.
//
// The bits of magnitudes are ordered as integers, so that the maximum of all warps comes of
// red.max in any order. A NaN is larger than infinity: it stays.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

template <class A, auto MAXIMA>
struct ScalarMaximum : Unary<A> {
    u32 largest;

    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) { largest = 0; }

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        const u32 size = v.inside ? __float_as_uint(fabsf(x)) : 0;
        largest = size > largest ? size : largest;
        return x;
    }

    // The warp's maximum goes into the one number.
    __device__ __forceinline__ void reduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u32 of_warp = warp_max(largest);
        if (lane_index() == 0) gmem_red_max(params.*MAXIMA, of_warp);
    }
};
