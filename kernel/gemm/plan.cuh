// Parts 1, 3 and 4. plan: what a kernel may be, and all that follows, with reasons.
//
// Written by fp4ref.cuda_kernel.header from fp4ref.gemm.plan. This is
// the plan of GemmConfig(); the plan of what is compiled takes its place.
#pragma once
#include "../hardware/sm.cuh"

constexpr u32 CTA_GROUP = 1;
constexpr u32 CLUSTER_M = 1;
constexpr u32 CLUSTER_N = 1;
constexpr u32 CLUSTER_SIZE = 1;
constexpr bool IN_CLUSTER = false;

#include "pipeline.cuh"

constexpr bool RASTER_ALONG_M = true;
constexpr u32 RASTER_SWIZZLE = 1;
constexpr bool TRANSPOSES = false;
constexpr u32 SPLITS = 1;
constexpr u32 MMA_M = 128;
constexpr bool OF_16_BITS = false;
constexpr u32 C_STAGES = 2;
constexpr u32 D_STAGES = 2;
constexpr u32 CLC_STAGES = 2;
constexpr u32 STORE_STAGES = 2;
constexpr bool STAGES_D = true;
constexpr bool DELAY_TMA_STORE = false;
constexpr bool ACQUIRES_AHEAD = false;
constexpr bool STORE_RELEASES_C = false;
constexpr bool WAITS_FOR_C = false;
constexpr u32 ACCUMULATOR_BARRIERS = 2;
constexpr bool OVERLAPPED = false;
constexpr u32 SCALE_BUFFERS = 2;

