// Part 1. config: the tile, and what is asked of the kernel. It computes nothing.
//
// What follows from a configuration is in plan.cuh.
#pragma once
#include "../hardware/instr_descriptor.cuh"
#include "../hardware/sm.cuh"
#include "plan.cuh"

constexpr u32 TILE_M = 128;
constexpr u32 TILE_K = 256;
constexpr u32 MMA_K = 64;
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
