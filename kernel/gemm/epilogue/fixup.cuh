// Part 7. fixup: how the splits of an output tile come together.
//
// The first split with k-tiles stores its accumulators to the tile's place in the workspace.
// Each one after it waits until the tile's lock says that all k-tiles before its own are in,
// and adds: workspace + accumulator. The last one keeps the sum and computes the epilogue.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../hardware/named_barrier.cuh"
#include "../../numerics/arithmetic.cuh"
#include "epilogue_state.cuh"

constexpr u32 CHUNK = 4;  // elements of an access of 16 bytes

// Every work unit has all k-tiles of its output tile.
struct NoFixup {
    static __device__ __forceinline__ bool computes_epilogue(const Epilogue&, WorkTile) {
        return true;
    }
    static __device__ __forceinline__ void wait(const Epilogue&, WorkTile) {}
    static __device__ __forceinline__ void load_add(const Epilogue&, WorkTile, u32, Subtile&) {}
    static __device__ __forceinline__ void store(const Epilogue&, WorkTile, u32, const Subtile&) {}
    static __device__ __forceinline__ void arrive(const Epilogue&, WorkTile) {}
};

// Global address of 16 bytes of this thread's sums. Threads lie next to each other, so that a
// warp's access is one run of bytes.
__device__ __forceinline__ u64 sum_addresses(const Epilogue& e, WorkTile work, u32 subtile,
                                             u32 chunk) {
    const GemmParams& params = e.storage.params;
    const u64 place = u64{params.grid().output_tile_index(work)} * SUMS_NBYTES;
    const u32 access = subtile * (SUBTILE_N / CHUNK) + chunk;
    return params.workspace + place + 4 * CHUNK * (access * EPILOGUE_THREADS + e.row);
}

// Global address of the tile's lock, behind the sums of all tiles.
__device__ __forceinline__ u64 lock_address(const Epilogue& e, WorkTile work) {
    const TileGrid grid = e.storage.params.grid();
    const u64 locks = e.storage.params.workspace + u64{grid.output_tiles()} * SUMS_NBYTES;
    return locks + 4 * grid.output_tile_index(work);
}

// A place in the workspace and a lock for each output tile.
struct SplitKFixup {
    // Whether this split has the tile's last k-tile.
    static __device__ __forceinline__ bool computes_epilogue(const Epilogue& e, WorkTile work) {
        return e.storage.params.split_k().is_final_split(work.split);
    }

    // Wait until the lock is this split's first k-tile. One thread looks; the barrier passes on
    // to the others what it has seen.
    static __device__ __forceinline__ void wait(const Epilogue& e, WorkTile work) {
        const u32 k_idx = e.storage.params.split_k().k_idx(work.split);
        if (k_idx == 0) return;
        if (e.row == 0) gmem_wait_eq(lock_address(e, work), k_idx);
        named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    }

    // workspace + accumulator; the first split's accumulators alone.
    static __device__ __forceinline__ void load_add(const Epilogue& e, WorkTile work, u32 subtile,
                                                    Subtile& acc) {
        if (e.storage.params.split_k().k_idx(work.split) == 0) return;
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / CHUNK; ++chunk) {
            float before[CHUNK];
            gmem_ld_each(sum_addresses(e, work, subtile, chunk), before);
#pragma unroll
            for (u32 j = 0; j < CHUNK; ++j)
                acc[CHUNK * chunk + j] = add_f32(before[j], acc[CHUNK * chunk + j]);
        }
    }

    // Write the sum to the workspace, 16 bytes of a thread at a time.
    static __device__ __forceinline__ void store(const Epilogue& e, WorkTile work, u32 subtile,
                                                 const Subtile& acc) {
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / CHUNK; ++chunk)
            gmem_st(sum_addresses(e, work, subtile, chunk), acc + CHUNK * chunk);
    }

    // Add this split's k-tiles to the lock, once all threads have stored. The release covers
    // what came before the barrier.
    static __device__ __forceinline__ void arrive(const Epilogue& e, WorkTile work) {
        named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
        const u32 count = e.storage.params.split_k().k_tile_count(work.split);
        if (e.row == 0) gmem_red_release(lock_address(e, work), count);
    }
};
