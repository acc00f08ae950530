// alloc: TMEM columns taken and given back by one warp; the addresses that came out.
#include "../hardware/smem.cuh"
#include "../hardware/tmem.cuh"

__device__ __forceinline__ u32 take(u32 columns) {
    tmem_alloc<1>(smem_base(), columns);
    warp_sync();
    return smem_ld(smem_base());
}

extern "C" __global__ void alloc(u32* out) {
    const u32 whole = take(512);
    tmem_dealloc<1>(whole, 512);
    const u32 half = take(256), quarter = take(128), last = take(32);
    tmem_dealloc<1>(quarter, 128);
    const u32 again = take(32);  // where the quarter was, or behind the last
    tmem_dealloc<1>(half, 256);
    const u32 front = take(32);
    tmem_dealloc<1>(last, 32);
    tmem_dealloc<1>(again, 32);
    tmem_dealloc<1>(front, 32);
    tmem_relinquish_alloc_permit<1>();
    const u32 found[6] = {whole, half, quarter, last, again, front};
    if (lane_index() == 0)
        for (u32 i = 0; i < 6; ++i) out[i] = found[i];
}
