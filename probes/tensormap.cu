// tensormap: fields of a tensor map that a kernel replaces, and copies that use such a map.
#include "probe.cuh"

constexpr int MAP_NBYTES = 128;

// Every field and ordinal, and every code of the fields that take an immediate.
// SPACE is the state space, AT a register that holds the address.
#define REPLACE(SPACE, AT)                                                                     \
    switch (which) {                                                                           \
        case 0: WIDE(SPACE, AT, "global_address", "") break;                                   \
        case 1: NARROW(SPACE, AT, "rank", "") break;                                           \
        case 2: NARROW(SPACE, AT, "box_dim", "0, ") break;                                     \
        case 3: NARROW(SPACE, AT, "box_dim", "1, ") break;                                     \
        case 4: NARROW(SPACE, AT, "box_dim", "2, ") break;                                     \
        case 5: NARROW(SPACE, AT, "box_dim", "3, ") break;                                     \
        case 6: NARROW(SPACE, AT, "box_dim", "4, ") break;                                     \
        case 7: NARROW(SPACE, AT, "global_dim", "0, ") break;                                  \
        case 8: NARROW(SPACE, AT, "global_dim", "1, ") break;                                  \
        case 9: NARROW(SPACE, AT, "global_dim", "2, ") break;                                  \
        case 10: NARROW(SPACE, AT, "global_dim", "3, ") break;                                 \
        case 11: NARROW(SPACE, AT, "global_dim", "4, ") break;                                 \
        case 12: NARROW(SPACE, AT, "element_stride", "0, ") break;                             \
        case 13: NARROW(SPACE, AT, "element_stride", "1, ") break;                             \
        case 14: NARROW(SPACE, AT, "element_stride", "2, ") break;                             \
        case 15: NARROW(SPACE, AT, "element_stride", "3, ") break;                             \
        case 16: NARROW(SPACE, AT, "element_stride", "4, ") break;                             \
        case 17: WIDE(SPACE, AT, "global_stride", "0, ") break;                                \
        case 18: WIDE(SPACE, AT, "global_stride", "1, ") break;                                \
        case 19: WIDE(SPACE, AT, "global_stride", "2, ") break;                                \
        case 20: WIDE(SPACE, AT, "global_stride", "3, ") break;                                \
        case 21: CODE(SPACE, AT, "elemtype", "0") break;                                       \
        case 22: CODE(SPACE, AT, "elemtype", "1") break;                                       \
        case 23: CODE(SPACE, AT, "elemtype", "2") break;                                       \
        case 24: CODE(SPACE, AT, "elemtype", "3") break;                                       \
        case 25: CODE(SPACE, AT, "elemtype", "4") break;                                       \
        case 26: CODE(SPACE, AT, "elemtype", "5") break;                                       \
        case 27: CODE(SPACE, AT, "elemtype", "6") break;                                       \
        case 28: CODE(SPACE, AT, "elemtype", "7") break;                                       \
        case 29: CODE(SPACE, AT, "elemtype", "8") break;                                       \
        case 30: CODE(SPACE, AT, "elemtype", "9") break;                                       \
        case 31: CODE(SPACE, AT, "elemtype", "10") break;                                      \
        case 32: CODE(SPACE, AT, "elemtype", "11") break;                                      \
        case 33: CODE(SPACE, AT, "elemtype", "12") break;                                      \
        case 34: CODE(SPACE, AT, "interleave_layout", "0") break;                              \
        case 35: CODE(SPACE, AT, "interleave_layout", "1") break;                              \
        case 36: CODE(SPACE, AT, "interleave_layout", "2") break;                              \
        case 37: CODE(SPACE, AT, "swizzle_mode", "0") break;                                   \
        case 38: CODE(SPACE, AT, "swizzle_mode", "1") break;                                   \
        case 39: CODE(SPACE, AT, "swizzle_mode", "2") break;                                   \
        case 40: CODE(SPACE, AT, "swizzle_mode", "3") break;                                   \
        case 41: CODE(SPACE, AT, "fill_mode", "0") break;                                      \
        case 42: CODE(SPACE, AT, "fill_mode", "1") break;                                      \
    }
