// Part 1. pipeline: rings of full and empty barriers, with their two states.
//
// A producer waits for empty and makes full, a consumer waits for full and makes empty. How a
// stage is committed or released differs between rings, so the role says it: arrive, expect_tx
// or tcgen05.commit on stage.full or stage.empty.
#pragma once
#include "../hardware/mbarrier.cuh"

// Barriers of one pipeline: STAGES full ones from `full`, as many empty ones from `empty`.
// Frames 1.1 to 1.3.
template <u32 STAGES>
struct Ring {
    u32 full, empty;

    // Frame 1.4. An mbarrier has ONE count.
    __device__ __forceinline__ void init(u32 full_count, u32 empty_count) const {
#pragma unroll
        for (u32 i = 0; i < STAGES; ++i) mbarrier_init(full + MBARRIER_NBYTES * i, full_count);
#pragma unroll
        for (u32 i = 0; i < STAGES; ++i) mbarrier_init(empty + MBARRIER_NBYTES * i, empty_count);
    }
};

// Position in a ring. Frame 1.8.
struct PipelineState {
    u32 index, phase;

    // The phase flips when the ring wraps.
    template <u32 STAGES>
    __device__ __forceinline__ void advance() {
        index += 1;
        if (index == STAGES) {
            index = 0;
            phase ^= 1;
        }
    }
};

// One stage, between acquire and commit, or between wait and release.
struct Stage {
    u32 index, full, empty, phase;
};

// Fills stages. It starts with the opposite phase: on a fresh barrier parity 1 passes at once.
// Frame 1.6.
template <u32 STAGES>
struct Producer {
    Ring<STAGES> ring;
    PipelineState state = {0, 1};
    u32 token = 0;

    __device__ __forceinline__ u32 barrier() const {
        return ring.empty + MBARRIER_NBYTES * state.index;
    }

    // try_acquire: ask once, for the next acquire. Frame 5.3.
    __device__ __forceinline__ void peek() {
        token = mbarrier_test_wait<IN_CLUSTER>(barrier(), state.phase);
    }

    __device__ __forceinline__ Stage acquire() {
        if (!token) mbarrier_try_wait<IN_CLUSTER>(barrier(), state.phase);
        token = 0;
        const Stage stage = {state.index, ring.full + MBARRIER_NBYTES * state.index, barrier(),
                             state.phase};
        state.advance<STAGES>();
        return stage;
    }

    // producer_tail: until every stage has been released. Frames 8.1 and 8.3.
    __device__ __forceinline__ void tail() {
#pragma unroll 1
        for (u32 i = 0; i < STAGES; ++i) {
            mbarrier_try_wait<IN_CLUSTER>(barrier(), state.phase);
            state.advance<STAGES>();
        }
    }
};

// Uses stages. Frame 1.7.
template <u32 STAGES>
struct Consumer {
    Ring<STAGES> ring;
    PipelineState state = {0, 0};
    u32 token = 0;

    __device__ __forceinline__ u32 barrier() const {
        return ring.full + MBARRIER_NBYTES * state.index;
    }

    // try_wait: ask once, for the next wait. Frame 5.3.
    __device__ __forceinline__ void peek() {
        token = mbarrier_test_wait<IN_CLUSTER>(barrier(), state.phase);
    }

    __device__ __forceinline__ Stage wait() {
        if (!token) mbarrier_try_wait<IN_CLUSTER>(barrier(), state.phase);
        token = 0;
        const Stage stage = this->stage(state);
        state.advance<STAGES>();
        return stage;
    }

    // consumer_wait with a state of its own; release() gives the stage back. So several stages
    // are held at a time.
    __device__ __forceinline__ Stage wait_ahead(PipelineState& at) const {
        const Stage held = stage(at);
        mbarrier_try_wait<IN_CLUSTER>(held.full, at.phase);
        at.advance<STAGES>();
        return held;
    }

    // consumer_release: the oldest stage that is held, on which the caller arrives.
    __device__ __forceinline__ Stage release() {
        const Stage oldest = stage(state);
        state.advance<STAGES>();
        return oldest;
    }

    __device__ __forceinline__ Stage stage(PipelineState at) const {
        return {at.index, ring.full + MBARRIER_NBYTES * at.index,
                ring.empty + MBARRIER_NBYTES * at.index, at.phase};
    }
};

// Commit or release by one arrival of each thread.
__device__ __forceinline__ void arrive_on_full(Stage stage) {
    mbarrier_arrive<IN_CLUSTER>(stage.full);
}
__device__ __forceinline__ void arrive_on_empty(Stage stage) {
    mbarrier_arrive<IN_CLUSTER>(stage.empty);
}
