// hmma: mma.sync m16n8k16 with f16 operands and f32 sums; one warp per tile, row-major tiles.
#include "probe.cuh"

extern "C" __global__ void hmma(const u16* a, const u16* b, const u32* c, u32* d) {
    u32 tile = blockIdx.x, group = lane_id() / 4, pair = 2 * (lane_id() % 4);
    a += tile * 16 * 16;
    b += tile * 16 * 8;
    c += tile * 16 * 8;
    d += tile * 16 * 8;
    u32 ra[4], rb[2], rc[4], rd[4];
    for (u32 i = 0; i < 4; ++i) {
        u32 row = group + 8 * (i & 1), column = pair + 8 * (i >> 1);
        ra[i] = a[16 * row + column] | (u32)a[16 * row + column + 1] << 16;
        rc[i] = c[8 * (group + 8 * (i >> 1)) + pair + (i & 1)];
    }
    for (u32 i = 0; i < 2; ++i) {
        u32 k = pair + 8 * i;
        rb[i] = b[8 * k + group] | (u32)b[8 * (k + 1) + group] << 16;
    }
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(rd[0]), "=r"(rd[1]), "=r"(rd[2]), "=r"(rd[3])
        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(rc[0]),
          "r"(rc[1]), "r"(rc[2]), "r"(rc[3]));
    for (u32 i = 0; i < 4; ++i) d[8 * (group + 8 * (i >> 1)) + pair + (i & 1)] = rd[i];
}
