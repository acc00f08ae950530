// swizzle: the XOR pattern of shared-memory tiles.
//
// 16-byte chunks of a row change places by the row's number: bits 4-6 of a byte offset are
// XORed with bits 7-9 (fewer bits for narrower rows). The tile starts on a whole pattern.
#pragma once
#include "../hardware/sm.cuh"

// Offset of a 16-byte chunk in a tile whose rows are ROW_NBYTES: 128, 64, 32 or 16 (no swizzle).
template <u32 ROW_NBYTES>
__device__ __forceinline__ u32 swizzled_offset(u32 row, u32 chunk) {
    constexpr u32 CHUNKS = ROW_NBYTES / 16;
    static_assert(CHUNKS == 8 || CHUNKS == 4 || CHUNKS == 2 || CHUNKS == 1);
    const u32 offset = row * ROW_NBYTES + chunk * 16;
    return offset ^ (offset >> 7 & (CHUNKS - 1)) << 4;
}
