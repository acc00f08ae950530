// in_registers: the formula is computed where tcgen05.ld has put the accumulator.
#pragma once
#include "epilogue_state.cuh"

// Each thread has a row of the accumulator, which is a row of D.
struct InRegisters {
    static __device__ __forceinline__ void place(const Epilogue&, Subtile&) {}
};
