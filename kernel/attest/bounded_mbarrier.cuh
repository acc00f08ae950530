// bounded_mbarrier: the kernel's wait, which gives up.
//
// It stands for mbarrier_try_wait, which is called endless_try_wait in the text of a rung. Once a
// wait has given up no other one begins: the kernel runs to its end, on whatever is there.
#pragma once
#include "bounded_wait.cuh"

template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_try_wait(u32 mbar, u32 parity) {
    if (*static_cast<volatile u32*>(attest_dump)) return;
#pragma unroll 1
    for (u32 tries = 0; tries < ATTEST_TRIES; ++tries)
        if (mbarrier_test_wait<IN_CLUSTER>(mbar, parity)) return;
    if (lane_index() == 0) dump_wait(mbar, parity, __LINE__);
}
