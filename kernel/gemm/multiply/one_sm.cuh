// Part 6. one_sm: the MMA of one SM, 128 rows of D.
#pragma once
#include "../../hardware/instr_descriptor.cuh"
#include "../../layout/tmem_scales.cuh"
#include "../accumulator_stage.cuh"
#include "scale_copies.cuh"

constexpr u32 SCALE_VEC = 4 / K_BLOCKS_PER_ATOM;  // scales of a row in one MMA
constexpr u32 SF_ID = 1u << 29 | 1u << 4;         // of A and of B, in the instruction descriptor

// The block-scaled MMA of one kind.
template <class Kind>
struct Umma {
    u32 taddr, idesc;

    __device__ __forceinline__ Umma(const SharedStorage& storage, u32 tmem_base)
        : taddr(tmem_base),
          idesc(instr_descriptor_encode(MMA_M, TILE_N, A_CODE, B_CODE,
                                        storage.params.scale_type)) {}

    // Issue one MMA of 32 bytes along K. Frames 6.6.6 to 6.6.12.
    __device__ __forceinline__ void issue(bool elected, Stage accumulator,
                                          const BufferDescriptors& buffer, ScaleColumns scales,
                                          WorkTile work, u32 k_block, bool accumulate) const {
        const u32 d = taddr + produced_accumulator(accumulator) * ACCUMULATOR_STRIDE;
        const u32 shift = sfb_column_shift(TILE_N, work.n);
        const u32 atom = k_block / K_BLOCKS_PER_ATOM;
        const u32 sf_id = k_block % K_BLOCKS_PER_ATOM * SCALE_VEC;
        Kind::multiply(elected, d, buffer.a[k_block], buffer.b[k_block], idesc + sf_id * SF_ID,
                       {scales.sfa + atom * SFA_COLUMNS, scales.sfb + atom * SFB_COLUMNS + shift},
                       accumulate);
    }
};

template <u32 CTA_GROUP>
struct Mxf4nvf4 {
    static __device__ __forceinline__ void multiply(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                    u32 idesc, ScaleColumns scales,
                                                    bool accumulate) {
        tcgen05_mma<CTA_GROUP, SCALE_VEC>(elected, d, a_desc, b_desc, idesc, scales.sfa,
                                          scales.sfb, accumulate);
    }
};

using OneSm = Umma<Mxf4nvf4<1>>;
