// convert: float conversions and approximations, as samples and for all 2^32 patterns.
#include "all_inputs.cuh"

__device__ inline u32 e4m3(float x) {
    u16 d;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(0.0f), "f"(x));
    return d;
}

__device__ inline u32 bf16(float x) {
    u16 d;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(d) : "f"(x));
    return d;
}

__device__ inline u32 f16(float x) {
    u16 d;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x));
    return d;
}

__device__ inline u32 rcp(float x) {
    float d;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
    return __float_as_uint(d);
}

__device__ inline u32 ex2(float x) {
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
    return __float_as_uint(d);
}

__device__ inline u32 tanh_approx(float x) {
    float d;
    asm("tanh.approx.f32 %0, %1;" : "=f"(d) : "f"(x));
    return __float_as_uint(d);
}

SAMPLES(e4m3)
SAMPLES(bf16)
SAMPLES(f16)
SAMPLES(rcp)
SAMPLES(ex2)
SAMPLES(tanh_approx)

// Pairs: which operand is in which half of the result.
extern "C" __global__ void sample_pairs(const float* in, u32* out, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += 32) {
        float a = in[2 * i], b = in[2 * i + 1];
        u16 d;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(a), "f"(b));
        out[3 * i] = d;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[3 * i + 1]) : "f"(a), "f"(b));
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[3 * i + 2]) : "f"(a), "f"(b));
    }
}

// Both bytes of every 16-bit pattern, decoded.
extern "C" __global__ void sample_decode_e4m3(u32* out, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += 32)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(out[i]) : "h"((u16)i));
}

EVERY_CHANGE(e4m3)
EVERY_CHANGE(bf16)
EVERY_CHANGE(f16)
EVERY_CHANGE(ex2)
EVERY_CHANGE(tanh_approx)

CHECKSUM(e4m3)
CHECKSUM(rcp)
CHECKSUM(ex2)
CHECKSUM(tanh_approx)

TABLE(rcp)
TABLE(ex2)
TABLE(tanh_approx)
