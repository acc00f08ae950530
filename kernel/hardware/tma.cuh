// Part 3. tma: asynchronous copies of boxes between global and shared memory.
//
// Coordinates are element offsets, fastest dimension first. A load credits its bytes to an
// mbarrier; stores are counted in bulk groups of the thread that issues them.
#pragma once
#include "sm.cuh"
#include "tensor_map.cuh"

__device__ __forceinline__ void tma_prefetch_tensormap(const TensorMap& map) {
    asm volatile(
        "{\n\t"
        ".reg .pred elected;\n\t"
        "elect.sync _|elected, 0xffffffff;\n\t"
        "@elected prefetch.tensormap [%0];\n\t"
        "}" ::"l"(&map)
        : "memory");
}

// Frames 5.4.4 to 5.4.7.
__device__ __forceinline__ void tma_load(bool elected, const TensorMap& map, u32 x, u32 y, u32 z,
                                         u32 dst, u32 mbar) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %6, 0;\n\t"
        "@p cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];\n\t"
        "}" ::"r"(dst),
        "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(static_cast<u32>(elected))
        : "memory");
}

__device__ __forceinline__ void tma_load(bool elected, const TensorMap& map, u32 x, u32 y, u32 z,
                                         u32 w, u32 dst, u32 mbar) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %7, 0;\n\t"
        "@p cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];\n\t"
        "}" ::"r"(dst),
        "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(w), "r"(static_cast<u32>(elected))
        : "memory");
}

// Into the same place of every CTA of the mask. For a pair the bytes are credited to that one of
// each receiving pair whose rank has the parity of the barrier's.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tma_load_multicast(bool elected, const TensorMap& map, u32 x,
                                                   u32 y, u32 z, u32 dst, u32 mbar,
                                                   u16 cta_mask) {
    if constexpr (CTA_GROUP == 2)
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "setp.ne.b32 p, %6, 0;\n\t"
            "@p cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global"
            ".mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1, {%3, %4, %5}], [%2], %7;\n\t"
            "}" ::"r"(dst),
            "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(static_cast<u32>(elected)),
            "h"(cta_mask)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "setp.ne.b32 p, %6, 0;\n\t"
            "@p cp.async.bulk.tensor.3d.shared::cluster.global"
            ".mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1, {%3, %4, %5}], [%2], %7;\n\t"
            "}" ::"r"(dst),
            "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(static_cast<u32>(elected)),
            "h"(cta_mask)
            : "memory");
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tma_load_multicast(bool elected, const TensorMap& map, u32 x,
                                                   u32 y, u32 z, u32 w, u32 dst, u32 mbar,
                                                   u16 cta_mask) {
    if constexpr (CTA_GROUP == 2)
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "setp.ne.b32 p, %7, 0;\n\t"
            "@p cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global"
            ".mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1, {%3, %4, %5, %6}], [%2], %8;\n\t"
            "}" ::"r"(dst),
            "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(w),
            "r"(static_cast<u32>(elected)), "h"(cta_mask)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "setp.ne.b32 p, %7, 0;\n\t"
            "@p cp.async.bulk.tensor.4d.shared::cluster.global"
            ".mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1, {%3, %4, %5, %6}], [%2], %8;\n\t"
            "}" ::"r"(dst),
            "l"(&map), "r"(mbar), "r"(x), "r"(y), "r"(z), "r"(w),
            "r"(static_cast<u32>(elected)), "h"(cta_mask)
            : "memory");
}

// Frame 7.9. The lane that stores must also commit and wait: groups belong to a thread.
__device__ __forceinline__ void tma_store(bool elected, const TensorMap& map, u32 x, u32 y, u32 z,
                                          u32 src) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %5, 0;\n\t"
        "@p cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n\t"
        "}" ::"l"(&map),
        "r"(src), "r"(x), "r"(y), "r"(z), "r"(static_cast<u32>(elected))
        : "memory");
}

// A lane that stored nothing commits an empty group.
__device__ __forceinline__ void tma_commit_group() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until at most PENDING groups have unread sources.
template <u32 PENDING>
__device__ __forceinline__ void tma_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
