// bulk_groups: two buffers, eight stores; wait_group.read frees a buffer for the next fill.
#include "probe.cuh"

extern "C" __global__ void stores(const __grid_constant__ TensorMap map, u32 tiles, u32 nbytes) {
    u32 image = dynamic_base() + IMAGE;
    for (u32 tile = 0; tile < tiles; ++tile) {
        u32 buffer = image + (tile & 1) * nbytes;
        if (lane_id() == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncwarp();
        for (u32 i = 4 * lane_id(); i < nbytes; i += 128)
            st_shared(buffer + i, tile << 24 | i * 2654435761u >> 8);
        fence_proxy_async();
        __syncwarp();
        if (lane_id() == 0) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                         " [%1, {%2, %3}], [%0];" ::"r"(buffer),
                         "l"(&map), "r"(0), "r"(tile * 8)
                         : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();
    }
    if (lane_id() == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
