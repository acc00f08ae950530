// store_group: how many halves may still be read when the next one is written.
#pragma once
#include "staged_rows.cuh"

// A warp with all halves writes one while the others are read. Where two warps share a quarter
// some have one half alone, which they wait for, and the others do so too.
constexpr u32 PENDING_HALVES = EPILOGUE_WARPS == QUARTERS ? STORE_STAGES - 1 : 0;
