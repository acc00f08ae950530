// Part 1. idle_warp: a warp that this configuration leaves without work.
#pragma once
#include "shared_storage.cuh"

// Meet the others once, so that their counts hold.
__device__ __forceinline__ void idle_warp(const SharedStorage& storage) { init_barriers(storage); }
