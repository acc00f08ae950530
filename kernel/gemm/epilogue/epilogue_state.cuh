// Part 7. epilogue_state: what one thread of an epilogue warp holds.
#pragma once
#include "../shared_storage.cuh"

struct Epilogue {
    const SharedStorage& storage;
    u32 taddr;
    Consumer<ACCUMULATOR_BARRIERS> accumulator;
    Consumer<C_STAGES> c;
    u32 lane;            // first TMEM lane, and first row of the tile, of this warp
    u32 row;             // this thread's row of the tile
    bool issues_stores;  // whether this is the warp that talks to TMA
    u32 d_stage = 0;
};

using Subtile = float[SUBTILE_N];  // one row of it
