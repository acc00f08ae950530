// void_output: no D; what the formula's nodes store is all that is left.
#pragma once
#include "epilogue_state.cuh"

// CUTLASS's void ElementD: is_destination_supported is false.
struct VoidOutput {
    static __device__ __forceinline__ void write(const Epilogue&, WorkTile, u32, const Subtile&,
                                                 u32) {}
};
