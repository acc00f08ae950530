// integer_mma: one output element of a K = 64 MMA, in integers.
//
// Four groups of 16 exact products, each times its two scales, and C are added with 35 bits
// below the largest exponent and truncated once. The definition is fp4ref.numerics.dot_jit.
#pragma once
#include "../hardware/sm.cuh"

using i32 = int;
using i64 = long long;

constexpr i32 E_ZERO = -139;  // the exponent with which a zero term takes part
constexpr i32 FRACTION_BITS = 35;

// Significand in eighths, -1 for NaN, and exponent.
struct Scale {
    i32 significand, exponent;
};

__device__ __forceinline__ Scale decode_scale(u32 code, bool power_of_two) {
    if (power_of_two) return {code == 0xff ? -1 : 8, static_cast<i32>(code) - 127};
    code &= 0x7f;
    const i32 field = code >> 3, fraction = code & 7;
    if (code == 0x7f) return {-1, 0};
    return field ? Scale{fraction + 8, field - 7} : Scale{fraction, -6};
}

// Four E2M1 codes, the low 16 bits of `codes`, as bytes of twice their value.
__device__ __forceinline__ u32 decode_halves(u32 codes) {
    const u32 which = codes & 0x7777;
    const u32 positive = __byte_perm(0x03020100, 0x0c080604, which);
    const u32 negative = __byte_perm(0xfdfeff00, 0xf4f8fafc, which);
    const u32 sign = __byte_perm(0x0000ff00, 0, codes >> 3 & 0x1111);
    return positive & ~sign | negative & sign;
}

// Four products of signed bytes, and a sum.
__device__ __forceinline__ i32 dot_of_bytes(u32 a, u32 b, i32 sum) {
    return __dp4a(static_cast<i32>(a), static_cast<i32>(b), sum);
}

// One bit for each of eight codes: whether it is not zero.
__device__ __forceinline__ u32 live_codes(u32 codes) {
    return (codes | codes >> 1 | codes >> 2) & 0x11111111;
}

__device__ __forceinline__ i64 truncate_shift(i64 x, i32 distance) {
    const u64 magnitude = static_cast<u64>(x < 0 ? -x : x) >> (distance < 63 ? distance : 63);
    return x < 0 ? -static_cast<i64>(magnitude) : static_cast<i64>(magnitude);
}

// total * 2^exponent as float32, toward zero; Inf from 2^128 up, never -0.
__device__ __forceinline__ u32 round_toward_zero(i64 total, i32 exponent) {
    if (total == 0) return 0;
    const u64 magnitude = total < 0 ? -total : total;
    const i32 value = 63 - __clzll(magnitude) + exponent;
    if (value > 127) return 0x7f800000 | (total < 0 ? 0x80000000 : 0);
    const i32 kept = value > -126 ? value : -126;
    const i32 drop = kept - 23 - exponent;
    const u64 significand = drop > 0 ? magnitude >> (drop < 63 ? drop : 63) : magnitude << -drop;
    const u32 bits = (static_cast<u32>(kept + 126) << 23) + static_cast<u32>(significand);
    return total < 0 && bits ? bits | 0x80000000 : bits;
}

// D of one element: sums of products, whether a group has a product that is not zero, the
// scales, and C.
__device__ __forceinline__ u32 gst_fdpa(const i32 (&sums)[4], const bool (&live)[4],
                                        const Scale (&a)[4], const Scale (&b)[4], u32 c) {
    const i32 field = c >> 23 & 0xff, fraction = c & 0x7fffff;
    const i64 s_c = field ? fraction | 0x800000 : fraction;
    const i32 e_c = s_c ? (field ? field : 1) - 127 : E_ZERO;
    i32 e_max = e_c;
    bool is_nan = field == 0xff && fraction;
#pragma unroll
    for (u32 g = 0; g < 4; ++g) {
        const bool zero = !live[g] || a[g].significand * b[g].significand == 0;
        const i32 e = zero ? E_ZERO : a[g].exponent + b[g].exponent;
        e_max = e > e_max ? e : e_max;
        is_nan |= a[g].significand < 0 || b[g].significand < 0;
    }
    i64 total = truncate_shift((c >> 31 ? -s_c : s_c) << 12, e_max - e_c);
#pragma unroll
    for (u32 g = 0; g < 4; ++g) {
        const i64 term = sums[g] * a[g].significand * b[g].significand;
        const i32 e = a[g].exponent + b[g].exponent;
        total += truncate_shift(term << 27, e < e_max ? e_max - e : 0);
    }
    if (is_nan) return 0x7fffffff;
    return field == 0xff ? c : round_toward_zero(total, e_max - FRACTION_BITS);
}
