// Parts 1, 3 and 4. config: tile shapes, stage counts and the maps of SMEM and TMEM.
//
// fp4ref.gemm.config.GemmConfig computes every number; they come as -D definitions, so that
// there is one source of them: see fp4ref.cuda_kernel.defines.
#pragma once
#include "../hardware/instr_descriptor.cuh"
#include "../hardware/sm.cuh"
#include "../hardware/smem.cuh"

#ifndef CONFIG_TILE_N
#error "pass the definitions of a GemmConfig: fp4ref.cuda_kernel.defines(GemmConfig())"
#endif

constexpr u32 TILE_M = 128;
constexpr u32 TILE_N = CONFIG_TILE_N;
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

enum class Format { F32, BF16, F16, NVFP4 };
enum class Activation { NONE, RELU, GELU, SILU };

constexpr Format D_FORMAT = Format::CONFIG_D_FORMAT;
constexpr Format C_FORMAT = Format::CONFIG_C_FORMAT;
constexpr Activation ACTIVATION = Activation::CONFIG_ACTIVATION;
constexpr bool SFD_UE8M0 = CONFIG_SFD_UE8M0;
constexpr bool LOADS_C = CONFIG_LOADS_C;
constexpr bool HAS_BIAS = CONFIG_BIAS;
constexpr bool SCHEDULER_IS_CLC = CONFIG_CLC;
constexpr bool RASTER_ALONG_M = CONFIG_RASTER_ALONG_M;

// float32 constants by their bits.
constexpr u32 BETA_BITS = CONFIG_BETA_BITS;
constexpr u32 NORM_CONSTANT_BITS = CONFIG_NORM_CONSTANT_BITS;

constexpr u32 MAINLOOP_STAGES = CONFIG_MAINLOOP_STAGES;
constexpr u32 C_STAGES = CONFIG_C_STAGES;
constexpr u32 D_STAGES = CONFIG_D_STAGES;
constexpr u32 CLC_STAGES = CONFIG_CLC_STAGES;
constexpr u32 ACCUMULATOR_STAGES = CONFIG_ACCUMULATOR_STAGES;
constexpr u32 SCALE_BUFFERS = CONFIG_SCALE_BUFFERS;

// Bytes of one stage. Frame 5.4.8.
constexpr u32 A_NBYTES = CONFIG_A_NBYTES;
constexpr u32 B_NBYTES = CONFIG_B_NBYTES;
constexpr u32 SFA_NBYTES = CONFIG_SFA_NBYTES;
constexpr u32 SFB_NBYTES = CONFIG_SFB_NBYTES;
constexpr u32 STAGE_TX_BYTES = CONFIG_STAGE_TX_BYTES;
constexpr u32 C_SUBTILE_NBYTES = CONFIG_C_SUBTILE_NBYTES;
constexpr u32 D_SUBTILE_NBYTES = CONFIG_D_SUBTILE_NBYTES;
constexpr u32 C_ROW_NBYTES = C_SUBTILE_NBYTES / TILE_M;
constexpr u32 D_ROW_NBYTES = D_SUBTILE_NBYTES / TILE_M;

// Threads that read each CLC answer. Frame 1.10.
constexpr u32 CLC_CONSUMERS = CONFIG_CLC_CONSUMERS;

// Byte offsets from the CTA's shared base: barriers first, then the tiles.
namespace smem_map {
constexpr u32 BASE = CONFIG_SMEM_BASE;  // where dynamic shared memory starts in practice
constexpr u32 MAINLOOP_FULL = CONFIG_SMEM_MAINLOOP_FULL;
constexpr u32 MAINLOOP_EMPTY = CONFIG_SMEM_MAINLOOP_EMPTY;
constexpr u32 C_FULL = CONFIG_SMEM_C_FULL;
constexpr u32 C_EMPTY = CONFIG_SMEM_C_EMPTY;
constexpr u32 LOAD_ORDER = CONFIG_SMEM_LOAD_ORDER;
constexpr u32 CLC_FULL = CONFIG_SMEM_CLC_FULL;
constexpr u32 CLC_EMPTY = CONFIG_SMEM_CLC_EMPTY;
constexpr u32 ACCUMULATOR_FULL = CONFIG_SMEM_ACCUMULATOR_FULL;
constexpr u32 ACCUMULATOR_EMPTY = CONFIG_SMEM_ACCUMULATOR_EMPTY;
constexpr u32 THROTTLE_FULL = CONFIG_SMEM_THROTTLE_FULL;
constexpr u32 THROTTLE_EMPTY = CONFIG_SMEM_THROTTLE_EMPTY;
constexpr u32 CLC_RESPONSE = CONFIG_SMEM_CLC_RESPONSE;
constexpr u32 TMEM_POINTER = CONFIG_SMEM_TMEM_POINTER;
constexpr u32 D = CONFIG_SMEM_D;
constexpr u32 C = CONFIG_SMEM_C;
constexpr u32 A = CONFIG_SMEM_A;
constexpr u32 B = CONFIG_SMEM_B;
constexpr u32 SFA = CONFIG_SMEM_SFA;
constexpr u32 SFB = CONFIG_SMEM_SFB;
}  // namespace smem_map

// TMEM columns: accumulators from 0, TILE_N apart, then (SFA, SFB) for each scale buffer.
// Frames 4.3 and 4.4.
namespace tmem_map {
constexpr u32 SFA = CONFIG_TMEM_SFA;
constexpr u32 SFB = CONFIG_TMEM_SFB;
constexpr u32 BUFFER = CONFIG_TMEM_BUFFER;  // columns of one scale buffer
}  // namespace tmem_map

constexpr u32 SFA_COLUMNS = 4;  // TMEM columns of the scales of 128 rows and one K=64 block
constexpr u32 SFB_COLUMNS = CONFIG_SFB_COLUMNS;

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
