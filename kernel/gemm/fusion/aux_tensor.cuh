// aux_tensor: where a tensor of D's shape lies in global memory.
//
// Its rows are padded to whole accesses of 16 bytes. It goes by plain loads and stores, as
// CUTLASS's Sm90AuxLoad and Sm90AuxStore of no stages do: each thread has a row of the subtile,
// and an aux tensor takes no shared memory from the mainloop.
#pragma once
#include "../../hardware/gmem.cuh"
#include "node.cuh"

constexpr u32 MASK_WORDS = (SUBTILE_N + 31) / 32;  // of a row of a subtile

// Where this thread's row of the subtile begins, `bits` for each element.
__device__ __forceinline__ u64 aux_addresses(const Epilogue& e, WorkTile work, u32 subtile,
                                             u64 tensor, u32 bits) {
    const GemmParams& params = e.storage.params;
    const u32 pitch = (params.d_columns() * bits + 127) / 128 * 16;
    const u64 row = static_cast<u64>(work.l) * params.d_rows() + e.d_row(work, subtile);
    return tensor + row * pitch + e.d_column(work, subtile) * bits / 8;
}
