// Part 3. partition: tensor maps of the problem, and this tile's box of each tensor.
//
// Coordinates are element offsets, fastest dimension first. Scale factors are copied as 16-bit
// elements: 256 of them are one 512-byte atom of 128 rows and four scales.
#pragma once
#include "../layout/scale_factors.cuh"
#include "plan.cuh"
#include "params.cuh"
#include "tile_grid.cuh"

// k-tiles of the stage that starts with `k_tile`: the last stage of a tile may have fewer.
__device__ __forceinline__ u32 group_size(u32 k_tile, u32 last) {
    if constexpr (K_GROUP == 1) return 1;
    return last - k_tile < K_GROUP ? last - k_tile : K_GROUP;
}

struct Coords3 {
    u32 x, y, z;
};

struct Coords4 {
    u32 x, y, z, w;
};

// Coordinates along K of a k-tile: a stage has 128 bytes of it.
constexpr bool OPERANDS_OF_4_BITS = TILE_K == 256;
constexpr u32 TILE_K_COORDINATES = OPERANDS_OF_4_BITS ? TILE_K / U4_PER_COORDINATE : TILE_K;

// Elements of D that one coordinate of its map counts.
constexpr bool D_OF_4_BITS = D_ROW_NBYTES == SUBTILE_N / 2;
constexpr u32 D_PER_COORDINATE = D_OF_4_BITS ? U4_PER_COORDINATE : 1;

// Frame 5.4.4.
__device__ __forceinline__ Coords3 a_coords(WorkTile work, u32 k_tile) {
    return {k_tile * TILE_K_COORDINATES, work.m * TILE_M, work.l};
}

// Of a pair, of the leader's half or the peer's. Frame 5.4.5.
__device__ __forceinline__ Coords3 b_coords(WorkTile work, u32 k_tile, u32 half = 0) {
    return {k_tile * TILE_K_COORDINATES, work.n * TILE_N + half * B_ROWS, work.l};
}

// In atoms. Frame 5.4.6.
__device__ __forceinline__ Coords4 sfa_coords(WorkTile work, u32 k_tile) {
    return {0, k_tile * SF_ATOMS, work.m, work.l};
}

// The 128-row block that holds the tile. Frame 5.4.7.
__device__ __forceinline__ Coords4 sfb_coords(WorkTile work, u32 k_tile) {
    return {0, k_tile * SF_ATOMS, work.n * TILE_N / TILE_M, work.l};
}

// Corner of the nth of PARTS boxes of a stage's scales, as they follow each other in memory: cut
// along K first, then between row blocks, then inside an atom.
template <u32 PARTS, u32 BLOCKS>
__device__ __forceinline__ Coords4 part_coords(Coords4 corner, u32 nth) {
    constexpr u32 ALONG_K = PARTS < SF_ATOMS ? PARTS : SF_ATOMS;
    constexpr u32 REST = PARTS / ALONG_K;
    constexpr u32 OF_BLOCKS = REST < BLOCKS ? REST : BLOCKS;
    constexpr u32 OF_ATOM = REST / OF_BLOCKS;
    return {corner.x + nth % OF_ATOM * (ATOM_NBYTES / 2 / OF_ATOM),
            corner.y + nth / REST * (SF_ATOMS / ALONG_K),
            corner.z + nth / OF_ATOM % OF_BLOCKS * (BLOCKS / OF_BLOCKS), corner.w};
}

// Corner of a subtile's box of C or D. Frame 7.8.
//
// A box is a part of N, or the rows of a warp, which are columns of a transposed tile. Where a box
// has `box_n` columns of a longer row, the boxes of the next columns follow.
__device__ __forceinline__ Coords3 subtile_coords(WorkTile work, u32 subtile, u32 box,
                                                  u32 box_n) {
    const u32 lane = box % SUBTILE_BOXES * SUBTILE_BOX_ROWS;
    const u32 column = work.n * TILE_N + lane / TILE_M * PART_N + subtile * SUBTILE_N;
    const u32 row = work.m * TILE_M + lane % TILE_M;
    if constexpr (TRANSPOSES) return {row, column, work.l};
    return {column + box / SUBTILE_BOXES * box_n, row, work.l};
}

// Global address of the scale of (row, 16-column block) of D.
__device__ __forceinline__ u64 sfd_address(const GemmParams& params, u32 row, u32 column,
                                           u32 batch) {
    const u32 columns = params.sfd_columns();
    const u64 per_batch = sf_nbytes(params.d_rows(), columns);
    return params.sfd + batch * per_batch + sf_offset(row, column, columns);
}
