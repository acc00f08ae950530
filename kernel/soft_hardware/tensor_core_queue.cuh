// tensor_core_queue: what a CTA has asked of its tensor core, in two batches that take turns.
//
// A batch ends with a commit. The unit sees nothing of it before.
#pragma once
#include "mbarrier.cuh"
#include "../hardware/named_barrier.cuh"
#include "../hardware/smem.cuh"

constexpr u32 SOFT_SMS = 160;
constexpr u32 UNIT = 896;  // its barriers and words, from the CTA's shared base
constexpr u32 UNIT_FULL = UNIT, UNIT_EMPTY = UNIT + 16, UNIT_BATCH = UNIT + 32,
              UNIT_COUNT = UNIT + 36;
constexpr u32 UNIT_BARRIER = 15;  // where the MMA warp meets the unit
constexpr u32 QUEUE_LENGTH = 64;

enum : u32 { STOP, COPY, MULTIPLY, COMMIT, MULTIPLY_F16, MULTIPLY_F8, MULTIPLY_MXF8 };

struct Operation {
    u32 what;
    u32 d, idesc, sfa, sfb, accumulate;  // of a commit d is the barrier and idesc the mask
    u64 a, b;
    u32 scales;  // of a row
};

struct Batch {
    u32 count;
    Operation operations[QUEUE_LENGTH];
};

__device__ Batch soft_queue[SOFT_SMS][2];
__device__ u32 soft_tmem[SOFT_SMS][512 * 128];

__device__ __forceinline__ u32 smid() {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= SOFT_SMS) __trap();
    return sm;
}

__device__ __forceinline__ u64 tmem_cell(u32 taddr, u32 lane) {
    const u32 cell = (taddr & 511) * 128 + (taddr >> 16 & 127) + lane;
    return reinterpret_cast<u64>(&soft_tmem[smid()][cell]);
}

__device__ __forceinline__ u32 tmem_read(u64 cell, u32 column) {
    u32 word;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(cell + column * 512) : "memory");
    return word;
}

__device__ __forceinline__ void tmem_write(u64 cell, u32 column, u32 word) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(cell + column * 512), "r"(word) : "memory");
}

__device__ __forceinline__ void unit_st(u32 address, u32 word) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

// One thread: add an operation; a commit, the stop and a full batch hand it over.
__device__ __forceinline__ void enqueue(const Operation& operation) {
    delay(8, operation.what + operation.d);
    const u32 base = smem_base();
    const u32 batch = smem_ld(base + UNIT_BATCH), count = smem_ld(base + UNIT_COUNT);
    const u32 turn = batch % 2;
    if (count == 0) mbarrier_try_wait(base + UNIT_EMPTY + 8 * turn, (batch / 2 & 1) ^ 1);
    Batch& to = soft_queue[smid()][turn];
    to.operations[count] = operation;
    const bool ends = operation.what == COMMIT || operation.what == STOP;
    if (ends || count + 1 == QUEUE_LENGTH) {
        to.count = count + 1;
        unit_st(base + UNIT_BATCH, batch + 1);
        unit_st(base + UNIT_COUNT, 0);
        mbarrier_arrive(base + UNIT_FULL + 8 * turn);
    } else {
        unit_st(base + UNIT_COUNT, count + 1);
    }
}
