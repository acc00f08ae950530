// The recipes once more, from their formulas and not from fp4ref: scalars in C++, with the
// conversions of NVIDIA's own headers. Compile with -ffp-contract=off.
#include <cmath>
#include <cstdint>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

namespace {

const int8_t *reciprocal_table;
const float kMax = 3.402823466e38f;

uint32_t bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
float of_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }

float rcp(float x) {  // rcp.approx.ftz.f32: the rounded quotient and a measured offset
    if (std::isnan(x)) return of_bits(0x7fffffff);
    const uint32_t u = bits(x), sign = u & 0x80000000u;
    if (std::isinf(x)) return of_bits(sign);
    if ((u & 0x7f800000u) == 0) return of_bits(sign | 0x7f800000u);
    const uint32_t near = bits(1.0f / x) + reciprocal_table[u & 0x7fffff];
    return (near & 0x7f800000u) == 0 ? of_bits(sign) : of_bits(near);
}

uint8_t e2m1(float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }
uint8_t e4m3(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }
float from_e4m3(uint8_t b) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(b, __NV_E4M3)));
}
float from_e8m0(uint8_t b) {
    return b == 255 ? NAN : b == 0 ? of_bits(0x00400000u) : of_bits(uint32_t(b) << 23);
}
float from_e2m1(uint8_t code) {
    const float value[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -value[code & 7] : value[code & 7];
}
float least(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }
float most(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
uint8_t below_zero(float scaled, uint8_t code) { return (code & 7) | (scaled < 0 ? 8 : 0); }

struct Problem {
    const float *x; int vec; float S, g; bool one_level, ue8m0; int type; float range;
    float largest;  // what S follows from; 0 where S was given
    float amax; uint8_t *code, *scale;
};

void multiply(Problem &p, float factor) {
    for (int i = 0; i < p.vec; i++) p.code[i] = e2m1(p.x[i] * factor);
}

void cutlass(Problem &p) {
    const float wanted = p.amax * (p.S * (1.0f / 6.0f));
    if (p.ue8m0) {
        *p.scale = __nv_cvt_float_to_e8m0(wanted, __NV_SATFINITE, cudaRoundPosInf);
        multiply(p, least(p.S * (1.0f / from_e8m0(*p.scale)), kMax));
    } else {
        *p.scale = e4m3(wanted);
        multiply(p, least(p.S * (1.0f / from_e4m3(*p.scale)), kMax));
    }
}

void transformer_engine(Problem &p) {
    *p.scale = e4m3(least(p.amax * (p.S * (1.0f / 6.0f)), kMax));
    multiply(p, least(1.0f / (from_e4m3(*p.scale) * (1.0f / p.S)), kMax));
}

void trtllm(Problem &p) {
    const float wanted = p.S * (p.amax * rcp(6.0f));
    float narrow;
    if (p.ue8m0) {
        *p.scale = __nv_cvt_float_to_e8m0(wanted, __NV_SATFINITE, cudaRoundPosInf);
        narrow = from_e8m0(*p.scale);
    } else {
        *p.scale = e4m3(wanted);
        narrow = from_e4m3(*p.scale);
    }
    multiply(p, wanted != 0 ? rcp(narrow * rcp(p.S)) : 0.0f);
}

void flashinfer(Problem &p) {
    if (p.ue8m0) {
        const float wanted = p.amax * rcp(6.0f);
        const uint8_t code = __nv_cvt_float_to_e8m0(wanted, __NV_SATFINITE, cudaRoundPosInf);
        *p.scale = code;
        multiply(p, wanted != 0 ? (code == 0 ? 1.0f : exp2f(127.0f - code)) : 0.0f);
        return;
    }
    *p.scale = e4m3(p.S * (p.amax * rcp(6.0f)));
    multiply(p, p.amax != 0 ? rcp(from_e4m3(*p.scale) * rcp(p.S)) : 0.0f);
}

void flashinfer_exact(Problem &p) {
    *p.scale = e4m3(p.amax != 0 ? p.amax * (p.S * (1.0f / 6.0f)) : 0.0f);
    multiply(p, p.amax != 0 ? 1.0f / (from_e4m3(*p.scale) * (1.0f / p.S)) : 0.0f);
}

void vllm(Problem &p) {
    if (p.ue8m0) {
        const uint32_t raised = (bits(p.amax) + (1u << 21)) & 0xff800000u;
        const uint32_t biased = (raised >> 23) & 0xffu;
        uint32_t code = biased > 2u ? biased - 2u : 0u;
        if (code > 254u) code = 254u;
        *p.scale = code;
        const float scale = of_bits(code << 23);
        multiply(p, scale != 0 ? 1.0f / scale : 0.0f);
        return;
    }
    *p.scale = e4m3(p.S * (p.amax * rcp(6.0f)));
    const float scale = from_e4m3(*p.scale);
    multiply(p, scale != 0 ? rcp(scale * rcp(p.S)) : 0.0f);
}

void torchao(Problem &p) {
    float wanted = p.amax / 6.0f;
    if (!p.one_level) wanted /= p.g;
    *p.scale = e4m3(least(most(wanted, 0.015625f), 448.0f));
    const float scale = from_e4m3(*p.scale);
    const float factor = p.one_level ? 1.0f / scale : (1.0f / p.g) / scale;
    for (int i = 0; i < p.vec; i++)
        p.code[i] = e2m1(least(most(p.x[i] * factor, -6.0f), 6.0f));
}

void divide(Problem &p, float divisor, bool by_bf16 = false) {
    for (int i = 0; i < p.vec; i++) {
        float scaled = p.x[i] / divisor;
        if (by_bf16) scaled = __bfloat162float(__float2bfloat16_rn(scaled));
        p.code[i] = below_zero(scaled, e2m1(scaled));
    }
}

void modelopt(Problem &p) {
    float wanted = p.amax / (6.0f * p.g);
    if (wanted == 0) wanted = 1.0f;
    *p.scale = e4m3(most(wanted, 0.001953125f));
    divide(p, from_e4m3(*p.scale) * p.g);
}

void modelopt_static(Problem &p) {
    const float largest = p.g * 2688.0f;
    float wanted = p.amax / 6.0f;
    if (wanted == 0) wanted = 1.0f;
    wanted = wanted * 448.0f / (largest / 6.0f);
    *p.scale = e4m3(least(most(wanted, 0.001953125f), 448.0f));
    divide(p, from_e4m3(*p.scale) * p.g);
}

void compressed_tensors(Problem &p, bool by_bf16) {
    float sixth = p.amax / 6.0f;
    if (p.type == 1) sixth = __half2float(__float2half_rn(sixth));
    if (p.type == 2) sixth = __bfloat162float(__float2bfloat16_rn(sixth));
    uint8_t code = e4m3(least(p.S * sixth, 448.0f));
    if (code == 0) code = 0x20;
    *p.scale = code;
    divide(p, from_e4m3(code) / p.S, by_bf16);
}

float four_or_six(Problem &p, float wanted, bool squares) {
    *p.scale = e4m3(least(wanted, 448.0f));
    const float scale = from_e4m3(*p.scale);
    const float factor = least(1.0f / (scale * (1.0f / p.S)), kMax);
    const float denominator = 6.0f * p.range;
    const float behind = p.one_level ? denominator : denominator / p.S;
    const float largest = p.largest > 0 ? p.largest : behind;
    float error = 0;
    for (int i = 0; i < p.vec; i++) {
        p.code[i] = e2m1(p.x[i] * factor);
        float value = from_e2m1(p.code[i]) * scale;
        value = value * largest;
        value = value / denominator;
        const float d = value - p.x[i];
        error = error + (squares ? d * d : fabsf(d));
    }
    return error;
}

void four_over_six(Problem &p, bool squares) {
    const float base = (p.amax / 6.0f) * p.S;
    const float error4 = four_or_six(p, base * 1.5f, squares);
    uint8_t codes4[64], scale4 = *p.scale;
    memcpy(codes4, p.code, p.vec);
    if (error4 < four_or_six(p, base, squares)) {
        memcpy(p.code, codes4, p.vec);
        *p.scale = scale4;
    }
}

void mx(Problem &p, const char *mode) {
    int code = 255;
    if (!strcmp(mode, "rceil")) {
        const float wanted = p.amax * (1.0f / 6.0f);
        if (std::isfinite(wanted))
            code = __nv_cvt_float_to_e8m0(wanted, __NV_SATFINITE, cudaRoundPosInf);
    } else if (std::isfinite(p.amax)) {
        int exponent = 0;  // amax = fraction * 2^exponent, fraction in [1/2, 1)
        const double fraction = frexp(double(p.amax), &exponent);
        int power = exponent - 1;
        if (!strcmp(mode, "even") && fraction >= 0.875) power += 1;
        if (!strcmp(mode, "ceil") && fraction != 0.5) power += 1;
        // Numbers below 2^-126 have no exponent of their own in float32.
        if (p.amax < 1.17549435e-38f) power = -127 + (!strcmp(mode, "ceil") && p.amax > 0);
        if (!strcmp(mode, "even") && p.amax < 1.17549435e-38f)
            power = bits(p.amax) + (1u << 21) >= 0x00800000u ? -126 : -127;
        code = power > 127 && !strcmp(mode, "even") ? 255 : power - 2 + 127;
        if (code < 0) code = 0;
    }
    *p.scale = code;
    if (code == 255) {
        for (int i = 0; i < p.vec; i++) p.code[i] = 7;
        return;
    }
    for (int i = 0; i < p.vec; i++) p.code[i] = e2m1(float(ldexp(double(p.x[i]), 127 - code)));
}

bool one(const char *name, Problem &p) {
    const auto is = [&](const char *other) { return !strcmp(name, other); };
    if (is("cutlass")) cutlass(p);
    else if (is("transformer_engine")) transformer_engine(p);
    else if (is("transformer_engine_2d")) transformer_engine(p);  // of 16 x 16 elements
    else if (is("trtllm")) trtllm(p);
    else if (is("flashinfer")) flashinfer(p);
    else if (is("flashinfer_exact")) flashinfer_exact(p);
    else if (is("vllm")) vllm(p);
    else if (is("torchao")) torchao(p);
    else if (is("modelopt")) modelopt(p);
    else if (is("modelopt_static")) modelopt_static(p);
    else if (is("compressed_tensors")) compressed_tensors(p, false);
    else if (is("compressed_tensors_bf16")) compressed_tensors(p, true);
    else if (!strncmp(name, "four_over_six_mae", 17)) four_over_six(p, false);
    else if (!strncmp(name, "four_over_six_mse", 17)) four_over_six(p, true);
    else if (!strncmp(name, "mx_", 3)) mx(p, name + 3);
    else return false;
    return true;
}

}  // namespace

extern "C" int quantise(
    const char *name, const float *x, int64_t blocks, int vec, float S, float g,
    int one_level, int ue8m0, int type, float range, float largest, int drop, const int8_t *table,
    uint8_t *codes, uint8_t *scales
) {
    reciprocal_table = table;
    for (int64_t b = 0; b < blocks; b++) {
        Problem p{x + b * vec, vec, S, g, one_level != 0, ue8m0 != 0, type, range, largest, 0.0f,
                  codes + b * vec, scales + b};
        bool number = false;
        float amax = 0;
        for (int i = 0; i < vec; i++) {
            const float m = fabsf(p.x[i]);
            if (std::isnan(m)) { if (!drop) amax = NAN; continue; }
            number = true;
            if (m > amax) amax = m;
        }
        p.amax = number ? amax : NAN;
        if (!one(name, p)) return 0;
    }
    return 1;
}
