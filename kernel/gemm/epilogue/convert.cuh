// convert: D in an element type, without scales.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/elements.cuh"
#include "epilogue_state.cuh"

template <class Element>
struct Convert {
    // Write this thread's row of the subtile. Frame 7.7.
    static __device__ __forceinline__ void write(const Epilogue& e, WorkTile, u32,
                                                 const Subtile& z, u32 buffer) {
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / Element::PER_CHUNK; ++chunk) {
            const u32 address = buffer + swizzled_offset<D_ROW_NBYTES, LANES>(e.row, chunk);
            smem_st(address, Element::encode(z + Element::PER_CHUNK * chunk));
        }
    }
};
