// edges: what a card refuses at the edge of a rule, and what is waited for at the other side.
#include "probe.cuh"

// -- addresses and sizes

extern "C" __global__ void shared_word(u32* out, u32 offset) {
    u32 at = dynamic_base() + offset;
    if (lane_id() == 0) {
        st_shared(at, 7);
        out[0] = ld_shared(at);
    }
}

extern "C" __global__ void bulk_load(const u8* in, u32* out, u32 skip, u32 target, u32 nbytes) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE;
    poison(image, 256);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(mbar, nbytes);
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%0], [%1], %2, [%3];" ::"r"(image + target),
            "l"(in + skip), "r"(nbytes), "r"(mbar)
            : "memory");
    }
    __syncwarp();
    mbarrier_poll(mbar, 0);
    dump(image, 256, out);
}

extern "C" __global__ void barrier_at(u32* out, u32 offset) {
    u32 mbar = dynamic_base() + offset;
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
        out[0] = mbarrier_test_wait(mbar, 0);
    }
}

// The map lies at an offset of a buffer, and is used from there.
extern "C" __global__ void map_at(const __grid_constant__ TensorMap map, u32* room, u32 offset,
                                  u32* out) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE;
    u32* at = room + offset / 4;
    poison(image, 1024);
    at[lane_id()] = ((const u32*)&map)[lane_id()];
    __syncwarp();
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(at) : "memory");
        mbarrier_arrive_expect_tx(mbar, 1024);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%3, %4}], [%2];" ::"r"(image),
            "l"(at), "r"(mbar), "r"(0), "r"(0)
            : "memory");
    }
    __syncwarp();
    mbarrier_poll(mbar, 0);
    dump(image, 1024, out);
}

// -- another CTA

// Rank 0 does to rank 1's mbarrier what only its own CTA may do.
extern "C" __global__ void remote(u32* out, u32 which) {
    u32 mbar = dynamic_base();
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
    }
    cluster_sync();
    u32 there = mapa(mbar, 1);
    if (lane_id() == 0 && cluster_ctarank() == 0) {
        if (which == 0) out[0] = mbarrier_test_wait(there, 0);
        if (which == 1) mbarrier_init(there, 2);
        if (which == 2) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(there) : "memory");
    }
    cluster_sync();
}

// Rank 0 asks for a tile in rank 1's memory with an mbarrier of its own.
extern "C" __global__ void tile_elsewhere(const __grid_constant__ TensorMap map, u32* out) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE, rank = cluster_ctarank();
    poison(image, 1024);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(mbar, rank == 0 ? 1024 : 0);
    }
    cluster_sync();
    if (lane_id() == 0 && rank == 0)
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%3, %4}], [%2];" ::"r"(mapa(image, 1)),
            "l"(&map), "r"(mbar), "r"(0), "r"(0)
            : "memory");
    u32 done = mbarrier_poll(mbar, 0);
    cluster_sync();
    if (lane_id() == 0) out[rank] = done;
}

// Rank 1 raises a flag and returns; rank 0 loads from its memory long after.
extern "C" __global__ void exited_peer(u32* out, u32* flag) {
    u32 at = dynamic_base();
    st_shared(at + 4 * lane_id(), 5);
    cluster_sync();
    if (cluster_ctarank() == 1) {
        if (lane_id() == 0) atomicExch(flag, 1);
        return;
    }
    u32 seen = 0, value;
    while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag));
    for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapa(at, 1)) : "memory");
    out[lane_id()] = value;
}

// Rank 1 raises a flag and returns; long after, rank 0 arrives at its mbarrier (0), stores
// into its memory (1), or sends it a tile (2).
extern "C" __global__ void gone(const __grid_constant__ TensorMap map, u32* out, u32* flag,
                                u32 which) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE;
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
    }
    cluster_sync();
    if (cluster_ctarank() == 1) {
        if (lane_id() == 0) atomicExch(flag, 1);
        return;
    }
    u32 seen = 0;
    while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag));
    for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
    if (lane_id() == 0) {
        u32 there = mapa(mbar, 1);
        if (which == 0)
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there)
                         : "memory");
        if (which == 1)
            asm volatile("st.shared::cluster.u32 [%0], 7;" ::"r"(mapa(image, 1)) : "memory");
        if (which == 2)
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                ".multicast::cluster [%0], [%1, {%3, %3}], [%2], %4;" ::"r"(image),
                "l"(&map), "r"(mbar), "r"(0), "h"((u16)2)
                : "memory");
    }
    for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
    if (lane_id() == 0) out[0] = 1;
}

// -- who is waited for

extern "C" __global__ void exited_warp(u32* out) {
    if (threadIdx.x >= 96) return;
    asm volatile("bar.sync 0;" ::: "memory");
    out[threadIdx.x] = 1;
}

