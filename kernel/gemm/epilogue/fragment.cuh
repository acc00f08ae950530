// fragment: which element of a subtile each register of a thread is.
//
// After tcgen05.ld.32x32b register j of thread t is element (t, j). After two of 16x256b, for the
// upper and the lower 16 lanes, it is one of a pair in a matrix of 8 x 8: that is what stmatrix
// takes.
#pragma once
#include "../../hardware/tmem.cuh"
#include "epilogue_state.cuh"

// Load 32 rows of a subtile, whole rows or pairs.
__device__ __forceinline__ void load_fragment(u32 address, Subtile& acc) {
    if constexpr (TMEM_LOAD_LANES == WARP_THREADS) {
        tmem_ld(address, acc);
    } else {
        tmem_ld_16x256b(address, acc);
        tmem_ld_16x256b(address + tmem_address(TMEM_LOAD_LANES, 0), acc + SUBTILE_N / 2);
    }
    tmem_wait_ld(acc);
}
