// tensor_core_queue: what a CTA has asked of its tensor core, in two batches that take turns.
//
// A batch ends with a commit. The unit sees nothing of it before. A pair has one queue, the
// leader's, and a unit in each CTA.
#pragma once
#include "cta_pair.cuh"
#include "mbarrier.cuh"
#include "../hardware/named_barrier.cuh"
#include "../hardware/smem.cuh"

constexpr u32 SOFT_SMS = 160;
constexpr u32 UNIT = 896;  // its barriers and words, from the CTA's shared base
constexpr u32 UNIT_FULL = UNIT, UNIT_EMPTY = UNIT + 16, UNIT_BATCH = UNIT + 32,
              UNIT_COUNT = UNIT + 36, UNIT_DONE = UNIT + 40;
constexpr u32 UNIT_RACE = UNIT + 56;  // nobody's
// Of each batch: its operations, and the SM that has them; no operation is the end.
constexpr u32 UNIT_LENGTH = UNIT + 64, UNIT_QUEUE = UNIT + 72;
constexpr u32 UNIT_BARRIER = 15;  // where the MMA warp meets the unit
constexpr u32 QUEUE_LENGTH = 64;

enum : u32 { COPY = 1, MULTIPLY, COMMIT, MULTIPLY_F16, MULTIPLY_F8, MULTIPLY_MXF8 };

struct Operation {
    u32 what;
    u32 d, idesc, sfa, sfb, accumulate;  // of a commit d is the barrier and idesc the mask
    u64 a, b;
    u32 scales;  // of a row
};

__device__ Operation soft_queue[SOFT_SMS][2][QUEUE_LENGTH];
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

// Wait until a batch's place is free.
template <u32 CTA_GROUP>
__device__ __forceinline__ void acquire_batch(u32 batch) {
    const u32 empty = smem_base() + UNIT_EMPTY + 8 * (batch % 2);
    mbarrier_try_wait<CTA_GROUP == 2>(empty, (batch / 2 & 1) ^ 1);
}

// Give a batch to the unit, or to both of a pair.
template <u32 CTA_GROUP>
__device__ __forceinline__ void hand_over(u32 batch, u32 length) {
    const u32 base = smem_base(), turn = batch % 2;
    shared_st(base + UNIT_BATCH, batch + 1);
    shared_st(base + UNIT_COUNT, 0);
    for (u32 part = 0; part < CTA_GROUP; ++part) {
        pair_st<CTA_GROUP>(base + UNIT_LENGTH + 4 * turn, part, length);
        pair_st<CTA_GROUP>(base + UNIT_QUEUE + 4 * turn, part, smid());
        mbarrier_arrive<CTA_GROUP == 2>(in_pair<CTA_GROUP>(base + UNIT_FULL + 8 * turn, part));
    }
}

// One thread: add an operation; a commit and a full batch hand it over.
template <u32 CTA_GROUP>
__device__ __forceinline__ void enqueue(const Operation& operation) {
    delay(8, operation.what + operation.d);
    const u32 base = smem_base();
    const u32 batch = smem_ld(base + UNIT_BATCH), count = smem_ld(base + UNIT_COUNT);
    if (count == 0) acquire_batch<CTA_GROUP>(batch);
    soft_queue[smid()][batch % 2][count] = operation;
    if (operation.what == COMMIT || count + 1 == QUEUE_LENGTH)
        hand_over<CTA_GROUP>(batch, count + 1);
    else
        shared_st(base + UNIT_COUNT, count + 1);
}

// One thread, after the last commit: the unit ends, or both of a pair and the relay.
template <u32 CTA_GROUP>
__device__ __forceinline__ void stop_unit() {
    const u32 batch = smem_ld(smem_base() + UNIT_BATCH);
    acquire_batch<CTA_GROUP>(batch);
    hand_over<CTA_GROUP>(batch, 0);
    if constexpr (CTA_GROUP == 2) relay_ticket(0);
}
