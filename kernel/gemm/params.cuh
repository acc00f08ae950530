// Part 3. params: what a launch passes to the kernel by value.
//
// The block is written from a table; what is computed from it is written by hand.
#pragma once
#include "../hardware/tensor_map.cuh"
#include "plan.cuh"
#include "split_k.cuh"
#include "tile_grid.cuh"

// Written by fp4ref.cuda_kernel.parameters from FIELDS of fp4ref.gemm.params.
struct ParameterBlock {
    TensorMap a;  // A: (K, M, L)
    TensorMap b;  // B: (K, N, L)
    TensorMap sfa;  // SFA: atoms along K, then blocks of 128 rows; zeros without
    TensorMap sfb;  // SFB: likewise
    TensorMap c;  // C: (N, M, L); zeros without C
    TensorMap d;  // D: (N, M, L); zeros without D
    u64 sfd;  // global address of the scales of D, or 0
    const float* bias;  // N numbers, or 0
    u32 m;  // rows of A and D
    u32 n;  // rows of B, columns of D
    u32 k;  // columns of A and B
    u32 l;  // batches
    float alpha;  // factor of the accumulator
    u32 scale_type;  // of A and B: 0 UE4M3, 1 UE8M0
    u64 a_address;  // global address of A: rows of K / 2 bytes
    u64 b_address;  // global address of B: likewise
    u64 workspace;  // global address of sums and locks, or 0
};

static_assert(sizeof(ParameterBlock) == 896);
static_assert(__builtin_offsetof(ParameterBlock, a) == 0);
static_assert(__builtin_offsetof(ParameterBlock, sfd) == 768);
static_assert(__builtin_offsetof(ParameterBlock, bias) == 776);
static_assert(__builtin_offsetof(ParameterBlock, m) == 784);
static_assert(__builtin_offsetof(ParameterBlock, alpha) == 800);
static_assert(__builtin_offsetof(ParameterBlock, scale_type) == 804);
static_assert(__builtin_offsetof(ParameterBlock, a_address) == 808);
// End of what is written.

// Kernel parameters: the problem and its tensor maps.
struct GemmParams : ParameterBlock {
    // Mainloop iterations of a tile. Frame 2.3.
    __device__ __forceinline__ u32 k_tiles() const { return (k + TILE_K - 1) / TILE_K; }

    // Rows of C and D in memory.
    __device__ __forceinline__ u32 d_rows() const { return TRANSPOSES ? n : m; }

    // Columns of C and D in memory: elements that lie side by side.
    __device__ __forceinline__ u32 d_columns() const { return TRANSPOSES ? m : n; }

    // Which k-tiles belong to which split.
    __device__ __forceinline__ SplitK split_k() const { return {k_tiles()}; }

    // Scales of one row of D.
    __device__ __forceinline__ u32 sfd_columns() const {
        return (d_columns() + SFD_VEC_SIZE - 1) / SFD_VEC_SIZE;
    }

    __device__ __forceinline__ TileGrid grid() const {
        return {(m + TILE_M - 1) / TILE_M, (n + TILE_N - 1) / TILE_N, l};
    }
};

static_assert(sizeof(GemmParams) == sizeof(ParameterBlock));
