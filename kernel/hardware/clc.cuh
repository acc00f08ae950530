// Part 2. clc: cancel a cluster that has not been launched, and learn its coordinates.
//
// The answer is 16 bytes in shared memory, credited to an mbarrier as 16 bytes.
#pragma once
#include "smem.cuh"

constexpr u32 CLC_RESPONSE_NBYTES = 16;

struct ClcResponse {
    u64 low, high;
};

// Whether this CTA runs: silicon never starts one whose cluster was canceled.
__device__ __forceinline__ constexpr bool clc_starts() { return true; }

// One lane. Frame 1.10.
__device__ __forceinline__ void clc_try_cancel(u32 response, u32 mbar) {
    asm volatile(
        "{\n\t"
        ".reg .pred elected;\n\t"
        "elect.sync _|elected, 0xffffffff;\n\t"
        "@elected clusterlaunchcontrol.try_cancel.async.shared::cta"
        ".mbarrier::complete_tx::bytes.b128 [%0], [%1];\n\t"
        "}" ::"r"(response),
        "r"(mbar)
        : "memory");
}

// One lane: the answer goes to every CTA of the cluster, at the same offsets.
__device__ __forceinline__ void clc_try_cancel_multicast(u32 response, u32 mbar) {
    asm volatile(
        "{\n\t"
        ".reg .pred elected;\n\t"
        "elect.sync _|elected, 0xffffffff;\n\t"
        "@elected clusterlaunchcontrol.try_cancel.async.shared::cta"
        ".mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];\n\t"
        "}" ::"r"(response),
        "r"(mbar)
        : "memory");
}

__device__ __forceinline__ bool clc_is_canceled(ClcResponse response) {
    u32 canceled;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        ".reg .b128 q;\n\t"
        "mov.b128 q, {%1, %2};\n\t"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\n\t"
        "selp.b32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(canceled)
        : "l"(response.low), "l"(response.high));
    return canceled != 0;
}

// Defined only if is_canceled is true.
__device__ __forceinline__ uint3 clc_get_first_ctaid(ClcResponse response) {
    uint3 ctaid;
    asm volatile(
        "{\n\t"
        ".reg .b128 q;\n\t"
        "mov.b128 q, {%3, %4};\n\t"
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, q;\n\t"
        "}"
        : "=r"(ctaid.x), "=r"(ctaid.y), "=r"(ctaid.z)
        : "l"(response.low), "l"(response.high));
    return ctaid;
}

// Until earlier grids are done and what they wrote can be read.
__device__ __forceinline__ void clc_griddepcontrol_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Later grids may start. Frame 8.2.
__device__ __forceinline__ void clc_griddepcontrol_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
