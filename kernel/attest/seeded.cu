// seeded: rungs that break on purpose, to see that the ladder goes on.
#include "bounded_wait.cuh"

// Goes on until a word changes that nothing changes.
extern "C" __global__ void hang(u32* out) {
    u32 turns = 0;
    while (*static_cast<volatile u32*>(out) == 0xEEEEEEEE) out[1] = ++turns;
}

// Stores to an address that is nobody's.
extern "C" __global__ void fault(u32* out) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(out[0] + 16ull), "r"(1) : "memory");
}

// Waits for an arrival that does not come.
extern "C" __global__ void stuck(u32* out) {
    mbarrier_init(smem_base(), 1);
    mbarrier_init(smem_base() + 8, 3);
    for (u32 i = 16 + 4 * lane_index(); i < 8 * DUMP_BARRIERS; i += 128)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem_base() + i), "r"(0) : "memory");
    warp_sync();
    const bool done = WAIT(smem_base(), 0);
    if (lane_index() == 0) out[0] = done;
}
