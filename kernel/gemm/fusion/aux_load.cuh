// aux_load: a tensor of D's shape, read for each element.
#pragma once
#include "../../numerics/elements.cuh"
#include "aux_tensor.cuh"

template <class Element, auto TENSOR>
struct AuxLoad : Leaf {
    Subtile values;

    // Read this thread's row, 16 bytes at a time; beyond D is 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u64 row =
            aux_addresses(e, work, subtile, params.*TENSOR, 128 / Element::PER_CHUNK);
        const bool inside = e.d_row(work, subtile) < params.d_rows();
        const u32 first = e.d_column(work, subtile);
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / Element::PER_CHUNK; ++chunk) {
            u32 words[4] = {0, 0, 0, 0};
            if (inside && first + Element::PER_CHUNK * chunk < params.d_columns())
                gmem_ld_each(row + 16 * chunk, words);
            Element::decode(words, values + Element::PER_CHUNK * chunk);
        }
    }

    __device__ __forceinline__ float visit(const Visit& v) { return values[v.column]; }
};
