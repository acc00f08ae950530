// stochastic: E2M1 with given random bits, four floats and a word of bits to 16 bits.
#include "../hardware/sm.cuh"

extern "C" __global__ void stochastic(const float* in, u32 count, u32* out) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const u32 bits = __float_as_uint(in[4 * count + i]);
    u16 codes;
    asm("cvt.rs.satfinite.e2m1x4.f32 %0, {%1, %2, %3, %4}, %5;"
        : "=h"(codes)
        : "f"(in[4 * i + 3]), "f"(in[4 * i + 2]), "f"(in[4 * i + 1]), "f"(in[4 * i]), "r"(bits));
    out[i] = codes;
}