// 128 rows of the MMA in 1 CTAs.
constexpr u32 TILE_M = 128;
// asked: 128 columns; rows are 128 and K is 256.
constexpr u32 TILE_N = 128;
// 4 MMAs of 64.
constexpr u32 TILE_K = 256;
// MMAs of 32 bytes along K in a row of 128, the swizzle's span.
constexpr u32 K_BLOCKS = 4;
// 128 rows of D in 1 CTAs: with 64 in each, the second half of N is in lanes 64 to 127.
constexpr u32 COLUMN_PARTS = 1;
// 128 columns in 1 parts.
constexpr u32 PART_N = 128;
// asked: 32, N of CUTLASS's EpilogueTile.
constexpr u32 SUBTILE_N = 32;
// columns of D in pieces of 32: 128 / 32.
constexpr u32 SUBTILES = 4;
// 1 parts of each row.
constexpr u32 LANES = 128;
// 128 rows in boxes of 128.
constexpr u32 SUBTILE_BOXES = 1;
// those of a part of N, or the 32 of a warp that transposes or stores them.
constexpr u32 SUBTILE_BOX_ROWS = 128;
// asked: tcgen05.ld.32x32b.
constexpr u32 TMEM_LOAD_LANES = 32;
// 1 of each of the panels of 32 columns.
constexpr u32 C_BOXES = 1;
// 128 bytes of C.
constexpr u32 C_BOX_N = 32;
// 32 elements of C, at most 128 bytes.
constexpr u32 C_BOX_ROW_NBYTES = 128;
// 1 of each of the panels of 32 columns.
constexpr u32 D_BOXES = 1;
// 128 bytes of D.
constexpr u32 D_BOX_N = 32;
// 32 elements of D, at most 128 bytes.
constexpr u32 D_BOX_ROW_NBYTES = 128;
// 128 rows of B in 1 CTAs.
constexpr u32 B_ROWS = 128;
// the 1 CTAs of a row load one part each.
constexpr u32 A_PARTS = 1;
// 1 CTAs of a column in groups of 1.
constexpr u32 B_PARTS = 1;
// the 1 CTAs of a column load one part each.
constexpr u32 SFB_PARTS = 1;
// nvfp4 in kind::mxf4nvf4.
constexpr u32 A_CODE = 1;
// nvfp4 in kind::mxf4nvf4.
constexpr u32 B_CODE = 1;
// NVFP4: elements of a row of D that share a scale.
constexpr u32 SFD_VEC_SIZE = 16;
// 256 elements in atoms of 64.
constexpr u32 SF_ATOMS = 4;
// 64 elements of an atom in MMAs of K = 64.
constexpr u32 K_BLOCKS_PER_ATOM = 1;
// 128 rows in blocks of 128.
constexpr u32 SFA_BLOCKS = 1;
// 128 rows in blocks of 128.
constexpr u32 SFB_BLOCKS = 1;
// asked: None; None takes all 5 that fit.
constexpr u32 MAINLOOP_STAGES = 5;
// asked: 1; the last stage of a tile may have fewer.
constexpr u32 K_GROUP = 1;
// mma_loop='unrolled': two rounds of 5 stages if unrolled.
constexpr u32 ROUND_STAGES = 10;
// 1 for each of 10 stages.
constexpr u32 ROUND_K_TILES = 10;
// 128 rows of 128 bytes: 256 elements.
constexpr u32 A_NBYTES = 16384;
// 128 rows of 128 bytes: 256 elements.
constexpr u32 B_NBYTES = 16384;
// one byte for each of 128 rows and 16 of 256 elements.
constexpr u32 SFA_NBYTES = 2048;
// one byte for each of 128 rows and 16 of 256 elements.
constexpr u32 SFB_NBYTES = 2048;
// 36,864 in each of 1 CTAs.
constexpr u32 K_TILE_TX_BYTES = 36864;
// 128 x 32 elements of None.
constexpr u32 C_SUBTILE_NBYTES = 0;
// 0 bytes in 128 rows.
constexpr u32 C_ROW_NBYTES = 0;
// 16,384 bytes in 128 rows.
constexpr u32 D_ROW_NBYTES = 128;
// 4 for 128 rows and each atom along K.
constexpr u32 SFA_COLUMNS = 4;
// 4 for each 128 of 128 rows and each atom along K.
constexpr u32 SFB_COLUMNS = 4;
// splits=1: with more, a float32 of each of 128 threads for every TMEM column.
constexpr u32 SUMS_NBYTES = 0;
// 128 columns, less 128 if they overlap.
constexpr u32 ACCUMULATOR_STRIDE = 128;
// 128 columns apart, in pieces of 32.
constexpr u32 SUBTILES_TO_RELEASE = 4;
static_assert(MAINLOOP_STAGES >= SCALE_BUFFERS);

constexpr u32 WARP_THREADS = 32;
constexpr u32 EPILOGUE_WARPS = 4;
constexpr u32 EPILOGUE_THREADS = 128;
constexpr u32 CTA_THREADS = 256;

// The first warp of each role.
enum WarpRole : u32 { MMA = 0, SCHEDULER = 1, MAINLOOP_LOAD = 2, EPILOGUE_LOAD = 3, EPILOGUE = 4 };

enum NamedBarrierId : u32 { CTA_BARRIER = 0, EPILOGUE_BARRIER = 1, TMEM_ALLOCATION_BARRIER = 6 };

// Byte offsets from the CTA's shared base: barriers first, then buffers.
namespace smem_map {
// Where dynamic shared memory starts in practice.
constexpr u32 BASE = 1024;
constexpr u32 MAINLOOP_FULL = 0;
constexpr u32 MAINLOOP_EMPTY = 40;
constexpr u32 C_FULL = 80;
constexpr u32 C_EMPTY = 96;
constexpr u32 LOAD_ORDER = 112;
constexpr u32 CLC_FULL = 120;
constexpr u32 CLC_EMPTY = 136;
constexpr u32 ACCUMULATOR_FULL = 152;
constexpr u32 ACCUMULATOR_EMPTY = 168;
constexpr u32 THROTTLE_FULL = 184;
constexpr u32 THROTTLE_EMPTY = 200;
constexpr u32 CLC_RESPONSE = 224;
constexpr u32 TMEM_POINTER = 256;
constexpr u32 D_SUBTILE = 1024;
constexpr u32 C_SUBTILE = 33792;
constexpr u32 A = 33792;
constexpr u32 B = 115712;
constexpr u32 SFA = 197632;
constexpr u32 SFB = 207872;
constexpr u32 END = 218112;
static_assert(END <= 232448, "a CTA has 232,448 bytes");
static_assert(A % 1024 == 0 && B % 1024 == 0);  // 128-byte swizzle
}  // namespace smem_map

