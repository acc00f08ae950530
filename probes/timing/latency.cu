// latency: cycles of barriers, shared memory and TMA copies, one sample after the other.
#include "probe.cuh"

constexpr u32 PING = 0, PONG = 8, COPIED = 16, WORD = 64, TILE = 1024, KEPT = 20 << 10;

__device__ inline u32 clock_now() {
    u32 cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
    return cycles;
}

// IN_CLUSTER: with the scope of the cluster, as a kernel of clusters has it.
template <bool IN_CLUSTER>
__device__ inline void arrive(u32 mbar) {
    if (IN_CLUSTER)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbar)
                     : "memory");
    else
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
}

template <bool IN_CLUSTER>
__device__ inline void wait(u32 mbar, u32 parity) {
    u32 done = 0;
    while (!IN_CLUSTER && !done) done = mbarrier_test_wait(mbar, parity);
    while (IN_CLUSTER && !done)
        asm volatile(
            "{\n\t.reg .pred p;\n\t"
            "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
            "selp.b32 %0, 1, 0, p;\n\t}"
            : "=r"(done)
            : "r"(mbar), "r"(parity)
            : "memory");
}

// Samples stay in shared memory until the end: a release waits for stores to global memory.
__device__ inline void keep(u32 i, u32 cycles) {
    st_shared(dynamic_base() + KEPT + 4 * i, cycles);
}

__device__ inline void write(u32* out, u32 n) {
    for (u32 i = 0; threadIdx.x == 0 && blockIdx.x == 0 && i < n; ++i)
        out[i] = ld_shared(dynamic_base() + KEPT + 4 * i);
}

__device__ inline u32 begin(u32 count) {
    const u32 base = dynamic_base();
    if (threadIdx.x == 0) {
        mbarrier_init(base + PING, count);
        mbarrier_init(base + PONG, count);
        mbarrier_init(base + COPIED, 1);
        fence_mbarrier_init();
    }
    cluster_sync();
    return base;
}

extern "C" __global__ void clock_read(u32* out, u32 n) {
    for (u32 i = 0; i < n; ++i) {
        const u32 start = clock_now();
        keep(i, clock_now() - start);
    }
    write(out, n);
}

// One thread arrives and sees its own phase end.
template <bool IN_CLUSTER>
__device__ inline void own(u32* out, u32 n) {
    const u32 base = begin(1);
    if (threadIdx.x) return;
    for (u32 i = 0; i < n; ++i) {
        const u32 start = clock_now();
        arrive<IN_CLUSTER>(base + PING);
        wait<IN_CLUSTER>(base + PING, i & 1);
        keep(i, clock_now() - start);
    }
    write(out, n);
}

extern "C" __global__ void mbarrier_own(u32* out, u32 n) { own<false>(out, n); }
extern "C" __global__ void mbarrier_own_in_cluster(u32* out, u32 n) { own<true>(out, n); }

// Warp 0 arrives on the other's barrier and waits for the answer: two ways. With two CTAs the
// warps are in two CTAs.
template <bool IN_CLUSTER>
__device__ inline void there_and_back(u32* out, u32 n, u32 ctas) {
    const u32 base = begin(1);
    const u32 warp = ctas == 2 ? blockIdx.x : threadIdx.x / 32;
    const bool takes_part = lane_id() == 0 && (ctas == 1 || threadIdx.x == 0);
    const u32 ping = IN_CLUSTER ? mapa(base + PING, ctas - 1) : base + PING;
    const u32 pong = IN_CLUSTER ? mapa(base + PONG, 0) : base + PONG;
    for (u32 i = 0; takes_part && i < n; ++i) {
        const u32 start = clock_now();
        if (warp == 0) {
            arrive<IN_CLUSTER>(ping);
            wait<IN_CLUSTER>(base + PONG, i & 1);
            keep(i, clock_now() - start);
        } else {
            wait<IN_CLUSTER>(base + PING, i & 1);
            arrive<IN_CLUSTER>(pong);
        }
    }
    __syncwarp();
    cluster_sync();
    write(out, n);
}

extern "C" __global__ void mbarrier_there_and_back(u32* out, u32 n) {
    there_and_back<false>(out, n, 1);
}
extern "C" __global__ void mbarrier_there_and_back_in_cluster(u32* out, u32 n, u32 ctas) {
    there_and_back<true>(out, n, ctas);
}

// Two warps meet at a barrier of the CTA.
extern "C" __global__ void bar_sync(u32* out, u32 n) {
    for (u32 i = 0; i < n; ++i) {
        const u32 start = clock_now();
        asm volatile("bar.sync 1, 64;" ::: "memory");
        const u32 cycles = clock_now() - start;
        if (threadIdx.x == 0) keep(i, cycles);
    }
    write(out, n);
}

// A load from shared memory of CTA `rank`.
extern "C" __global__ void shared_load(u32* out, u32 n, u32 rank) {
    const u32 base = begin(1), word = mapa(base + WORD, rank);
    st_shared(base + WORD, 0);
    cluster_sync();
    u32 at = word;
    for (u32 i = 0; blockIdx.x == 0 && i < n; ++i) {
        const u32 start = clock_now();
        u32 value;
        asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
        at = word + value;
        if (at == 1) return;  // never: the clock waits for the value
        keep(i, clock_now() - start);
    }
    cluster_sync();
    write(out, n);
}

// One box to shared memory: from the instruction until its barrier is seen complete.
extern "C" __global__ void tma_load(const __grid_constant__ TensorMap map, u32* out, u32 n,
                                    u32 nbytes, u32 step) {
    const u32 base = begin(1);
    if (threadIdx.x) return;
    for (u32 i = 0; i < n; ++i) {
        const u32 start = clock_now();
        mbarrier_arrive_expect_tx(base + COPIED, nbytes);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%3, %4}], [%2];" ::"r"(base + TILE),
            "l"(&map), "r"(base + COPIED), "r"(0), "r"(i * step)
            : "memory");
        wait<false>(base + COPIED, i & 1);
        keep(i, clock_now() - start);
    }
    write(out, n);
}

// One box to global memory: until it is read, and until it is written.
extern "C" __global__ void tma_store(const __grid_constant__ TensorMap map, u32* out, u32 n,
                                     u32 step, u32 until_written) {
    const u32 base = begin(1);
    if (threadIdx.x) return;
    for (u32 i = 0; i < n; ++i) {
        const u32 start = clock_now();
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
                &map),
            "r"(base + TILE), "r"(0), "r"(i * step)
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (until_written)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        else
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        keep(i, clock_now() - start);
    }
    write(out, n);
}
