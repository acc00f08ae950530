// Part 3. descriptors: matrix descriptors of a stage, and the steps of its K blocks.
#pragma once
#include "../hardware/smem.cuh"
#include "../hardware/tcgen05.cuh"
#include "plan.cuh"

constexpr u32 SWIZZLE_NONE = 0, SWIZZLE_128B = 2;  // codes of the matrix descriptor

// Matrix descriptor of an A or B stage: K-major, 128-byte swizzle, 8 rows 1024 bytes apart.
__device__ __forceinline__ constexpr u64 operand_descriptor(u32 address) {
    return smem_descriptor(address, 16, 1024, SWIZZLE_128B);
}

// Matrix descriptor of a scale atom for tcgen05.cp: rows of 16 bytes.
__device__ __forceinline__ constexpr u64 scale_descriptor(u32 address) {
    return smem_descriptor(address, 16, 128, SWIZZLE_NONE);
}

constexpr u32 K_BLOCK_STEP = ROW_NBYTES >> 4;  // 32 bytes of an operand row
constexpr u32 SF_BLOCK_STEP = 512 >> 4;       // one scale atom
constexpr u32 SF_COLUMNS = 4;                 // of TMEM, for one scale atom

// Matrix descriptors of one k-tile's buffers: of the operands for each MMA along K, of the scales
// for each atom. Without scales a place for one stays empty: C++ has no arrays of none.
struct alignas(16) BufferDescriptors {
    u64 a[K_BLOCKS], b[K_BLOCKS];
    u64 sfa[SF_ATOMS ? SF_ATOMS : 1], sfb[SFB_BLOCKS ? SFB_BLOCKS : 1][SF_ATOMS ? SF_ATOMS : 1];
};

// Where an atom of SFB is: one after the other the parts that the CTAs of a column sent, and in
// each the atoms of a row block side by side.
__device__ __forceinline__ constexpr u32 sfb_atom(u32 block, u32 along_k) {
    constexpr u32 ATOMS = SF_ATOMS > SFB_PARTS ? SF_ATOMS / SFB_PARTS : 1;
    return (along_k / ATOMS * SFB_BLOCKS + block) * ATOMS + along_k % ATOMS;
}

struct Descriptors {
    BufferDescriptors buffers[MAINLOOP_STAGES * K_GROUP];
};

__device__ constexpr Descriptors all_descriptors() {
    Descriptors all = {};
    for (u32 i = 0; i < MAINLOOP_STAGES * K_GROUP; ++i) {
        const u32 base = smem_map::BASE;
        BufferDescriptors& buffer = all.buffers[i];
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block) {
            const u32 k = k_block * K_BLOCK_STEP;
            buffer.a[k_block] = operand_descriptor(base + smem_map::A + i * A_NBYTES) + k;
            buffer.b[k_block] = operand_descriptor(base + smem_map::B + i * B_NBYTES) + k;
        }
        const u64 sfa = scale_descriptor(base + smem_map::SFA + i * SFA_NBYTES);
        const u64 sfb = scale_descriptor(base + smem_map::SFB + i * SFB_NBYTES);
        for (u32 along_k = 0; along_k < SF_ATOMS; ++along_k) {
            buffer.sfa[along_k] = sfa + along_k * SF_BLOCK_STEP;
            for (u32 block = 0; block < SFB_BLOCKS; ++block)
                buffer.sfb[block][along_k] = sfb + sfb_atom(block, along_k) * SF_BLOCK_STEP;
        }
    }
    return all;
}

// A constant load brings a descriptor in one instruction; building it takes two. No constexpr: the
// compiler would know their values, and build them.
__constant__ Descriptors DESCRIPTORS = all_descriptors();
