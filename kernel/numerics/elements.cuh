// elements: the table of number formats, and of the blocks that share a scale.
//
// Here only those that C, D and aux tensors can have: 16 bytes of memory from and to float32.
#pragma once
#include "formats.cuh"

// One word is one element.
struct F32 {
    static constexpr u32 PER_CHUNK = 4;

    static __device__ __forceinline__ void decode(const u32 (&chunk)[4], float* to) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) to[i] = from_bits(chunk[i]);
    }
    static __device__ __forceinline__ const float* encode(const float* from) { return from; }
};

// One word is a pair.
struct BF16 {
    static constexpr u32 PER_CHUNK = 8;

    static __device__ __forceinline__ void decode(const u32 (&chunk)[4], float* to) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) decode_bf16(chunk[i], to[2 * i], to[2 * i + 1]);
    }
    static __device__ __forceinline__ u32x4 encode(const float* from) {
        return {encode_bf16(from[0], from[1]), encode_bf16(from[2], from[3]),
                encode_bf16(from[4], from[5]), encode_bf16(from[6], from[7])};
    }
};

struct F16 {
    static constexpr u32 PER_CHUNK = 8;

    static __device__ __forceinline__ void decode(const u32 (&chunk)[4], float* to) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) decode_f16(chunk[i], to[2 * i], to[2 * i + 1]);
    }
    static __device__ __forceinline__ u32x4 encode(const float* from) {
        return {encode_f16(from[0], from[1]), encode_f16(from[2], from[3]),
                encode_f16(from[4], from[5]), encode_f16(from[6], from[7])};
    }
};

// One word is four; ENCODE and DECODE are of a pair.
template <u16 (*ENCODE)(float, float), void (*DECODE)(u16, float&, float&)>
struct OfEightBits {
    static constexpr u32 PER_CHUNK = 16;

    static __device__ __forceinline__ void decode(const u32 (&chunk)[4], float* to) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            const u16 pair = static_cast<u16>(chunk[i / 2] >> 16 * (i % 2));
            DECODE(pair, to[2 * i], to[2 * i + 1]);
        }
    }
    static __device__ __forceinline__ u32 word(const float* x) {
        return ENCODE(x[0], x[1]) | static_cast<u32>(ENCODE(x[2], x[3])) << 16;
    }
    static __device__ __forceinline__ u32x4 encode(const float* from) {
        return {word(from), word(from + 4), word(from + 8), word(from + 12)};
    }
};

using E4M3 = OfEightBits<encode_ue4m3, decode_ue4m3>;
using E5M2 = OfEightBits<encode_e5m2, decode_e5m2>;

// Scales of blocks: two codes in a word's low half, the first one low.
struct UE4M3 {
    // Encode, and give 1 / scale.
    static __device__ __forceinline__ u16 encode(const float (&x)[2], float (&reciprocal)[2]) {
        const u16 codes = encode_ue4m3(x[0], x[1]);
        decode_ue4m3(codes, reciprocal[0], reciprocal[1]);
        reciprocal[0] = div_f32(1.0f, reciprocal[0]);
        reciprocal[1] = div_f32(1.0f, reciprocal[1]);
        return codes;
    }
};

struct UE8M0 {
    // Encode, and give 1 / scale.
    static __device__ __forceinline__ u16 encode(const float (&x)[2], float (&reciprocal)[2]) {
        const u16 codes = encode_ue8m0(x[0], x[1]);
        // 1 / 2^(c - 127) has code 254 - c; 0xff, NaN, wraps to 0xff.
        const u32 low = 254 - (codes & 0xff) & 0xff, high = 254 - (codes >> 8) & 0xff;
        decode_ue8m0(static_cast<u16>(high << 8 | low), reciprocal[0], reciprocal[1]);
        return codes;
    }
};
