// scale_factors: the 128x4 atom, where scale (row, col) of a matrix lies.
//
// An atom is 512 bytes: 128 rows and 4 scales. Atoms follow each other along the columns, then
// along the rows.
#pragma once
#include "../hardware/sm.cuh"

constexpr u32 ATOM_ROWS = 128;
constexpr u32 ATOM_NBYTES = 512;

__device__ __forceinline__ u32 sf_offset(u32 row, u32 column, u32 columns) {
    const u32 atom = row / 128 * ((columns + 3) / 4) + column / 4;
    return atom * ATOM_NBYTES + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

// Bytes of a matrix of scales, padded to whole atoms.
__device__ __forceinline__ u32 sf_nbytes(u32 rows, u32 columns) {
    return (rows + 127) / 128 * ((columns + 3) / 4) * ATOM_NBYTES;
}
