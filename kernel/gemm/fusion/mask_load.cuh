// mask_load: a tensor of bits, read as the numbers 1 and 0.
#pragma once
#include "aux_tensor.cuh"

template <auto TENSOR>
struct MaskLoad : Leaf {
    u32 bits;

    // Read a word of this thread's row; beyond D is 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        static_assert(SUBTILE_N == 32, "a word is a row of the subtile");
        const GemmParams& params = e.storage.params;
        const bool inside = e.d_row(work, subtile) < params.d_rows() &&
                            e.d_column(work, subtile) < params.d_columns();
        bits = 0;
        if (inside) gmem_ld_each(aux_addresses(e, work, subtile, params.*TENSOR, 1), bits);
    }

    __device__ __forceinline__ float visit(const Visit& v) {
        return static_cast<float>(bits >> v.column & 1);
    }
};
