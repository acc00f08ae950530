// approximate: rcp, ex2 and tanh, whose bits are tables of the chip.
#include "../hardware/sm.cuh"

extern "C" __global__ void approximate(const float* in, u32 count, float* out) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out[i]) : "f"(in[i]));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out[count + i]) : "f"(in[count + i]));
    asm("tanh.approx.f32 %0, %1;" : "=f"(out[2 * count + i]) : "f"(in[2 * count + i]));
}
