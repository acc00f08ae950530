// tmem_scales: where the scales of the 128x4 atom sit in tensor memory.
//
// Row r is in lane r % 32 of every lane quarter, column r / 32 of its atom.
#pragma once
#include "../hardware/sm.cuh"

// Columns to add to the SFB address: an odd tile of 64 starts in the middle of an atom.
// Frame 6.3.
__device__ __forceinline__ u32 sfb_column_shift(u32 tile_n, u32 n_tile) {
    return n_tile * tile_n % 128 / 32;
}
