// integer_elements: one output element of an MMA of 8- and 16-bit elements, in integers.
//
// The products and C are truncated, each on its own, 25 bits below the largest exponent, and
// added. The definition is fp4ref.numerics.dot_unscaled_jit.
#pragma once
#include "integer_mma.cuh"

constexpr i32 INFINITE = 1 << 12;  // the exponent of Inf and, with a significand of 0, of NaN
constexpr i32 SPECIAL = INFINITE / 2;
constexpr i32 ELEMENT_FRACTION_BITS = 25;
constexpr i32 ELEMENT_E_ZERO = -133;

// Element = significand * 2^(exponent - mantissa bits).
struct Term {
    i32 significand, exponent;
};

struct ElementFormat {
    u32 exponent_bits, mantissa_bits;
    bool has_inf;
    bool has_nan = true;  // without Inf the last code of the largest exponent
};

// By the type code of an instruction descriptor.
__device__ __forceinline__ ElementFormat element_format(u32 nbytes, u32 type) {
    if (type > (nbytes == 2 ? 1 : 5) || type == 2) __trap();
    if (nbytes == 2) return type ? ElementFormat{8, 7, true} : ElementFormat{5, 10, true};
    if (type == 3) return {2, 3, false, false};
    if (type == 4) return {3, 2, false, false};
    if (type == 5) return {2, 1, false, false};
    return type ? ElementFormat{5, 2, true} : ElementFormat{4, 3, false};
}

// The elements of 16 bytes. Of 6 and 4 bits 16 lie packed at the start.
template <u32 COUNT>
__device__ __forceinline__ void chunk_codes(u32x4 v, ElementFormat of, u32 (&codes)[COUNT]) {
    constexpr u32 STEP = 128 / COUNT;
    const u32 words[4] = {v.x, v.y, v.z, v.w};
    const u64 low = static_cast<u64>(v.y) << 32 | v.x, high = static_cast<u64>(v.w) << 32 | v.z;
    const u32 width = 1 + of.exponent_bits + of.mantissa_bits;
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
        codes[i] = words[i * STEP / 32] >> i * STEP % 32;
        const u32 at = i * width;
        if (width == STEP) continue;
        const u64 rest = at < 64 && at + width > 64 ? high << (64 - at) : 0;
        codes[i] = static_cast<u32>(at < 64 ? low >> at | rest : high >> (at - 64));
    }
}

__device__ __forceinline__ Term decode_element(u32 code, ElementFormat of, bool negate) {
    const i32 last = (1 << of.exponent_bits) - 1, ones = (1 << of.mantissa_bits) - 1;
    const i32 field = code >> of.mantissa_bits & last, fraction = code & ones;
    const bool negative = (code >> (of.exponent_bits + of.mantissa_bits) & 1) != negate;
    Term term = {field ? fraction | (ones + 1) : fraction, (field ? field : 1) - (last >> 1)};
    if (field == last && of.has_inf) term = {fraction == 0, INFINITE};
    if (field == last && !of.has_inf && of.has_nan && fraction == ones) term = {0, INFINITE};
    return {negative ? -term.significand : term.significand, term.exponent};
}

__device__ __forceinline__ Term decode_c(u32 c) {
    const i32 field = c >> 23 & 0xff, fraction = c & 0x7fffff;
    Term term = {field ? fraction | 0x800000 : fraction, (field ? field : 1) - 127};
    if (field == 0xff) term = {fraction == 0, INFINITE};
    return {c >> 31 ? -term.significand : term.significand, term.exponent};
}

// D where a term is Inf or NaN; a product of Inf and zero is NaN.
template <u32 K>
__device__ __forceinline__ u32 add_special(const Term (&a)[K], const Term (&b)[K], Term c) {
    bool nan = c.exponent > SPECIAL && c.significand == 0;
    bool plus = c.exponent > SPECIAL && c.significand > 0;
    bool minus = c.exponent > SPECIAL && c.significand < 0;
#pragma unroll
    for (u32 k = 0; k < K; ++k) {
        if (a[k].exponent + b[k].exponent <= SPECIAL) continue;
        const i32 product = a[k].significand * b[k].significand;
        nan |= product == 0;
        plus |= product > 0;
        minus |= product < 0;
    }
    if (nan || (plus && minus)) return 0x7fffffff;
    return plus ? 0x7f800000 : 0xff800000;
}

template <u32 K>
__device__ __forceinline__ u32 t_fdpa(const Term (&a)[K], const Term (&b)[K], u32 product_bits,
                                      u32 c_bits) {
    const Term c = decode_c(c_bits);
    i32 e_max = c.significand || c.exponent > SPECIAL ? c.exponent : ELEMENT_E_ZERO;
#pragma unroll
    for (u32 k = 0; k < K; ++k) {
        const i32 e = a[k].exponent + b[k].exponent;
        const bool zero = a[k].significand * b[k].significand == 0 && e <= SPECIAL;
        e_max = max(e_max, zero ? ELEMENT_E_ZERO : e);
    }
    if (e_max > SPECIAL) return add_special(a, b, c);
    i64 total = truncate_shift(static_cast<i64>(c.significand) << (ELEMENT_FRACTION_BITS - 23),
                               max(e_max - c.exponent, 0));
#pragma unroll
    for (u32 k = 0; k < K; ++k) {
        const i64 product = a[k].significand * b[k].significand;
        const i32 distance = e_max - a[k].exponent - b[k].exponent;
        total += truncate_shift(product << (ELEMENT_FRACTION_BITS - product_bits),
                                max(distance, 0));
    }
    return round_toward_zero(total, e_max - ELEMENT_FRACTION_BITS);
}
