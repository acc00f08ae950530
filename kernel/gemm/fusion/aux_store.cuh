// aux_store: a value is stored in a tensor of its own, and handed on.
//
// The tensor has the value converted, round to nearest even; the node that takes the value has it
// as it was.
#pragma once
#include "../../numerics/elements.cuh"
#include "aux_tensor.cuh"

template <class A, class Element, auto TENSOR>
struct AuxStore : Unary<A> {
    Subtile values;

    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        return values[v.column] = this->a.visit(v);
    }

    // Store this thread's row, 16 bytes at a time; what is beyond a row is padding.
    __device__ __forceinline__ void postreduce(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u64 row =
            aux_addresses(e, work, subtile, params.*TENSOR, 128 / Element::PER_CHUNK);
        if (e.d_row(work, subtile) >= params.d_rows()) return;
        const u32 first = e.d_column(work, subtile);
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / Element::PER_CHUNK; ++chunk)
            if (first + Element::PER_CHUNK * chunk < params.d_columns())
                gmem_st(row + 16 * chunk, Element::encode(values + Element::PER_CHUNK * chunk));
    }
};
