// mask_load: a tensor of bits, read as the numbers 1 and 0.
#pragma once
#include "aux_tensor.cuh"

template <auto TENSOR>
struct MaskLoad : Leaf {
    u32 bits[MASK_WORDS];

    // Read the words of this thread's row, or half a word; beyond D is 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const bool inside = e.d_row(work, subtile) < params.d_rows() &&
                            e.d_column(work, subtile) < params.d_columns();
        const u64 row = aux_addresses(e, work, subtile, params.*TENSOR, 1);
#pragma unroll
        for (u32 i = 0; i < MASK_WORDS; ++i) {
            bits[i] = 0;
            if (!inside) continue;
            if constexpr (SUBTILE_N < 32) {
                u16 half;
                gmem_ld_each(row, half);
                bits[i] = half;
            } else {
                gmem_ld_each(row + 4 * i, bits[i]);
            }
        }
    }

    __device__ __forceinline__ float visit(const Visit& v) {
        return static_cast<float>(bits[v.column / 32] >> v.column % 32 & 1);
    }
};
