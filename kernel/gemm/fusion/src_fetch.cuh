// src_fetch: C, from the stages that the epilogue load warp fills.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/elements.cuh"
#include "node.cuh"

template <class Element>
struct SrcFetch : Leaf {
    Subtile c;

    // Read this thread's row of the next C subtile.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile, u32) {
        const Stage stage = STORE_RELEASES_C ? e.c.wait_ahead(e.load_wait) : e.c.wait();
        const u32 source = e.storage.c_subtile(stage.index);
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / Element::PER_CHUNK; ++chunk) {
            u32x4 v;
            smem_ld(source + swizzled_offset<C_ROW_NBYTES, LANES>(e.row, chunk), v);
            const u32 words[4] = {v.x, v.y, v.z, v.w};
            Element::decode(words, c + Element::PER_CHUNK * chunk);
        }
        if constexpr (!STORE_RELEASES_C) {
            // The next load of C overwrites the stage through the async proxy.
            smem_fence_proxy_async();
            arrive_on_empty(stage);
        }
    }

    __device__ __forceinline__ float visit(const Visit& v) { return c[v.column]; }
};
