// header_formats: E2M1 and UE8M0 as the CUDA headers convert where no instruction does.
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "all_inputs.cuh"

__device__ inline u32 e2m1(float x) {
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
}

__device__ inline u32 ue8m0_rp(float x) {
    return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
}

__device__ inline u32 ue8m0_rz(float x) {
    return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero);
}

EVERY_CHANGE(e2m1)
EVERY_CHANGE(ue8m0_rp)
EVERY_CHANGE(ue8m0_rz)

SAMPLES(e2m1)
SAMPLES(ue8m0_rp)
SAMPLES(ue8m0_rz)