// Of four warps the last has exited; the third arrives twice, once early and once late.
// The count is 128: the first two see what was written before the late arrival.
extern "C" __global__ void counted(u32* out, u32* flag) {
    u32 warp = threadIdx.x / 32;
    if (warp == 3) return;
    if (warp == 2) {
        for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
        if (lane_id() == 0) atomicExch(flag, 2);
        __threadfence();
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        return;
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    u32 seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    out[threadIdx.x] = seen;
}

extern "C" __global__ void exited_in_cluster(u32* out) {
    u32 at = dynamic_base(), rank = cluster_ctarank();
    if (threadIdx.x >= 32) return;
    st_shared(at + 4 * lane_id(), 0x100 + rank);
    cluster_sync();
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"(mapa(at + 4 * lane_id(), rank ^ 1))
                 : "memory");
    cluster_sync();
    out[32 * rank + lane_id()] = value;
}

// Clocks: later readings are larger, a delay ends, and %clock is the low half of %clock64.
extern "C" __global__ void readings(u32* out, u32 delay) {
    u64 first, second, now, start;
    u32 low;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(first)::"memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    while (now - start < delay);
    asm volatile("mov.u32 %0, %%clock;" : "=r"(low)::"memory");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(second)::"memory");
    if (lane_id() == 0) {
        out[0] = second > first;
        out[1] = now > start;
        out[2] = (u32)second - low < 1000;
    }
}

// Two warps meet, the second long after the first, each with its operation: bar.sync (0),
// bar.arrive (1), or a reduction: popc (2), and (3), or (4).
__device__ u32 met_by(u32 which) {
    u32 odd = threadIdx.x & 1, result = 0;
    if (which == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
    if (which == 1) asm volatile("bar.arrive 1, 64;" ::: "memory");
    if (which == 2)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; bar.red.popc.u32 %0, 1, 64, p; }"
                     : "=r"(result) : "r"(odd) : "memory");
    if (which == 3)
        asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0;"
                     " bar.red.and.pred q, 1, 64, p; selp.u32 %0, 1, 0, q; }"
                     : "=r"(result) : "r"(odd) : "memory");
    if (which == 4)
        asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0;"
                     " bar.red.or.pred q, 1, 64, p; selp.u32 %0, 1, 0, q; }"
                     : "=r"(result) : "r"(odd) : "memory");
    return result;
}
extern "C" __global__ void met(u32* out, u32 first, u32 second) {
    u32 warp = threadIdx.x / 32;
    for (u32 i = 0; i < 1000 * warp; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
    out[threadIdx.x] = met_by(warp ? second : first);
}

extern "C" __global__ void no_grid_before(u32* out) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[lane_id()] = 1;
}

// -- cp.async

extern "C" __global__ void short_sources(const u8* in, u32* out) {
    u32 at = dynamic_base() + 16 * lane_id();
    for (u32 i = 0; i < 4; ++i) st_shared(at + 4 * i, POISON);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(in + 16 * lane_id()),
                 "r"(lane_id() % 17)
                 : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (u32 i = 0; i < 4; ++i) out[4 * lane_id() + i] = ld_shared(at + 4 * i);
}

extern "C" __global__ void copies_arrive(const u8* in, u32* out) {
    u32 mbar = dynamic_base(), at = mbar + 16 + 16 * lane_id();
    if (lane_id() == 0) mbarrier_init(mbar, 32);
    __syncwarp();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + 16 * lane_id())
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(mbar) : "memory");
    mbarrier_poll(mbar, 0);
    for (u32 i = 0; i < 4; ++i) out[4 * lane_id() + i] = ld_shared(at + 4 * i);
}

// -- words of global memory

extern "C" __global__ void maxima(const u32* values, u32* words) {
    asm volatile("red.global.max.u32 [%0], %1;" ::"l"(words + lane_id() % 4),
                 "r"(values[lane_id()])
                 : "memory");
}

// The word is 3 for a time before it becomes 2, which is what the first warp waits for.
extern "C" __global__ void passed(u32* out, u32* word, u32* flag) {
    if (threadIdx.x >= 32) {
        if (lane_id() == 0) {
            atomicExch(word, 3);
            for (u32 i = 0; i < 1000; ++i) asm volatile("nanosleep.u32 1000;" ::: "memory");
            atomicExch(flag, 1);
            __threadfence();
            atomicExch(word, 2);
        }
        return;
    }
    if (lane_id() == 0) {
        u32 seen = 0;
        while (seen != 2) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        out[0] = seen;
    }
}

// -- groups

// The older of two stores is complete, and its bytes are read back.
extern "C" __global__ void older_group(u32* first, u32* second, u32* out) {
    u32 at = dynamic_base();
    for (u32 i = lane_id(); i < 256; i += 32) st_shared(at + 4 * i, i);
    fence_proxy_async();
    __syncwarp();
    if (lane_id() == 0) {
        asm volatile(
            "cp.async.bulk.global.shared::cta.bulk_group [%0], [%2], 1024;\n"
            "cp.async.bulk.commit_group;\n"
            "cp.async.bulk.global.shared::cta.bulk_group [%1], [%2], 1024;\n"
            "cp.async.bulk.commit_group;\n"
            "cp.async.bulk.wait_group 1;" ::"l"(first),
            "l"(second), "r"(at)
            : "memory");
        for (u32 i = 0; i < 256; ++i) out[i] = ((volatile u32*)first)[i];
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
