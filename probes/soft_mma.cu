// soft_mma: the soft tensor core's unit alone, on an image of shared memory and its operations.
#include "../kernel/soft_hardware/tensor_core.cuh"

// One warp. Out: `columns` columns of TMEM, each of 128 lanes, read as by four warps.
extern "C" __global__ void soft_mma(const u32* image, u32 words, const Operation* operations,
                                    u32 count, u32* out, u32 columns) {
    for (u32 i = lane_index(); i < words; i += 32) shared_st(smem_base() + 4 * i, image[i]);
    warp_sync();
    for (u32 i = 0; i < count; ++i) {
        unit_execute<1>(operations[i]);
        warp_sync();
    }
    for (u32 i = lane_index(); i < 128 * columns; i += 32)
        out[i] = tmem_read(tmem_cell((i & 96) << 16 | i / 128, i % 32), 0);
}
