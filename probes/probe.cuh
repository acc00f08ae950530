// probe: one-line wrappers of the PTX that the probes share.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(128) TensorMap {
    u64 opaque[16];
};

// A wait that gives up, so that a probe of wrong byte counts ends and can show the barrier.
constexpr u32 POLLS = 1 << 16;
constexpr u32 POISON = 0xA5A5A5A5;

__device__ inline u32 lane_id() { return threadIdx.x & 31; }

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ inline void st_shared(u32 at, u32 value) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

__device__ inline u32 ld_shared(u32 at) {
    u32 value;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
    return value;
}

__device__ inline u64 ld_shared_b64(u32 at) {
    u64 value;
    asm volatile("ld.shared.b64 %0, [%1];" : "=l"(value) : "r"(at) : "memory");
    return value;
}

__device__ inline void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void mbarrier_init(u32 mbar, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbar), "r"(count) : "memory");
}

// Ends the mbarrier and returns its word. A live mbarrier's word is not in shared memory:
// the unit that counts keeps it until the barrier is invalidated.
__device__ inline u64 mbarrier_inval(u32 mbar) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(mbar) : "memory");
    return ld_shared_b64(mbar);
}

__device__ inline void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void mbarrier_arrive_expect_tx(u32 mbar, u32 nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbar), "r"(nbytes)
                 : "memory");
}

__device__ inline u32 mbarrier_test_wait(u32 mbar, u32 parity) {
    u32 done;
    asm volatile(
        "{ .reg .pred p;\n"
        "  mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(mbar), "r"(parity)
        : "memory");
    return done;
}

__device__ inline u32 mbarrier_poll(u32 mbar, u32 parity) {
    u32 done = 0;
    for (u32 i = 0; i < POLLS && !done; ++i) done = mbarrier_test_wait(mbar, parity);
    return done;
}

__device__ inline u32 cluster_ctarank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ inline u32 mapa(u32 address, u32 rank) {
    u32 mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The dynamic shared memory of every probe: an mbarrier, then the image at the next 1 KB.
__device__ inline u32 dynamic_base() {
    extern __shared__ u32 dynamic[];
    return shared_address(dynamic);
}

constexpr u32 IMAGE = 1024;

__device__ inline void poison(u32 image, u32 nbytes) {
    for (u32 i = 4 * lane_id(); i < nbytes; i += 128) st_shared(image + i, POISON);
    fence_proxy_async();
    __syncwarp();
}

__device__ inline void dump(u32 image, u32 nbytes, u32* out) {
    __syncwarp();
    for (u32 i = 4 * lane_id(); i < nbytes; i += 128) out[i / 4] = ld_shared(image + i);
}
