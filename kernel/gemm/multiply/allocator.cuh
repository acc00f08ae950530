// Part 4. allocator: TMEM of one CTA.
#pragma once
#include "../../hardware/tmem.cuh"
#include "../shared_storage.cuh"

// CUTLASS's TMEM::Allocator1Sm.
struct Allocator1Sm {
    const SharedStorage& storage;

    // The address is written at `pointer`. Frame 4.2.
    __device__ __forceinline__ void alloc(u32 pointer, u32 columns) const {
        tmem_alloc<1>(pointer, columns);
    }

    // No more will be asked for. Frame 8.2.
    __device__ __forceinline__ void relinquish() const { tmem_relinquish_alloc_permit<1>(); }

    // Frame 8.5.
    __device__ __forceinline__ void free(u32 taddr, u32 columns) const {
        tmem_dealloc<1>(taddr, columns);
    }
};
