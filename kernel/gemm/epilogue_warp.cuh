// Part 7. epilogue_warp: TMEM to registers, fusion, quantisation, TMA store.
//
// Four warps, 128 threads; thread t of warp w owns row 32 * (w % 4) + t, because a warp
// reaches only its own quarter of the lanes. The accumulator is released right after the last
// load from it, before the last subtile is stored.
#pragma once
#include "../hardware/gmem.cuh"
#include "../hardware/tcgen05.cuh"
#include "../hardware/tma.cuh"
#include "../hardware/tmem.cuh"
#include "../layout/swizzle.cuh"
#include "../numerics/activation.cuh"
#include "../numerics/formats.cuh"
#include "../numerics/quantize.cuh"
#include "cleanup.cuh"
#include "shared_storage.cuh"

// One epilogue thread's registers.
struct Epilogue {
    const SharedStorage& storage;
    u32 taddr;
    Consumer<ACCUMULATOR_STAGES> accumulator;
    Consumer<C_STAGES> c;
    u32 lane;            // first TMEM lane, and first row of the tile, of this warp
    u32 row;             // this thread's row of the tile
    bool issues_stores;  // whether this is the warp that talks to TMA
    u32 d_stage = 0;
};

using Subtile = float[SUBTILE_N];  // one row of it

// Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5.
__device__ __forceinline__ void load_accumulator(const Epilogue& e, Stage accumulator,
                                                 u32 subtile, Subtile& acc) {
    const u32 column = accumulator.index * TILE_N + subtile * SUBTILE_N;
    tmem_ld(e.taddr + tmem_address(e.lane, column), acc);
    tmem_wait_ld(acc);
}

// Read this thread's row of the next C subtile, if C is loaded.
__device__ __forceinline__ void load_c(Epilogue& e, Subtile& c) {
    if constexpr (LOADS_C) {
        const Stage stage = e.c.wait();
        const u32 source = e.storage.c_subtile(stage.index);
#pragma unroll
        for (u32 chunk = 0; chunk < C_ROW_NBYTES / 16; ++chunk) {
            const u32 address = source + swizzled_offset<C_ROW_NBYTES>(e.row, chunk);
            if constexpr (C_FORMAT == Format::F32) {
                smem_ld(address, c + 4 * chunk);
            } else {
                u32x4 v;
                smem_ld(address, v);
                const u32 pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (u32 i = 0; i < 4; ++i) {
                    float* to = c + 8 * chunk + 2 * i;
                    if constexpr (C_FORMAT == Format::BF16)
                        decode_bf16(pairs[i], to[0], to[1]);
                    else
                        decode_f16(pairs[i], to[0], to[1]);
                }
            }
        }
        // The next load of C overwrites the stage through the async proxy.
        smem_fence_proxy_async();
        arrive_on_empty(stage);
    } else {
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j) c[j] = 0.0f;
    }
}

// Read the bias of 32 columns; columns beyond N are 0.
__device__ __forceinline__ void load_bias(const Epilogue& e, WorkTile work, u32 subtile,
                                          Subtile& bias) {
    if constexpr (HAS_BIAS) {
        const u32 first = work.n * TILE_N + subtile * SUBTILE_N;
#pragma unroll
        for (u32 j = 0; j < SUBTILE_N; ++j)
            bias[j] = gmem_ld(e.storage.params.bias + first + j, first + j < e.storage.params.n);
    }
}

// activation(beta * C + (alpha * acc + bias)). Frame 7.6.
//
// alpha * acc is one rounding, or one fma with the bias; beta * C is always an fma, also with
// beta 0, where C is +0: it turns -0 into +0. What lies outside D becomes +0, so that it
// cannot reach a block scale.
__device__ __forceinline__ void fuse(const Epilogue& e, WorkTile work, u32 subtile,
                                     const Subtile& c, const Subtile& bias, Subtile& z) {
    const GemmParams& params = e.storage.params;
    const u32 first = work.n * TILE_N + subtile * SUBTILE_N;
    const u32 columns = params.n > first ? params.n - first : 0;
    const u32 inside = work.m * TILE_M + e.row < params.m ? columns : 0;
#pragma unroll
    for (u32 j = 0; j < SUBTILE_N; ++j) {
        float x = z[j];
        if constexpr (HAS_BIAS)
            x = fma_f32(params.alpha, x, bias[j]);
        else
            x = mul_f32(params.alpha, x);
        x = fma_f32(from_bits(BETA_BITS), c[j], x);
        if constexpr (ACTIVATION == Activation::RELU) x = relu(x);
        if constexpr (ACTIVATION == Activation::GELU) x = gelu(x);
        if constexpr (ACTIVATION == Activation::SILU) x = silu(x);
        z[j] = j < inside ? x : 0.0f;
    }
}

