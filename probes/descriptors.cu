// descriptors: which element wgmma reads where, for a shared-memory matrix descriptor.
//
// Of A, in registers, row m has a 1 in column m; so D[m][n] is B[n][m]. Shared memory is filled
// with digits of the place of each element, once for each digit, and D gives the place.
#include "probe.cuh"

constexpr u32 N = 128;
constexpr u32 IMAGE_NBYTES = 65536;
constexpr u32 FIRST = 1024;  // shared address of the dynamic shared memory

// One MMA with K of 32 bytes: D is 64 x 128, of which a thread holds 64.
#define WGMMA(NAME, TYPES, FLAGS)                                                                  \
    __device__ inline void NAME(float (&d)[64], const u32 (&a)[4], u64 b) {                        \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"                                      \
        "wgmma.mma_async.sync.aligned." TYPES " "                                                  \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "        \
        "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "    \
        "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "    \
        "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"                              \
        ", {%64, %65, %66, %67}, %68, p, " FLAGS "; }"                                             \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),      \
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),               \
          "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),            \
          "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),            \
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),            \
          "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),            \
          "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),            \
          "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),            \
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),            \
          "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]),            \
          "+f"(d[61]), "+f"(d[62]), "+f"(d[63])                                                    \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");                          \
    }
WGMMA(wgmma_f16, "m64n128k16.f32.f16.f16", "1, 1, 0")
WGMMA(wgmma_f16_mn, "m64n128k16.f32.f16.f16", "1, 1, 1")
WGMMA(wgmma_e4m3, "m64n128k32.f32.e4m3.e4m3", "1, 1")
WGMMA(wgmma_tf32, "m64n128k8.f32.tf32.tf32", "1, 1")

struct F16 {
    static constexpr u32 NBYTES = 2, DIGIT_BITS = 8, ONE = 0x3c00;
    static __device__ u32 encode(u32 digit) {
        u16 bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"((float)digit));
        return bits;
    }
};

struct E4m3 {
    static constexpr u32 NBYTES = 1, DIGIT_BITS = 4, ONE = 0x38;
    static __device__ u32 encode(u32 digit) {
        u16 bits;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.f), "f"((float)digit));
        return bits;
    }
};

struct Tf32 {
    static constexpr u32 NBYTES = 4, DIGIT_BITS = 8, ONE = 0x3f800000;
    static __device__ u32 encode(u32 digit) { return __float_as_uint((float)digit); }
};

// The elements of A that a register of this thread holds, of row m: a 1 in column m.
template <class Type>
__device__ void one_hot(u32 (&a)[4]) {
    constexpr u32 EACH = 4 / Type::NBYTES;
    const u32 warp = threadIdx.x / 32, group = lane_id() / 4, place = lane_id() % 4;
    for (u32 i = 0; i < 4; ++i) {
        const u32 row = 16 * warp + group + 8 * (i & 1);
        const u32 column = EACH * (place + 4 * (i >> 1));
        a[i] = 0;
        for (u32 j = 0; j < EACH; ++j)
            if (column + j == row) a[i] = Type::ONE << 8 * Type::NBYTES * j;
    }
}

// One descriptor for each CTA; `window`: bytes from the first to the image. Out: K x N places.
template <class Type, class Multiply>
__device__ void measure(const u64* descriptors, const u32* windows, u16* out, Multiply multiply) {
    constexpr u32 EACH = 4 / Type::NBYTES, K = 32 / Type::NBYTES;
    constexpr u32 ELEMENTS = IMAGE_NBYTES / Type::NBYTES;
    if (dynamic_base() != FIRST) __trap();
    const u32 image = FIRST + windows[blockIdx.x];
    u32 a[4], place[64] = {};
    one_hot<Type>(a);
    for (u32 shift = 0; ELEMENTS >> shift > 0; shift += Type::DIGIT_BITS) {
        for (u32 word = threadIdx.x; word < IMAGE_NBYTES / 4; word += 128) {
            u32 value = 0;
            for (u32 j = 0; j < EACH; ++j) {
                const u32 digit = (EACH * word + j) >> shift & ((1 << Type::DIGIT_BITS) - 1);
                value |= Type::encode(digit) << 8 * Type::NBYTES * j;
            }
            st_shared(image + 4 * word, value);
        }
        fence_proxy_async();
        __syncthreads();
        float d[64] = {};
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, a, descriptors[blockIdx.x]);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        for (u32 i = 0; i < 64; ++i) place[i] |= (u32)d[i] << shift;
        __syncthreads();
    }
    for (u32 i = 0; i < 64; ++i) {
        const u32 row = 16 * (threadIdx.x / 32) + lane_id() / 4 + 8 * (i >> 1 & 1);
        const u32 column = 8 * (i / 4) + 2 * (lane_id() % 4) + (i & 1);
        if (row < K) out[(blockIdx.x * K + row) * N + column] = place[i];
    }
}

#define MEASURE(NAME, TYPE, MULTIPLY)                                                    \
    extern "C" __global__ void __launch_bounds__(128)                                              \
        NAME(const u64* descriptors, const u32* windows, u16* out) {                               \
        measure<TYPE>(descriptors, windows, out, MULTIPLY);                              \
    }
MEASURE(f16_k_major, F16, wgmma_f16)
MEASURE(f16_mn_major, F16, wgmma_f16_mn)
MEASURE(e4m3_k_major, E4m3, wgmma_e4m3)
MEASURE(tf32_k_major, Tf32, wgmma_tf32)
