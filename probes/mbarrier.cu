// mbarrier: one thread runs every prefix of a script; the raw 64-bit word after each is shown.
#include "probe.cuh"

// Operations are bits, so that the compiler makes no jump table.
constexpr u32 INIT = 1, ARRIVE = 2, EXPECT_TX = 4, COMPLETE_TX = 8, ARRIVE_EXPECT_TX = 16,
              TEST_WAIT = 32;

__device__ u32 apply(u32 mbar, u32 op, u32 operand) {
    if (op == INIT) mbarrier_init(mbar, operand);
    if (op == ARRIVE)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(mbar), "r"(operand)
                     : "memory");
    if (op == EXPECT_TX)
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbar),
                     "r"(operand)
                     : "memory");
    if (op == COMPLETE_TX)
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbar),
                     "r"(operand)
                     : "memory");
    if (op == ARRIVE_EXPECT_TX) mbarrier_arrive_expect_tx(mbar, operand);
    if (op == TEST_WAIT) return mbarrier_test_wait(mbar, operand);
    return 0;
}

extern "C" __global__ void mbarrier_script(const u32* script, u64* words, u32* results, u32 n) {
    u32 mbar = dynamic_base();
    if (threadIdx.x != 0) return;
    for (u32 last = 0; last < n; ++last) {
        u32 result = 0;
        for (u32 i = 0; i <= last; ++i) result = apply(mbar, script[2 * i], script[2 * i + 1]);
        words[last] = mbarrier_inval(mbar);
        results[last] = result;
    }
}

// The word of a live mbarrier as ld.shared sees it, and after mbarrier.inval.
extern "C" __global__ void live_word(u64* out) {
    u32 mbar = dynamic_base();
    if (threadIdx.x != 0) return;
    st_shared(mbar, POISON);
    st_shared(mbar + 4, POISON);
    mbarrier_init(mbar, 3);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 1;" ::"r"(mbar) : "memory");
    out[2] = mbarrier_test_wait(mbar, 1);
    out[0] = ld_shared_b64(mbar);
    out[1] = mbarrier_inval(mbar);
}
