// bounded_wait: a wait that gives up, writes down what it waited for, and says so.
//
// A rung that waits for ever would be killed from outside, and nobody would learn at which
// barrier. Words of the dump: how many waits gave up; then of each the line, the CTA, the thread,
// the barrier's address, the awaited parity, 0, and the first DUMP_BARRIERS barriers of the CTA.
// A card keeps the word of a live barrier outside shared memory: the first wait that gives up ends
// its barrier, so that its counts are there to read. Those of the other barriers may be older.
#pragma once
#include "../hardware/mbarrier.cuh"
#include "../hardware/smem.cuh"

#ifndef ATTEST_TRIES
#define ATTEST_TRIES (1u << 24)  // some tenths of a second
#endif

constexpr u32 DUMP_WAITS = 8, DUMP_BARRIERS = 16, DUMP_WORDS = 6 + 2 * DUMP_BARRIERS;

__device__ u32 attest_dump[1 + DUMP_WAITS * DUMP_WORDS];

// One thread writes down the wait that it has given up.
__device__ __forceinline__ void dump_wait(u32 mbar, u32 parity, u32 line) {
    const u32 number = atomicAdd(&attest_dump[0], 1u);
    if (number >= DUMP_WAITS) return;
    u32* words = attest_dump + 1 + number * DUMP_WORDS;
    if (number == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(mbar) : "memory");
    const u32 head[6] = {line, blockIdx.x, threadIdx.x, mbar, parity, 0};
    for (u32 i = 0; i < 6; ++i) words[i] = head[i];
#pragma unroll 1
    for (u32 i = 0; i < 2 * DUMP_BARRIERS; ++i) words[6 + i] = smem_ld(smem_base() + 4 * i);
}

// Whether the phase of `parity` completed. The whole warp.
template <bool IN_CLUSTER = false>
__device__ __forceinline__ bool bounded_wait(u32 mbar, u32 parity, u32 line) {
#pragma unroll 1
    for (u32 tries = 0; tries < ATTEST_TRIES; ++tries) {
        if (mbarrier_test_wait<IN_CLUSTER>(mbar, parity)) return true;
#ifdef ATTEST_HEARTBEAT
        attest_dump[DUMP_WAITS * DUMP_WORDS] = tries;  // seen from outside: no idle turn
#endif
    }
    if (lane_index() == 0) dump_wait(mbar, parity, line);
    return false;
}

#define WAIT(mbar, parity) bounded_wait(mbar, parity, __LINE__)
