// mbarrier: the barriers of sm_90, each wait and arrival after a delay.
#pragma once
#include "delay.cuh"

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

template <bool IN_CLUSTER = false>
__device__ __forceinline__ void mbarrier_arrive_expect_tx(u32 mbar, u32 nbytes) {
    delay(3, mbar);
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
