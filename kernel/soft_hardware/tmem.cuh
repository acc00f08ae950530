// tmem: tensor memory as words of global memory, of each SM its own.
//
// One CTA runs on an SM at a time: the launch asks for more than half of its shared memory.
#pragma once
#include "../hardware/smem.cuh"
#include "tensor_core_queue.cuh"

constexpr u32 TMEM_COLUMNS = 512;

__device__ __forceinline__ constexpr u32 tmem_address(u32 lane, u32 column) {
    return lane << 16 | column;
}

// The address is 0. From here on the unit takes operations.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_alloc(u32 destination, u32) {
    if (elect_sync()) asm volatile("st.shared.b32 [%0], %1;" ::"r"(destination), "r"(0) : "memory");
    named_barrier_sync(UNIT_BARRIER, 64);
}

// The unit stops after all that it was asked for. Of a pair the leader says so.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_dealloc(u32, u32) {
    if (leads_pair<CTA_GROUP>() && elect_sync()) stop_unit<CTA_GROUP>();
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_relinquish_alloc_permit() {}

template <u32 COLUMNS>
__device__ __forceinline__ void tmem_ld(u32 taddr, float (&r)[COLUMNS]) {
    const u64 cell = tmem_cell(taddr, lane_index());
#pragma unroll
    for (u32 j = 0; j < COLUMNS; ++j) r[j] = __uint_as_float(tmem_read(cell, j));
}

// Lane t has columns 2 (t % 4) and the next one, of rows t / 4 and 8 more, in each 8 columns.
__device__ __forceinline__ void tmem_ld_16x256b(u32 taddr, float* r) {
    const u32 row = lane_index() / 4, column = lane_index() % 4 * 2;
#pragma unroll
    for (u32 j = 0; j < 16; ++j) {
        const u64 cell = tmem_cell(taddr, row + j / 2 % 2 * 8);
        r[j] = __uint_as_float(tmem_read(cell, column + j / 4 * 8 + j % 2));
    }
}

template <u32 COLUMNS>
__device__ __forceinline__ void tmem_wait_ld(float (&)[COLUMNS]) { asm volatile("" ::: "memory"); }
