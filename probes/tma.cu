// tma: one box from global to shared memory, or back; all bytes around it are shown.
#include "probe.cuh"

struct Box {
    int rank, c0, c1, c2, c3, c4;
};

__device__ void load(const TensorMap* map, Box b, u32 dst, u32 mbar) {
#define LOAD(N, COORDS, ...)                                                                   \
    asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.tile.mbarrier::"         \
                 "complete_tx::bytes [%0], [%1, " COORDS "], [%2];" ::"r"(dst),                 \
                 "l"(map), "r"(mbar), __VA_ARGS__                                               \
                 : "memory")
    if (b.rank == 1) LOAD(1, "{%3}", "r"(b.c0));
    if (b.rank == 2) LOAD(2, "{%3, %4}", "r"(b.c0), "r"(b.c1));
    if (b.rank == 3) LOAD(3, "{%3, %4, %5}", "r"(b.c0), "r"(b.c1), "r"(b.c2));
    if (b.rank == 4) LOAD(4, "{%3, %4, %5, %6}", "r"(b.c0), "r"(b.c1), "r"(b.c2), "r"(b.c3));
    if (b.rank == 5)
        LOAD(5, "{%3, %4, %5, %6, %7}", "r"(b.c0), "r"(b.c1), "r"(b.c2), "r"(b.c3), "r"(b.c4));
#undef LOAD
}

__device__ void store(const TensorMap* map, Box b, u32 src) {
#define STORE(N, COORDS, ...)                                                                  \
    asm volatile("cp.async.bulk.tensor." #N "d.global.shared::cta.tile.bulk_group"             \
                 " [%1, " COORDS "], [%0];" ::"r"(src),                                         \
                 "l"(map), __VA_ARGS__                                                          \
                 : "memory")
    if (b.rank == 1) STORE(1, "{%2}", "r"(b.c0));
    if (b.rank == 2) STORE(2, "{%2, %3}", "r"(b.c0), "r"(b.c1));
    if (b.rank == 3) STORE(3, "{%2, %3, %4}", "r"(b.c0), "r"(b.c1), "r"(b.c2));
    if (b.rank == 4) STORE(4, "{%2, %3, %4, %5}", "r"(b.c0), "r"(b.c1), "r"(b.c2), "r"(b.c3));
    if (b.rank == 5)
        STORE(5, "{%2, %3, %4, %5, %6}", "r"(b.c0), "r"(b.c1), "r"(b.c2), "r"(b.c3), "r"(b.c4));
#undef STORE
}

// status: done, 0, and the raw 64-bit word of the mbarrier, which shows the bytes credited.
extern "C" __global__ void tma_load(const __grid_constant__ TensorMap map, u32* image_out,
                                    u32* status, int rank, int c0, int c1, int c2, int c3, int c4,
                                    u32 offset, u32 expected, u32 image_nbytes) {
    u32 mbar = dynamic_base();
    u32 image = mbar + IMAGE;
    poison(image, image_nbytes);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(mbar, expected);
        load(&map, Box{rank, c0, c1, c2, c3, c4}, image + offset, mbar);
    }
    __syncwarp();
    u32 done = mbarrier_poll(mbar, 0);
    dump(image, image_nbytes, image_out);
    if (lane_id() == 0) {
        u64 word = mbarrier_inval(mbar);
        status[0] = done;
        status[1] = 0;
        status[2] = (u32)word;
        status[3] = (u32)(word >> 32);
    }
}

extern "C" __global__ void tma_store(const __grid_constant__ TensorMap map, const u32* image_in,
                                     int rank, int c0, int c1, int c2, int c3, int c4, u32 offset,
                                     u32 image_nbytes) {
    u32 image = dynamic_base() + IMAGE;
    for (u32 i = 4 * lane_id(); i < image_nbytes; i += 128) st_shared(image + i, image_in[i / 4]);
    fence_proxy_async();
    __syncwarp();
    if (lane_id() == 0) {
        store(&map, Box{rank, c0, c1, c2, c3, c4}, image + offset);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