// Write two SFD bytes of this row, in the 128x4 layout. Frame 7.7.
//
// Rows beyond M are written too: the buffer is padded to whole atoms, and its padding must
// be 0.
__device__ __forceinline__ void store_scales(const Epilogue& e, WorkTile work, u32 subtile,
                                             u16 scales) {
    const GemmParams& params = e.storage.params;
    const u32 column = (work.n * TILE_N + subtile * SUBTILE_N) / SF_VEC_SIZE;
    if (column * SF_VEC_SIZE / ATOM_K >= (params.n + ATOM_K - 1) / ATOM_K) return;
    gmem_st(sfd_address(params, work.m * TILE_M + e.row, column, work.l), scales);
}

// Convert to D's format and write this row of the subtile; for NVFP4 also store SFD.
// Frame 7.7.
__device__ __forceinline__ void quantize(const Epilogue& e, WorkTile work, u32 subtile,
                                         const Subtile& z, u32 buffer) {
    if constexpr (D_FORMAT == Format::F32) {
#pragma unroll
        for (u32 chunk = 0; chunk < D_ROW_NBYTES / 16; ++chunk)
            smem_st(buffer + swizzled_offset<D_ROW_NBYTES>(e.row, chunk), z + 4 * chunk);
    } else if constexpr (D_FORMAT == Format::NVFP4) {
        u32 codes[4];
        const u16 scales = quantize_blocks<SFD_UE8M0>(z, from_bits(NORM_CONSTANT_BITS), codes);
        store_scales(e, work, subtile, scales);
        smem_st(buffer + swizzled_offset<D_ROW_NBYTES>(e.row, 0),
                {codes[0], codes[1], codes[2], codes[3]});
    } else {
#pragma unroll
        for (u32 chunk = 0; chunk < D_ROW_NBYTES / 16; ++chunk) {
            u32 pairs[4];
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const float* from = z + 8 * chunk + 2 * i;
                pairs[i] = D_FORMAT == Format::BF16 ? encode_bf16(from[0], from[1])
                                                    : encode_f16(from[0], from[1]);
            }
            smem_st(buffer + swizzled_offset<D_ROW_NBYTES>(e.row, chunk),
                    {pairs[0], pairs[1], pairs[2], pairs[3]});
        }
    }
}

// Write one subtile of D through shared memory, and SFD directly. Frame 7.9.
__device__ __forceinline__ void store_subtile(Epilogue& e, WorkTile work, u32 subtile,
                                              const Subtile& z) {
    const u32 buffer = e.storage.d_subtile(e.d_stage);
    if (e.issues_stores) tma_wait_group_read<D_STAGES - 1>();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    quantize(e, work, subtile, z, buffer);
    smem_fence_proxy_async();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    if (e.issues_stores) {
        const Coords3 corner = subtile_coords(work, subtile);
        tma_store(elect_sync(), e.storage.params.d, corner.x, corner.y, corner.z, buffer);
        tma_commit_group();
    }
    e.d_stage = e.d_stage + 1 == D_STAGES ? 0 : e.d_stage + 1;
}

// Turn one accumulator into D. Frames 7.2 to 7.10.
__device__ __forceinline__ void finish_tile(Epilogue& e, WorkTile work) {
    const Stage accumulator = e.accumulator.wait();  // 7.4
    tcgen05_fence_after_thread_sync();
#pragma unroll 1
    for (u32 subtile = 0; subtile < SUBTILES; ++subtile) {
        Subtile z, c, bias;
        load_accumulator(e, accumulator, subtile, z);
        if (subtile == SUBTILES - 1) {  // 7.10
            tcgen05_fence_before_thread_sync();
            arrive_on_empty(accumulator);
        }
        load_c(e, c);
        load_bias(e, work, subtile, bias);
        fuse(e, work, subtile, c, bias, z);
        store_subtile(e, work, subtile, z);
    }
}

// Finish every tile of this CTA. Frame 7 ctx.
__device__ __forceinline__ void epilogue_warp(const SharedStorage& storage) {
    init_barriers(storage);
    named_barrier_sync(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);  // 7.1
    const u32 lane = WARP_THREADS * (warp_index() % EPILOGUE_WARPS);
    Epilogue e = {storage,
                  smem_ld(storage.tmem_pointer()),
                  {storage.accumulator()},
                  {storage.c()},
                  lane,
                  lane + lane_index(),
                  warp_index() == EPILOGUE};
    TileScheduler scheduler = storage.tile_scheduler();
    WorkTile work = scheduler.initial_work();
    while (work.valid) {
        const WorkTile next_work = scheduler.fetch_next_work();
        finish_tile(e, work);
        work = next_work;
    }
    if (e.issues_stores) store_tail();
}
