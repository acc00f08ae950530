// staged_loop: how the loop over the subtiles of a half is compiled.
#pragma once
#include "../../hardware/sm.cuh"

template <u32 SUBTILES_TOGETHER, bool LATE>
struct StagedLoop {
    static constexpr u32 UNROLL = SUBTILES_TOGETHER;  // subtiles that are unrolled together
    static constexpr bool RELEASES_LATE = LATE;       // the accumulator, when D is stored
};