// TMEM columns: accumulators from 0, ACCUMULATOR_STRIDE apart, then (SFA,
// SFB) for each scale buffer. Frames 4.3 and 4.4.
namespace tmem_map {
constexpr u32 SFA = 256;
constexpr u32 SFB = 272;
constexpr u32 K_TILE = 32;  // columns of the scales of a k-tile
static_assert(SFA + SCALE_BUFFERS * K_GROUP * K_TILE <= 512, "TMEM has 512 columns");
}  // namespace tmem_map

// The rings of barriers, by name.
struct Rings {
    u32 base;

    __device__ __forceinline__ Ring<5> mainloop() const {
        return {base + smem_map::MAINLOOP_FULL, base + smem_map::MAINLOOP_EMPTY};
    }
    __device__ __forceinline__ Ring<2> c() const {
        return {base + smem_map::C_FULL, base + smem_map::C_EMPTY};
    }
    __device__ __forceinline__ u32 load_order() const {
        return base + smem_map::LOAD_ORDER;
    }
    __device__ __forceinline__ Ring<2> clc() const {
        return {base + smem_map::CLC_FULL, base + smem_map::CLC_EMPTY};
    }
    __device__ __forceinline__ Ring<2> accumulator() const {
        return {base + smem_map::ACCUMULATOR_FULL, base + smem_map::ACCUMULATOR_EMPTY};
    }
    __device__ __forceinline__ Ring<2> throttle() const {
        return {base + smem_map::THROTTLE_FULL, base + smem_map::THROTTLE_EMPTY};
    }

    // Initialise what is used. Frame 1.4; arrivals: 1.2, 1.9 and 1.10.
    __device__ __forceinline__ void init() const {
        // full: 1 by load warp, arrive.expect_tx; empty: 1 by tcgen05.commit.
        mainloop().init(1, 1);
        // full: 1 by scheduler warp, arrive.expect_tx; empty: 224 by every warp that reads tiles.
        clc().init(1, 224);
        // full: 32 by load warp; empty: 32 by scheduler warp.
        throttle().init(32, 32);
        // full: 1 by tcgen05.commit; empty: 128 by epilogue warps.
        accumulator().init(1, 128);
    }
};

// What lies behind the barriers, by name.
struct Buffers : Rings {
    __device__ __forceinline__ u32 clc_response(u32 stage) const {
        return base + smem_map::CLC_RESPONSE + stage * 16;
    }
    __device__ __forceinline__ u32 tmem_pointer() const {
        return base + smem_map::TMEM_POINTER;
    }
    __device__ __forceinline__ u32 d_subtile(u32 stage) const {
        return base + smem_map::D_SUBTILE + stage * 16384;
    }
    __device__ __forceinline__ u32 c_subtile(u32 stage) const {
        return base + smem_map::C_SUBTILE + stage * 0;
    }
    __device__ __forceinline__ u32 a(u32 stage) const {
        return base + smem_map::A + stage * 16384;
    }
    __device__ __forceinline__ u32 b(u32 stage) const {
        return base + smem_map::B + stage * 16384;
    }
    __device__ __forceinline__ u32 sfa(u32 stage) const {
        return base + smem_map::SFA + stage * 2048;
    }
    __device__ __forceinline__ u32 sfb(u32 stage) const {
        return base + smem_map::SFB + stage * 2048;
    }
};
