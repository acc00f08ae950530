// card_approximations: sums of approximate results over all inputs, one per block of 2^20.
//
// nvcc -arch=sm_90 card_approximations.cu && ./a.out sums.bin rsqrt.bin sqrt.bin
//
// sums.bin has 4096 sums for each opcode in the order of `kernels`; the other two files have
// the offset of rsqrt.approx.ftz and sqrt.approx.ftz from the rounded value for x in [1, 4).
#include <cstdint>
#include <cstdio>

using u32 = uint32_t;
using u64 = unsigned long long;

#define OF_ONE(NAME, OPCODE)                                                                  \
    __device__ u32 NAME(u32 x, u32) {                                                         \
        float d;                                                                              \
        asm(OPCODE " %0, %1;" : "=f"(d) : "f"(__uint_as_float(x)));                           \
        return __float_as_uint(d);                                                            \
    }
#define OF_TWO(NAME, OPCODE)                                                                  \
    __device__ u32 NAME(u32 a, u32 b) {                                                       \
        float d;                                                                              \
        asm(OPCODE " %0, %1, %2;"                                                             \
            : "=f"(d)                                                                         \
            : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));                              \
        return __float_as_uint(d);                                                            \
    }

OF_ONE(rsqrt_ftz, "rsqrt.approx.ftz.f32")
OF_ONE(rsqrt_plain, "rsqrt.approx.f32")
OF_ONE(sqrt_ftz, "sqrt.approx.ftz.f32")
OF_ONE(sqrt_plain, "sqrt.approx.f32")
OF_ONE(ex2_plain, "ex2.approx.f32")
OF_ONE(rcp_plain, "rcp.approx.f32")
OF_TWO(full, "div.full.f32")
OF_TWO(full_ftz, "div.full.ftz.f32")
OF_TWO(approx, "div.approx.f32")
OF_TWO(approx_ftz, "div.approx.ftz.f32")

template <u32 F(u32, u32), bool PAIRS>
__global__ void sum(u64* sums) {
    u64 total = 0;
    for (u32 i = threadIdx.x; i < 1u << 20; i += blockDim.x) {
        u32 a = blockIdx.x << 20 | i, b = 0;
        if (PAIRS) {
            u64 x = (u64(a) + 1) * 0x9E3779B97F4A7C15ull;
            x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
            x = (x ^ x >> 27) * 0x94D049BB133111EBull;
            x ^= x >> 31;
            a = u32(x), b = u32(x >> 32);
        }
        total += u64(F(a, b)) * (2ull * i + 1);
    }
    atomicAdd(sums + blockIdx.x, total);
}

template <u32 F(u32, u32), bool RECIPROCAL>
__global__ void offsets(signed char* out) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = 0x3F800000u + i;
    out[i] = int(F(x, 0) - __float_as_uint(float(RECIPROCAL ? 1 / root : root)));
}

void write(const char* name, const char* mode, const void* data, size_t nbytes) {
    FILE* file = fopen(name, mode);
    fwrite(data, 1, nbytes, file);
    fclose(file);
}

int main(int, char** names) {
    u64* sums;
    signed char* table;
    cudaMallocManaged(&sums, 8 * 4096);
    cudaMallocManaged(&table, 1 << 24);
    void (*kernels[])(u64*) = {
        sum<rsqrt_ftz, false>, sum<rsqrt_plain, false>, sum<sqrt_ftz, false>,
        sum<sqrt_plain, false>, sum<ex2_plain, false>, sum<rcp_plain, false>,
        sum<full, true>, sum<full_ftz, true>, sum<approx, true>, sum<approx_ftz, true>};
    for (auto kernel : kernels) {
        for (int i = 0; i < 4096; ++i) sums[i] = 0;
        kernel<<<4096, 256>>>(sums);
        if (cudaDeviceSynchronize() != cudaSuccess) return 1;
        write(names[1], "ab", sums, 8 * 4096);
    }
    offsets<rsqrt_ftz, true><<<1 << 16, 256>>>(table);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    write(names[2], "wb", table, 1 << 24);
    offsets<sqrt_ftz, false><<<1 << 16, 256>>>(table);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    write(names[3], "wb", table, 1 << 24);
}
