// convert: E2M1 and UE8M0, by the kernel's own wrappers.
//
// Eight floats make a word of E2M1 codes; of the first four of the same floats, without their
// signs, two words of BF16 are made, by way of UE8M0, rounded up.
#include "../hardware/cvt.cuh"

extern "C" __global__ void convert(const float* in, u32 count, u32* out) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x[8];
    for (u32 j = 0; j < 8; ++j) x[j] = in[i * 8 + j];
    const u16 low = cvt_ue8m0x2(fabsf(x[0]), fabsf(x[1]));
    const u16 high = cvt_ue8m0x2(fabsf(x[2]), fabsf(x[3]));
    out[i] = cvt_e2m1x8(x);
    out[count + i] = static_cast<u32>(high) << 16 | low;
    out[2 * count + 2 * i] = cvt_bf16x2(low);
    out[2 * count + 2 * i + 1] = cvt_bf16x2(high);
}
