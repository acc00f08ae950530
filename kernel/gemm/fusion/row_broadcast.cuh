// row_broadcast: a vector of N numbers, the same for every row.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

struct RowBroadcast {
    Subtile bias;

    // Read the numbers of 32 columns; columns beyond N are 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const u32 first = e.column(work, subtile);
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j)
            bias[j] = gmem_ld(e.storage.params.bias + first + j, first + j < e.storage.params.n);
    }

    __device__ __forceinline__ float visit(const Visit& v) const { return bias[v.column]; }
};
