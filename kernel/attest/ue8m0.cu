// ue8m0: floats of either sign to UE8M0, four to a word: rounded down, then rounded up.
#include "../hardware/sm.cuh"

__device__ __forceinline__ u32 down(float first, float second) {
    u16 codes;
    asm("cvt.rz.satfinite.ue8m0x2.f32 %0, %2, %1;" : "=h"(codes) : "f"(first), "f"(second));
    return codes;
}

__device__ __forceinline__ u32 up(float first, float second) {
    u16 codes;
    asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %2, %1;" : "=h"(codes) : "f"(first), "f"(second));
    return codes;
}

extern "C" __global__ void ue8m0(const float* in, u32 count, u32* out) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float* x = in + 4 * i;
    out[i] = down(x[2], x[3]) << 16 | down(x[0], x[1]);
    out[count + i] = up(x[2], x[3]) << 16 | up(x[0], x[1]);
}
