// row_broadcast: a number for each column, the same for every row.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

template <auto VECTOR>
struct RowBroadcast : Leaf {
    Subtile values;

    // Read the numbers of 32 columns; columns beyond D are 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u32 first = e.d_column(work, subtile);
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j)
            values[j] = gmem_ld(params.*VECTOR + first + e.column(j),
                              first + e.column(j) < params.d_columns());
    }

    __device__ __forceinline__ float visit(const Visit& v) { return values[v.column]; }
};
