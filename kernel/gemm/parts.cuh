// Parts 1 to 8. parts: which piece does each job; every choice is made here, once.
//
// Written by fp4ref.cuda_kernel.choices from fp4ref.gemm.parts. These are
// the choices of GemmConfig(); those of what is compiled take their place.
#pragma once
#include "epilogue/convert.cuh"
#include "epilogue/fixup.cuh"
#include "epilogue/in_registers.cuh"
#include "fusion/acc_fetch.cuh"
#include "fusion/alpha.cuh"
#include "fusion/constant.cuh"
#include "fusion/fma.cuh"
#include "fusion/multiply.cuh"
#include "load/load_order.cuh"
#include "load/tma_loader.cuh"
#include "multiply/allocator.cuh"
#include "multiply/one_sm.cuh"
#include "tiles/clc_request.cuh"
#include "tiles/clc_scheduler.cuh"
#include "tiles/throttle.cuh"

using TileScheduler = ClcTileScheduler;
using ClcRequest = TileRequest;
using Throttle = ClcThrottle;
using Loader = TmaLoader;
using LoadOrderBarrier = NoLoadOrder;
using Allocator = Allocator1Sm;
using Multiplier = OneSm;
using Fusion = Fma<Constant<0x00000000>, Constant<0x00000000>, Multiply<Alpha, AccFetch>>;
using Output = Convert<F32>;
using Fixup = NoFixup;
using ElementWise = InRegisters;
