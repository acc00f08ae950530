// Part 8. cleanup: drain the pipelines, free TMEM, let dependents start.
//
// No warp may leave while an arrival of another can still come. TMEM is freed only after the
// epilogue has read it.
#pragma once
#include "../hardware/clc.cuh"
#include "../hardware/tma.cuh"
#include "../hardware/tmem.cuh"
#include "plan.cuh"
#include "pipeline.cuh"

// Wait until every mainloop stage is empty again. Frame 8.1.
__device__ __forceinline__ void load_tail(Producer<MAINLOOP_STAGES>& mainloop) {
    mainloop.tail();
}

// Release dependents and the allocation permit, drain, free. Frames 8.2 to 8.7.
template <class Allocator>
__device__ __forceinline__ void mma_tail(Producer<ACCUMULATOR_BARRIERS>& accumulator, u32 taddr,
                                         const Allocator& allocator) {
    clc_griddepcontrol_launch_dependents();
    allocator.relinquish();
    accumulator.tail();
    allocator.free(taddr, TMEM_COLUMNS);
}

// Wait until the stores have read their shared memory, which may not outlive the CTA.
// Frame 7.11.
__device__ __forceinline__ void store_tail() { tma_wait_group_read<0>(); }
