// tensor_map: 4-bit tensors as maps of bytes, which TMA of sm_90 has.
#pragma once
#include "../hardware/sm.cuh"

// 4-bit elements that a coordinate of their map counts as one.
constexpr u32 U4_PER_COORDINATE = 2;

struct alignas(128) TensorMap {
    u64 words[16];
};
