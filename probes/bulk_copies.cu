// bulk_copies: copies and reductions in bulk between CTAs and into global memory.
#include "probe.cuh"

#define COPY "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
#define INTO_SHARED "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
#define INTO_GLOBAL "cp.reduce.async.bulk.global.shared::cta.bulk_group."
#define COMPLETE "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"

constexpr u32 NBYTES = 512;

#define TO_SHARED(OP)                                                                          \
    asm volatile(OP " [%0], [%1], %2, [%3];" ::"r"(dst), "r"(src), "r"(NBYTES), "r"(mbar)      \
                 : "memory")
#define TO_GLOBAL(OP)                                                                          \
    asm volatile(OP " [%0], [%1], %2;\n" COMPLETE ::"l"(dst), "r"(src), "r"(NBYTES) : "memory")

__device__ void into_shared(u32 which, u32 dst, u32 src, u32 mbar) {
    switch (which) {
        case 0: TO_SHARED(COPY); break;
        case 1: TO_SHARED(INTO_SHARED "add.u32"); break;
        case 2: TO_SHARED(INTO_SHARED "add.s32"); break;
        case 3: TO_SHARED(INTO_SHARED "add.u64"); break;
        case 4: TO_SHARED(INTO_SHARED "min.u32"); break;
        case 5: TO_SHARED(INTO_SHARED "min.s32"); break;
        case 6: TO_SHARED(INTO_SHARED "max.u32"); break;
        case 7: TO_SHARED(INTO_SHARED "max.s32"); break;
        case 8: TO_SHARED(INTO_SHARED "inc.u32"); break;
        case 9: TO_SHARED(INTO_SHARED "dec.u32"); break;
        case 10: TO_SHARED(INTO_SHARED "and.b32"); break;
        case 11: TO_SHARED(INTO_SHARED "or.b32"); break;
        case 12: TO_SHARED(INTO_SHARED "xor.b32"); break;
    }
}

__device__ void into_global(u32 which, u32* dst, u32 src) {
    switch (which) {
        case 0: TO_GLOBAL("cp.async.bulk.global.shared::cta.bulk_group"); break;
        case 1: TO_GLOBAL(INTO_GLOBAL "add.u32"); break;
        case 2: TO_GLOBAL(INTO_GLOBAL "add.s32"); break;
        case 3: TO_GLOBAL(INTO_GLOBAL "add.u64"); break;
        case 4: TO_GLOBAL(INTO_GLOBAL "add.f32"); break;
        case 5: TO_GLOBAL(INTO_GLOBAL "add.f64"); break;
        case 6: TO_GLOBAL(INTO_GLOBAL "add.noftz.f16"); break;
        case 7: TO_GLOBAL(INTO_GLOBAL "add.noftz.bf16"); break;
        case 8: TO_GLOBAL(INTO_GLOBAL "min.u32"); break;
        case 9: TO_GLOBAL(INTO_GLOBAL "min.s32"); break;
        case 10: TO_GLOBAL(INTO_GLOBAL "min.u64"); break;
        case 11: TO_GLOBAL(INTO_GLOBAL "min.s64"); break;
        case 12: TO_GLOBAL(INTO_GLOBAL "min.f16"); break;
        case 13: TO_GLOBAL(INTO_GLOBAL "min.bf16"); break;
        case 14: TO_GLOBAL(INTO_GLOBAL "max.u32"); break;
        case 15: TO_GLOBAL(INTO_GLOBAL "max.s32"); break;
        case 16: TO_GLOBAL(INTO_GLOBAL "max.u64"); break;
        case 17: TO_GLOBAL(INTO_GLOBAL "max.s64"); break;
        case 18: TO_GLOBAL(INTO_GLOBAL "max.f16"); break;
        case 19: TO_GLOBAL(INTO_GLOBAL "max.bf16"); break;
        case 20: TO_GLOBAL(INTO_GLOBAL "inc.u32"); break;
        case 21: TO_GLOBAL(INTO_GLOBAL "dec.u32"); break;
        case 22: TO_GLOBAL(INTO_GLOBAL "and.b32"); break;
        case 23: TO_GLOBAL(INTO_GLOBAL "and.b64"); break;
        case 24: TO_GLOBAL(INTO_GLOBAL "or.b32"); break;
        case 25: TO_GLOBAL(INTO_GLOBAL "or.b64"); break;
        case 26: TO_GLOBAL(INTO_GLOBAL "xor.b32"); break;
        case 27: TO_GLOBAL(INTO_GLOBAL "xor.b64"); break;
    }
}

