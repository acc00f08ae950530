// mbarrier: the barriers of sm_90, each wait and arrival after a delay.
#pragma once
#include "delay.cuh"
#include "relay.cuh"

#define mbarrier_arrive undelayed_arrive
#define mbarrier_expect_tx undelayed_expect_tx
#define mbarrier_arrive_expect_tx undelayed_arrive_expect_tx
#define mbarrier_test_wait undelayed_test_wait
#define mbarrier_try_wait undelayed_try_wait
#include "../hardware/mbarrier.cuh"
#undef mbarrier_arrive
#undef mbarrier_expect_tx
#undef mbarrier_arrive_expect_tx
#undef mbarrier_test_wait
#undef mbarrier_try_wait

template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_arrive(u32 mbar) {
    delay(1, mbar);
    undelayed_arrive<IN_CLUSTER>(mbar);
}

__device__ __forceinline__ void mbarrier_expect_tx(u32 mbar, u32 nbytes) {
    delay(2, mbar);
    undelayed_expect_tx(mbar, nbytes);
}

template <bool IN_CLUSTER = false, u32 CTA_GROUP = 1>
__device__ __forceinline__ void mbarrier_arrive_expect_tx(u32 mbar, u32 nbytes) {
    delay(3, mbar);
    if (CTA_GROUP == 2 && elect_sync()) relay_expect_tx(mbar, nbytes / 2);
    undelayed_arrive_expect_tx<IN_CLUSTER>(mbar, nbytes);
    delay(4, mbar);
}

template <bool IN_CLUSTER = false>
__device__ __forceinline__ u32 mbarrier_test_wait(u32 mbar, u32 parity) {
    delay(5, mbar << 1 | parity);
    return undelayed_test_wait<IN_CLUSTER>(mbar, parity);
}

template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_try_wait(u32 mbar, u32 parity) {
    delay(6, mbar << 1 | parity);
    undelayed_try_wait<IN_CLUSTER>(mbar, parity);
    delay(7, mbar << 1 | parity);
}

// The relay of a pair's peer.
__device__ __forceinline__ void relay() {
    const u32 base = smem_base();
    u64 phases = 0;  // of the doubled barriers
    for (u32 number = 0;; ++number) {
        const u32 slot = number % RELAY_TICKETS;
        mbarrier_try_wait<true>(base + RELAY + 8 * slot, number / RELAY_TICKETS & 1);
        const u32 ticket = smem_ld(base + RELAY_WORDS + 4 * slot);
        if (ticket == 0) return;
        const u32 offset = ticket & 0xfff;
        mbarrier_try_wait<true>(base + offset, phases >> offset / 8 & 1);
        phases ^= 1ull << offset / 8;
        delay(10, ticket);
        if (elect_sync()) relay_complete_tx(in_pair<2>(base + offset, 0), ticket >> 12);
    }
}
