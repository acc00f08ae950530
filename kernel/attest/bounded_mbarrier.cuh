// bounded_mbarrier: the kernel's wait, which gives up and ends its thread.
//
// It stands for mbarrier_try_wait, which is called endless_try_wait in the text of a rung.
#pragma once
#include "bounded_wait.cuh"

template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_try_wait(u32 mbar, u32 parity) {
#pragma unroll 1
    for (u32 tries = 0; tries < ATTEST_TRIES; ++tries)
        if (mbarrier_test_wait<IN_CLUSTER>(mbar, parity)) return;
    if (lane_index() == 0) dump_wait(mbar, parity, __LINE__);
    asm volatile("exit;");
}
