// cluster: multicast, remote arrivals, mapa, and the cluster barrier; one warp per CTA.
#include "probe.cuh"

// Each CTA of the mask expects the box; the issuer may run before another CTA expects.
extern "C" __global__ void multicast_load(const __grid_constant__ TensorMap map, u32* images,
                                          u32* status, u32 issuer, u32 mask, u32 nbytes,
                                          u32 image_nbytes) {
    u32 mbar = dynamic_base(), image = mbar + IMAGE, rank = cluster_ctarank();
    poison(image, image_nbytes);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
    }
    __syncwarp();
    cluster_sync();
    if (lane_id() == 0) {
        if (rank == issuer)
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(image),
                "l"(&map), "r"(mbar), "r"(0), "r"(0), "h"((u16)mask)
                : "memory");
        mbarrier_arrive_expect_tx(mbar, (mask >> rank & 1) ? nbytes : 0);
    }
    __syncwarp();
    u32 done = mbarrier_poll(mbar, 0);
    cluster_sync();
    dump(image, image_nbytes, images + rank * (image_nbytes / 4));
    if (lane_id() == 0) {
        u64 word = mbarrier_inval(mbar);
        u32* mine = status + 4 * rank;
        mine[0] = done;
        mine[1] = rank;
        mine[2] = (u32)word;
        mine[3] = (u32)(word >> 32);
    }
}

// Every CTA arrives once on the mbarrier of every rank; words and addresses are shown.
extern "C" __global__ void remote_arrive(u32* out, u32 size) {
    u32 mbar = dynamic_base(), rank = cluster_ctarank();
    u32* mine = out + 16 * rank;
    if (lane_id() == 0) {
        mbarrier_init(mbar, size);
        fence_mbarrier_init();
    }
    __syncwarp();
    cluster_sync();
    if (lane_id() == 0) {
        for (u32 to = 0; to < size; ++to) {
            u32 remote = mapa(mbar, to);
            mine[4 + to] = remote;
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                             remote)
                         : "memory");
        }
    }
    __syncwarp();
    u32 done = mbarrier_poll(mbar, 0);
    cluster_sync();
    if (lane_id() == 0) {
        u64 word = mbarrier_inval(mbar);
        mine[0] = done;
        mine[1] = rank;
        mine[2] = (u32)word;
        mine[3] = (u32)(word >> 32);
        mine[12] = blockIdx.x;
        mine[13] = blockIdx.y;
        mine[14] = blockIdx.z;
        mine[15] = mbar;
    }
}

// Every CTA writes its rank into a slot of every CTA; after the cluster barrier all are there.
extern "C" __global__ void remote_store(u32* out, u32 size) {
    u32 slots = dynamic_base(), rank = cluster_ctarank();
    cluster_sync();  // the others have started
    if (lane_id() == 0) {
        for (u32 to = 0; to < size; ++to)
            asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(mapa(slots, to) + 4 * rank),
                         "r"(0x100 + rank)
                         : "memory");
    }
    __syncwarp();
    cluster_sync();
    if (lane_id() < size) out[8 * rank + lane_id()] = ld_shared(slots + 4 * lane_id());
}
