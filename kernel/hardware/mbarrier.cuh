// Part 1. mbarrier: pending arrivals, transaction bytes, phase.
//
// One 64-bit word in shared memory with ONE arrival count. The phase completes when no arrival
// is pending and the tx-count is 0. On a fresh barrier parity 1 passes and parity 0 blocks.
#pragma once
#include "sm.cuh"

constexpr u32 MBARRIER_NBYTES = 8;

// IN_CLUSTER: threads of other CTAs signal the barrier too, so that the scope is the cluster.

// Frame 1.4. One lane.
__device__ __forceinline__ void mbarrier_init(u32 mbar, u32 count) {
    asm volatile(
        "{\n\t"
        ".reg .pred elected;\n\t"
        "elect.sync _|elected, 0xffffffff;\n\t"
        "@elected mbarrier.init.shared::cta.b64 [%0], %1;\n\t"
        "}" ::"r"(mbar),
        "r"(count)
        : "memory");
}

// Makes the inits visible to the async proxy.
__device__ __forceinline__ void mbarrier_fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Every lane arrives once: 32 arrivals.
template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_arrive(u32 mbar) {
    if constexpr (IN_CLUSTER)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbar)
                     : "memory");
    else
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
}

// One lane: more bytes are due in this phase; no arrival.
__device__ __forceinline__ void mbarrier_expect_tx(u32 mbar, u32 nbytes) {
    asm volatile(
        "{\n\t"
        ".reg .pred elected;\n\t"
        "elect.sync _|elected, 0xffffffff;\n\t"
        "@elected mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\n\t"
        "}" ::"r"(mbar),
        "r"(nbytes)
        : "memory");
}

// One lane: expect the bytes that come to CTA_GROUP CTAs, then arrive once.
template <bool IN_CLUSTER = false, u32 CTA_GROUP = 1>
__device__ __forceinline__ void mbarrier_arrive_expect_tx(u32 mbar, u32 nbytes) {
    if constexpr (IN_CLUSTER)
        asm volatile(
            "{\n\t"
            ".reg .pred elected;\n\t"
            "elect.sync _|elected, 0xffffffff;\n\t"
            "@elected mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64"
            " _, [%0], %1;\n\t"
            "}" ::"r"(mbar),
            "r"(nbytes)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred elected;\n\t"
            "elect.sync _|elected, 0xffffffff;\n\t"
            "@elected mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n\t"
            "}" ::"r"(mbar),
            "r"(nbytes)
            : "memory");
}

// Ask once whether the phase of `parity` is complete; never blocks.
template <bool IN_CLUSTER = false>
__device__ __forceinline__ u32 mbarrier_test_wait(u32 mbar, u32 parity) {
    u32 done;
    if constexpr (IN_CLUSTER)
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
            "selp.b32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(done)
            : "r"(mbar), "r"(parity)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
            "selp.b32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(done)
            : "r"(mbar), "r"(parity)
            : "memory");
    return done;
}

// Wait until the phase of `parity` is complete.
template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_try_wait(u32 mbar, u32 parity) {
    if constexpr (IN_CLUSTER)
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "again:\n\t"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n\t"
            "@!p bra again;\n\t"
            "}" ::"r"(mbar),
            "r"(parity)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "again:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
            "@!p bra again;\n\t"
            "}" ::"r"(mbar),
            "r"(parity)
            : "memory");
}
