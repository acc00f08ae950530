// Part 3. tensor_map: the CUtensorMap, its encode rules and its 128 bytes.
//
// The host encodes it; the kernel only passes its address.
#pragma once
#include "sm.cuh"

// 4-bit elements that a coordinate of their map counts as one.
constexpr u32 U4_PER_COORDINATE = 1;

struct alignas(128) TensorMap {
    u64 words[16];
};
