// Part 7. epilogue_start: how every epilogue warp begins.
#pragma once
#include "../hardware/named_barrier.cuh"
#include "epilogue/epilogue_state.cuh"

static_assert(EPILOGUE_WARPS >= QUARTERS);  // no lane is left unread

// Wait for the MMA warp's allocation, and take the lanes of this warp's quarter. Frame 7.1.
__device__ __forceinline__ Epilogue start_epilogue(const SharedStorage& storage) {
    init_barriers(storage);
    named_barrier_sync(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);
    const u32 lane = WARP_THREADS * (warp_index() % QUARTERS);
    return {storage,
            smem_ld(storage.tmem_pointer()),
            {released_in(storage.cta.leader(), storage.accumulator())},
            {storage.c()},
            lane,
            lane + lane_index(),
            warp_index() == EPILOGUE};
}