#define WIDE(SPACE, AT, FIELD, ORDINAL)                                                        \
    asm volatile("tensormap.replace.tile." FIELD "." SPACE ".b1024.b64 [%0], " ORDINAL "%1;"   \
                 ::AT, "l"(value) : "memory");
#define NARROW(SPACE, AT, FIELD, ORDINAL)                                                      \
    asm volatile("tensormap.replace.tile." FIELD "." SPACE ".b1024.b32 [%0], " ORDINAL "%1;"   \
                 ::AT, "r"((u32)value) : "memory");
#define CODE(SPACE, AT, FIELD, VALUE)                                                          \
    asm volatile("tensormap.replace.tile." FIELD "." SPACE ".b1024.b32 [%0], " VALUE ";"       \
                 ::AT : "memory");

// Every lane has a map of its own, and a value.
extern "C" __global__ void replace_shared(u32* maps, const u64* values, int which) {
    u32 at = dynamic_base() + MAP_NBYTES * lane_id();
    u64 value = values[lane_id()];
    for (u32 i = 0; i < MAP_NBYTES / 4; ++i) st_shared(at + 4 * i, maps[32 * lane_id() + i]);
    REPLACE("shared::cta", "r"(at))
    for (u32 i = 0; i < MAP_NBYTES / 4; ++i) maps[32 * lane_id() + i] = ld_shared(at + 4 * i);
}

extern "C" __global__ void replace_global(u32* maps, const u64* values, int which) {
    u64 at = (u64)__cvta_generic_to_global(maps + 32 * lane_id());
    u64 value = values[lane_id()];
    REPLACE("global", "l"(at))
}

__device__ inline void load(const void* map, int c0, int c1, u32 dst, u32 mbar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];" ::"r"(dst),
        "l"(map), "r"(mbar), "r"(c0), "r"(c1)
        : "memory");
}

__device__ inline void acquire(const void* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// A map of a small tensor is turned into that of another tensor and used: twice, first by
// way of shared memory, then in place.
extern "C" __global__ void edit_and_load(const __grid_constant__ TensorMap map, u32* edited,
                                         u32* image_out, u64 first, u64 second, u32 columns,
                                         u32 rows, u64 pitch, int c0, int c1, u32 nbytes) {
    u32 mbar = dynamic_base();
    u32 smem_map = mbar + 128;
    u32 image = mbar + IMAGE;
    poison(image, 2 * nbytes);
    if (lane_id() == 0) {
        mbarrier_init(mbar, 1);
        fence_mbarrier_init();
    }
    st_shared(smem_map + 4 * lane_id(), ((const u32*)&map)[lane_id()]);
    __syncwarp();
    if (lane_id() == 0) {
        asm volatile(
            "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;\n"
            "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %2;\n"
            "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %3;\n"
            "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %4;" ::"r"(
                smem_map),
            "l"(first), "r"(columns), "r"(rows), "l"(pitch)
            : "memory");
    }
    __syncwarp();
    u64 global = (u64)__cvta_generic_to_global(edited);
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        " [%0], [%1], 128;" ::"l"(global),
        "r"(smem_map)
        : "memory");
    acquire(edited);
    if (lane_id() == 0) {
        mbarrier_arrive_expect_tx(mbar, nbytes);
        load(edited, c0, c1, image, mbar);
    }
    __syncwarp();
    mbarrier_poll(mbar, 0);
    if (lane_id() == 0) {
        asm volatile(
            "tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(global),
            "l"(second)
            : "memory");
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        acquire(edited);
        mbarrier_arrive_expect_tx(mbar, nbytes);
        load(edited, c0, c1, image + nbytes, mbar);
    }
    __syncwarp();
    mbarrier_poll(mbar, 1);
    dump(image, 2 * nbytes, image_out);
}
