// Parts 1, 3 and 4. config: the shape of every tile, and what the tensor core is given.
//
// What depends on the configuration is in plan.cuh.
#pragma once
#include "../hardware/instr_descriptor.cuh"
#include "../hardware/sm.cuh"
#include "../hardware/smem.cuh"
#include "plan.cuh"

constexpr u32 TILE_M = 128;
constexpr u32 TILE_K = 256;
constexpr u32 MMA_K = 64;
constexpr u32 K_BLOCKS = TILE_K / MMA_K;
constexpr u32 SF_VEC_SIZE = 16;
constexpr u32 SUBTILE_N = 32;  // columns of D that the epilogue handles at a time
constexpr u32 SUBTILES = TILE_N / SUBTILE_N;

constexpr u32 WARP_THREADS = 32;
constexpr u32 EPILOGUE_WARPS = 4;
constexpr u32 EPILOGUE_THREADS = EPILOGUE_WARPS * WARP_THREADS;
constexpr u32 CTA_THREADS = 8 * WARP_THREADS;

// What ends and what starts in which warp.
enum WarpRole : u32 { MMA = 0, SCHEDULER = 1, MAINLOOP_LOAD = 2, EPILOGUE_LOAD = 3, EPILOGUE = 4 };

enum NamedBarrierId : u32 { CTA_BARRIER = 0, EPILOGUE_BARRIER = 1, TMEM_ALLOCATION_BARRIER = 6 };

constexpr u32 C_ROW_NBYTES = C_SUBTILE_NBYTES / TILE_M;
constexpr u32 D_ROW_NBYTES = D_SUBTILE_NBYTES / TILE_M;

constexpr u32 SFA_COLUMNS = 4;  // TMEM columns of the scales of 128 rows and one K=64 block

// The plan was made for these tiles.
static_assert(A_NBYTES == TILE_M * TILE_K / 2 && B_NBYTES == TILE_N * TILE_K / 2);
static_assert(SFA_NBYTES == TILE_M * TILE_K / SF_VEC_SIZE);
static_assert(STAGE_TX_BYTES == A_NBYTES + B_NBYTES + SFA_NBYTES + SFB_NBYTES);
static_assert(MAINLOOP_STAGES >= SCALE_BUFFERS);
static_assert(smem_map::A % 1024 == 0 && smem_map::B % 1024 == 0);

// Instruction descriptor of the tile's MMA.
__device__ __forceinline__ constexpr u32 config_idesc(u32 scale_type) {
    return instr_descriptor_encode(TILE_M, TILE_N, scale_type);
}

constexpr u32 SWIZZLE_NONE = 0, SWIZZLE_128B = 2;  // codes of the matrix descriptor

// Matrix descriptor of an A or B stage: K-major, 128-byte swizzle, 8 rows 1024 bytes apart.
__device__ __forceinline__ constexpr u64 operand_descriptor(u32 address) {
    return smem_descriptor(address, 16, 1024, SWIZZLE_128B);
}

// Matrix descriptor of a scale atom for tcgen05.cp: rows of 16 bytes.
__device__ __forceinline__ constexpr u64 scale_descriptor(u32 address) {
    return smem_descriptor(address, 16, 128, SWIZZLE_NONE);
}

constexpr u32 K_BLOCK_STEP = MMA_K / 2 >> 4;  // 32 bytes of an operand row
constexpr u32 SF_BLOCK_STEP = 512 >> 4;       // one scale atom

// Matrix descriptors of one mainloop stage, one for each K=64 block.
struct alignas(16) StageDescriptors {
    u64 a[K_BLOCKS], b[K_BLOCKS], sfa[K_BLOCKS], sfb[K_BLOCKS];
};

struct Descriptors {
    StageDescriptors stages[MAINLOOP_STAGES];
};

__device__ constexpr Descriptors all_descriptors() {
    Descriptors all = {};
    for (u32 i = 0; i < MAINLOOP_STAGES; ++i) {
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block) {
            const u32 k = k_block * K_BLOCK_STEP, sf = k_block * SF_BLOCK_STEP;
            const u32 base = smem_map::BASE;
            StageDescriptors& stage = all.stages[i];
            stage.a[k_block] = operand_descriptor(base + smem_map::A + i * A_NBYTES) + k;
            stage.b[k_block] = operand_descriptor(base + smem_map::B + i * B_NBYTES) + k;
            stage.sfa[k_block] = scale_descriptor(base + smem_map::SFA + i * SFA_NBYTES) + sf;
            stage.sfb[k_block] = scale_descriptor(base + smem_map::SFB + i * SFB_NBYTES) + sf;
        }
    }
    return all;
}

// A constant load brings a descriptor in one instruction; building it takes two.
__constant__ constexpr Descriptors DESCRIPTORS = all_descriptors();
