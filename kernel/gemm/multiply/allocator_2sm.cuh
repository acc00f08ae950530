// Part 4. allocator_2sm: TMEM of a pair.
#pragma once
#include "../../hardware/tmem.cuh"
#include "../shared_storage.cuh"

// CUTLASS's TMEM::Allocator2Sm: a warp of each CTA of the pair.
struct Allocator2Sm {
    const SharedStorage& storage;

    // The address is written at `pointer` in this CTA. Frame 4.2.
    __device__ __forceinline__ void alloc(u32 pointer, u32 columns) const {
        tmem_alloc<2>(pointer, columns);
    }

    // No more will be asked for. Frame 8.2.
    __device__ __forceinline__ void relinquish() const { tmem_relinquish_alloc_permit<2>(); }

    // Free the columns once the peer has done with its own: its epilogue may still read what the
    // leader's MMAs wrote. Frames 8.4 and 8.5.
    __device__ __forceinline__ void free(u32 taddr, u32 columns) const {
        const u32 own = storage.tmem_dealloc();
        mbarrier_arrive<true>(cluster_mapa(own, storage.cta.peer()));
        mbarrier_try_wait<true>(own, 0);
        tmem_dealloc<2>(taddr, columns);
    }
};
