// relu_mask: a bit for each value, whether ReLU leaves it, and the value is handed on.
//
// The bit is 1 of a NaN and of both zeros: it is relu(x) == x, or unordered.
#pragma once
#include "aux_tensor.cuh"

template <class A, auto TENSOR>
struct ReluMask : Unary<A> {
    u32 bits;

    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) { bits = 0; }

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        bits |= static_cast<u32>(v.inside && !(x < 0.0f)) << v.column;
        return x;
    }

    // Store a word of this thread's row.
    __device__ __forceinline__ void postreduce(Epilogue& e, WorkTile work, u32 subtile) {
        static_assert(SUBTILE_N == 32, "a word is a row of the subtile");
        const GemmParams& params = e.storage.params;
        const bool inside = e.d_row(work, subtile) < params.d_rows() &&
                            e.d_column(work, subtile) < params.d_columns();
        if (inside) gmem_st(aux_addresses(e, work, subtile, params.*TENSOR, 1), bits);
    }
};
