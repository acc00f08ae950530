// Part 2. scheduler_work_iterator: the scheduler warp's way through its work units.
#pragma once
#include "work_iterator.cuh"

// Asks for a work unit each time the load warp has begun one. The throttle keeps the warp from
// taking tiles that another SM would do sooner.
struct SchedulerWorkIterator : WorkIterator {
    const SharedStorage& storage;
    Consumer<CLC_STAGES> throttle;
    Producer<CLC_STAGES> clc;

    __device__ __forceinline__ explicit SchedulerWorkIterator(const SharedStorage& storage)
        : WorkIterator(storage),
          storage(storage),
          throttle{storage.throttle()},
          clc{storage.clc()} {}

    // Wait for the load warp's signal, give its stage back, ask for one more.
    __device__ __forceinline__ void signal_and_advance() {
        arrive_on_empty(throttle.wait());
        advance_to_next_work();
    }

    // Ask for one more work unit. Frame 1.10.
    __device__ __forceinline__ void advance_to_next_work() {
        const Stage stage = clc.acquire();
        ClcRequest::ask(storage, stage);
    }

    // Wait until every answer has been read.
    __device__ __forceinline__ void drain() { clc.tail(); }
};
