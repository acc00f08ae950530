// Part 7. direct_writer: a subtile is left without shared memory.
//
// No TMA store reads what is written here, so there is no stage to wait for, no fence and no
// barrier of the epilogue warps.
#pragma once
#include "../parts.cuh"
#include "epilogue_state.cuh"

// Write what this thread has of D, if there is one, and what its nodes store.
__device__ __forceinline__ void leave_subtile(Epilogue& e, Fusion& fusion, WorkTile work,
                                              u32 subtile, const Subtile& z) {
    Output::write(e, work, subtile, z, 0);
    walk(fusion, [&](auto& node) { node.postreduce(e, work, subtile); });
}
