// Part 7. store_pipeline: when a stage of D may be written, and C's be loaded again.
//
// CUTLASS's PipelineTmaStore. A store reads its stage without a barrier of its own: the warp that
// has issued it asks how many are pending, and a named barrier tells the others. Where D is
// written to the stage that C came in, that answer gives C's stage back too.
#pragma once
#include "../../hardware/named_barrier.cuh"
#include "../../hardware/tma.cuh"
#include "epilogue_state.cuh"

// The stage of C that the next subtile of D is written to. D's producer starts with phase 1, C's
// consumer with 0.
__device__ __forceinline__ PipelineState load_wait_state(PipelineState store) {
    return {store.index, store.phase ^ 1};
}

// Shared address of the stage of D that is stored next.
__device__ __forceinline__ u32 store_buffer(const Epilogue& e) {
    return e.storage.d_subtile(e.store.index);
}

// Go to the next stage of D. What PipelineState::advance does, in the form that costs no
// instruction where the phase is not asked for.
__device__ __forceinline__ void advance_store(Epilogue& e) {
    const bool wraps = e.store.index + 1 == STORE_STAGES;
    e.store = {wraps ? 0 : e.store.index + 1, e.store.phase ^ wraps};
}

// Meet the other epilogue warps.
__device__ __forceinline__ void synchronize() {
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
}

// Wait until the next stage of D has been read by its last store.
__device__ __forceinline__ void acquire(const Epilogue& e) {
    if (e.issues_stores) tma_wait_group_read<D_STAGES - 1>();
    synchronize();
}

// Give C's oldest stage back, if the store from it has been waited for.
__device__ __forceinline__ void release_c(Epilogue& e) {
    if constexpr (STORE_RELEASES_C) {
        e.unreleased += 1;
        if (e.unreleased == D_STAGES) {
            arrive_on_empty(e.c.release());
            e.unreleased -= 1;
        }
    }
}

// Give the stages back that the last stores have read: CUTLASS's store_tail.
__device__ __forceinline__ void release_tail(Epilogue& e) {
    if constexpr (STORE_RELEASES_C) {
        for (; e.unreleased > 0; --e.unreleased) arrive_on_empty(e.c.release());
    }
}
