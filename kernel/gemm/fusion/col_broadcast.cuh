// col_broadcast: a number for each row, the same for every column.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

template <auto VECTOR>
struct ColBroadcast : Leaf {
    float value;

    // Read the number of this thread's row; rows beyond D have 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const u32 row = e.d_row(work, subtile);
        value = gmem_ld(params.*VECTOR + row, row < params.d_rows());
    }

    __device__ __forceinline__ float visit(const Visit&) { return value; }
};
