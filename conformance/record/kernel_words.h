// What CUTLASS's headers name of a kernel, for a program that has none: where a thread is, which
// the program may set, and functions that it never calls.
#pragma once
#include <cuda_runtime.h>

static dim3 gridDim, blockIdx, threadIdx, blockDim;
inline void __syncthreads() {}
inline void __syncwarp() {}
inline void __threadfence() {}
template <class... T> int atomicAdd(T...) { return 0; }
template <class... T> int atomicCAS(T...) { return 0; }
template <class... T> int __ffs(T...) { return 0; }
