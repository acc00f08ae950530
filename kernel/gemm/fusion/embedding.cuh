// embedding: a table in BF16, one of whose rows is that of each row of D.
//
// Row m of D has row m mod P of a table of P rows: a position embedding, where the rows of D are
// the positions of one sequence after another.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../numerics/formats.cuh"
#include "node.cuh"

// TABLE and ROWS are fields of the parameter block: its address, and P.
template <auto TABLE, auto ROWS>
struct Embedding : Leaf {
    static constexpr u32 PER_CHUNK = 8;  // elements of an access of 16 bytes
    u64 row;
    u32 words[SUBTILE_N / 2];  // pairs of elements

    // A thread has one row of D in all of a tile.
    __device__ __forceinline__ void begin(Epilogue& e, WorkTile work) {
        const GemmParams& params = e.storage.params;
        const u32 pitch = (params.d_columns() * 2 + 15) / 16 * 16;
        row = params.*TABLE + static_cast<u64>(e.d_row(work, 0) % (params.*ROWS)) * pitch;
    }

    // Read a row for each of D's, 16 bytes at a time; beyond D is 0.
    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        const GemmParams& params = e.storage.params;
        const bool inside = e.d_row(work, subtile) < params.d_rows();
        const u32 first = e.d_column(work, subtile);
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / PER_CHUNK; ++chunk) {
            u32 read[4] = {0, 0, 0, 0};
            const u32 column = first + PER_CHUNK * chunk;
            if (inside && column < params.d_columns()) gmem_ld_each(row + column * 2, read);
#pragma unroll
            for (u32 i = 0; i < 4; ++i) words[4 * chunk + i] = read[i];
        }
    }

    __device__ __forceinline__ float visit(const Visit& v) {
        float first, second;
        decode_bf16(words[v.column / 2], first, second);
        return v.column % 2 ? second : first;
    }
};
