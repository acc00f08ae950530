// relu_mask: a bit for each value, whether ReLU leaves it, and the value is handed on.
//
// The bit is 1 of a NaN and of both zeros: it is relu(x) == x, or unordered.
#pragma once
#include "aux_tensor.cuh"

template <class A, auto TENSOR>
struct ReluMask : Unary<A> {
    u32 bits[MASK_WORDS];

    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) {
#pragma unroll
        for (u32 i = 0; i < MASK_WORDS; ++i) bits[i] = 0;
    }

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        bits[v.column / 32] |= static_cast<u32>(v.inside && !(x < 0.0f)) << v.column % 32;
        return x;
    }

    // Store the words of this thread's row, or half a word.
    __device__ __forceinline__ void postreduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const bool inside = e.d_row(work, subtile) < params.d_rows() &&
                            e.d_column(work, subtile) < params.d_columns();
        if (!inside) return;
        const u64 row = aux_addresses(e, work, subtile, params.*TENSOR, 1);
        if constexpr (SUBTILE_N < 32) {
            gmem_st(row, static_cast<u16>(bits[0]));
        } else {
#pragma unroll
            for (u32 i = 0; i < MASK_WORDS; ++i) gmem_st(row + 4 * i, bits[i]);
        }
    }
};
