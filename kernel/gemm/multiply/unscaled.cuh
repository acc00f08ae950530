// Part 6. unscaled: the MMAs of elements without scales.
#pragma once
#include "../../hardware/instr_descriptor.cuh"
#include "../../hardware/mma_unscaled.cuh"
#include "../accumulator_stage.cuh"
#include "scale_copies.cuh"

template <u32 CTA_GROUP>
struct UnscaledUmma {
    static constexpr u32 IDESC = instr_descriptor_encode_unscaled(MMA_M, TILE_N, A_CODE, B_CODE);
    u32 taddr;

    __device__ __forceinline__ UnscaledUmma(const SharedStorage&, u32 tmem_base)
        : taddr(tmem_base) {}

    // Issue one MMA of 32 bytes along K.
    __device__ __forceinline__ void issue(bool elected, Stage accumulator,
                                          const BufferDescriptors& buffer, ScaleColumns, WorkTile,
                                          u32 k_block, bool accumulate) const {
        const u32 d = taddr + produced_accumulator(accumulator) * ACCUMULATOR_STRIDE;
        mma_unscaled_mma<CTA_GROUP, OF_16_BITS>(elected, d, buffer.a[k_block], buffer.b[k_block],
                                                IDESC, accumulate);
    }
};

using OneSmUnscaled = UnscaledUmma<1>;
using TwoSmUnscaled = UnscaledUmma<2>;
