// swizzle: the XOR pattern of shared-memory tiles.
//
// 16-byte chunks of a row change places by the row's number: bits 4-6 of a byte offset are
// XORed with bits 7-9 (fewer bits for narrower rows). The tile starts on a whole pattern. Rows
// longer than 128 bytes are cut into panels, each a tile of its own behind the one before.
#pragma once
#include "../hardware/sm.cuh"

constexpr u32 PANEL_NBYTES = 128;

// Offset of a 16-byte chunk in a tile of ROWS rows of ROW_NBYTES; 16 bytes have no swizzle.
template <u32 ROW_NBYTES, u32 ROWS = 0>
__device__ __forceinline__ u32 swizzled_offset(u32 row, u32 chunk) {
    constexpr u32 CHUNKS = ROW_NBYTES / 16;
    if constexpr (ROW_NBYTES > PANEL_NBYTES) {
        static_assert(ROWS > 0, "where the next panel is");
        constexpr u32 OF_PANEL = PANEL_NBYTES / 16;
        return chunk / OF_PANEL * (ROWS * PANEL_NBYTES) +
               swizzled_offset<PANEL_NBYTES, ROWS>(row, chunk % OF_PANEL);
    } else {
        static_assert(CHUNKS == 8 || CHUNKS == 4 || CHUNKS == 2 || CHUNKS == 1);
        const u32 offset = row * ROW_NBYTES + chunk * 16;
        return offset ^ (offset >> 7 & (CHUNKS - 1)) << 4;
    }
}