__device__ inline void fill(u32 image, const u32* from) {
    for (u32 i = lane_id(); i < NBYTES / 4; i += 32) st_shared(image + 4 * i, from[i]);
    fence_proxy_async();
    __syncwarp();
}

// Rank 0 sends its bytes to rank 1. Both have an mbarrier at the same offset; rank 1 alone
// expects bytes.
extern "C" __global__ void to_peer(const u32* source, const u32* old, u32* out, u32* status,
                                   u32 which) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE, rank = cluster_ctarank();
    fill(image, rank ? old : source);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        if (rank) mbarrier_arrive_expect_tx(mbar, NBYTES);
    }
    __syncwarp();
    cluster_sync();
    if (lane_id() == 0 && rank == 0) into_shared(which, mapa(image, 1), image, mapa(mbar, 1));
    u32 done = rank ? mbarrier_poll(mbar, 0) : 0;
    cluster_sync();
    dump(image, NBYTES, out + rank * (NBYTES / 4));
    if (lane_id() == 0) {
        u64 word = mbarrier_inval(mbar);
        u32* mine = status + 4 * rank;
        mine[0] = done;
        mine[1] = rank;
        mine[2] = (u32)word;
        mine[3] = (u32)(word >> 32);
    }
}

extern "C" __global__ void to_global(const u32* source, u32* out, u32 which) {
    u32 image = dynamic_base();
    fill(image, source);
    if (lane_id() == 0) into_global(which, out, image);
}

// The source is in the other CTA: a copy or a sum into the own memory, or into global memory.
extern "C" __global__ void from_peer(const u32* source, const u32* old, u32* out, u32 which) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE, rank = cluster_ctarank();
    fill(image, rank ? source : old);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(mbar, rank || which > 1 ? 0 : NBYTES);
    }
    __syncwarp();
    cluster_sync();
    if (lane_id() == 0 && rank == 0) {
        if (which < 2)
            into_shared(which, image, mapa(image, 1), mbar);
        else
            into_global(which - 2, out, mapa(image, 1));
    }
    __syncwarp();
    mbarrier_poll(mbar, 0);
    cluster_sync();
    if (rank == 0 && which < 2) dump(image, NBYTES, out);
}

// All CTAs add to the same words, many times, and nothing orders one after another.
extern "C" __global__ void sums(u32* out, u32 rounds) {
    u32 image = dynamic_base();
    for (u32 i = lane_id(); i < NBYTES / 4; i += 32) st_shared(image + 4 * i, blockIdx.x + i);
    fence_proxy_async();
    __syncwarp();
    if (lane_id() == 0)
        for (u32 i = 0; i < rounds; ++i) into_global(1, out, image);
}

// A thread asks for many bytes, then for few: by cp.async (0), a bulk load (1) or a bulk copy
// within the CTA (2). A warp waits for each; was the second ever there first?
extern "C" __global__ void younger_first(const u8* in, u32* out, u32 which, u32 rounds,
                                         u32 nbytes) {
    u32 older = dynamic_base(), younger = older + 8, tickets = older + 16, image = older + IMAGE;
    u32 last = image + nbytes, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        mbarrier_init(older, 1);
        mbarrier_init(younger, 1);
        fence_mbarrier_init();
        st_shared(tickets, 0);
        for (u32 i = 16; i < 32; i += 4) st_shared(last + i, POISON);
        fence_proxy_async();
    }
    for (u32 round = 0; round < rounds; ++round) {
        __syncthreads();
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect_tx(older, nbytes);
            if (which) mbarrier_arrive_expect_tx(younger, 16);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1], %2, [%3];" ::"r"(image),
                "l"(in), "r"(nbytes), "r"(older)
                : "memory");
            if (which == 0)
                asm volatile(
                    "cp.async.ca.shared.global [%0], [%1], 16;\n"
                    "cp.async.mbarrier.arrive.noinc.shared.b64 [%2];" ::"r"(last),
                    "l"(in), "r"(younger)
                    : "memory");
            if (which == 1)
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                    " [%0], [%1], 16, [%2];" ::"r"(last),
                    "l"(in), "r"(younger)
                    : "memory");
            if (which == 2)
                asm volatile(COPY " [%0], [%1], 16, [%2];" ::"r"(last), "r"(last + 16),
                             "r"(younger)
                             : "memory");
        }
        __syncwarp();
        mbarrier_poll(warp ? younger : older, round & 1);
        u32 ticket;
        if (lane_id() == 0) {
            asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(ticket) : "r"(tickets) : "memory");
            if (warp && (ticket & 1) == 0) out[0] = 1;
        }
    }
}
