// relay: a warp of a pair's peer that tells the leader of the bytes that came.
//
// TMA of sm_90 credits bytes to a barrier of the CTA that receives them; of a pair the leader's
// barrier counts both. So the leader's barrier is doubled at its offset in the peer, with half
// of the bytes; the relay waits for it and credits that half to the leader's. A ticket names
// the barrier and the bytes.
#pragma once
#include "cta_pair.cuh"

constexpr u32 RELAY_TICKETS = 16;  // at least the stages that TMA fills
constexpr u32 RELAY = 512;  // a barrier for each ticket, from the CTA's shared base
constexpr u32 RELAY_WORDS = RELAY + 8 * RELAY_TICKETS;
constexpr u32 RELAY_COUNT = RELAY_WORDS + 4 * RELAY_TICKETS;  // in the leader: tickets so far
constexpr u32 RELAY_END = RELAY_COUNT + 4;

// One thread of the leader: the next ticket; 0 ends the relay.
__device__ __forceinline__ void relay_ticket(u32 ticket) {
    const u32 base = smem_base(), number = smem_ld(base + RELAY_COUNT);
    const u32 slot = number % RELAY_TICKETS;
    shared_st(base + RELAY_COUNT, number + 1);
    pair_st<2>(base + RELAY_WORDS + 4 * slot, 1, ticket);
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                     in_pair<2>(base + RELAY + 8 * slot, 1))
                 : "memory");
}

// One thread: bytes have come, and what it saw before is seen by who sees this.
__device__ __forceinline__ void relay_complete_tx(u32 mbar, u32 nbytes) {
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(mbar),
                 "r"(nbytes)
                 : "memory");
}

// One thread of the leader: `nbytes` will come to the peer.
__device__ __forceinline__ void relay_expect_tx(u32 mbar, u32 nbytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
            in_pair<2>(mbar, 1)),
        "r"(nbytes)
        : "memory");
    relay_ticket(nbytes << 12 | (mbar - smem_base()));
}
