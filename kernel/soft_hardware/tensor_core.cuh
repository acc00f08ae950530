// tensor_core: a warp that does what tcgen05 asks for, after the warps that ask.
//
// It decodes the matrix descriptors, the instruction descriptor and the TMEM addresses, and
// reads the swizzled shared memory. Lane t has lanes t, t + 32, t + 64 and t + 96 of TMEM. Of a
// pair each CTA has a unit, which computes the rows of D of its own TMEM; B it reads in both.
#pragma once
#include "cta_pair.cuh"
#include "flip.cuh"
#include "integer_elements.cuh"
#include "integer_mma.cuh"
#include "tensor_core_queue.cuh"

constexpr u32 TENSOR_CORE_THREADS = 64;  // the unit and the relay

// Which CTA of a pair this is.
template <u32 CTA_GROUP>
__device__ __forceinline__ u32 own_part() {
    return leads_pair<CTA_GROUP>() ? 0 : 1;
}

// Sixteen bytes of a K-major tile in one CTA of a pair: chunk `chunk` of row `row`.
template <u32 CTA_GROUP>
__device__ __forceinline__ u32x4 tile_chunk(u64 desc, u32 row, u32 chunk, u32 part) {
    const u32 start = (desc & 0x3fff) << 4, leading = (desc >> 16 & 0x3fff) << 4;
    const u32 stride = (desc >> 32 & 0x3fff) << 4, swizzle = desc >> 61;
    const u32 chunks = swizzle == 0 ? 1 : swizzle == 6 ? 2 : swizzle == 4 ? 4 : 8;
    u32 address = start + row / 8 * stride + row % 8 * chunks * 16;
    address += chunk * (swizzle == 0 ? leading : 16);
    address ^= (address >> 7 & (chunks - 1)) << 4;
    u32x4 words;
    // A descriptor names an offset in the CTA; an address has the CTA's rank in its high bits.
    pair_ld<CTA_GROUP>(smem_base() & 0xff000000 | address, part, words);
    return words;
}

// 32x128b.warpx4: row r to lanes r, r + 32, r + 64 and r + 96.
__device__ __forceinline__ void unit_copy(const Operation& op) {
    const u32x4 row = tile_chunk<1>(op.a, lane_index(), 0, 0);
#pragma unroll
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        const u64 cell = tmem_cell(op.d, lane_index() + 32 * quarter);
        tmem_write(cell, 0, row.x);
        tmem_write(cell, 1, row.y);
        tmem_write(cell, 2, row.z);
        tmem_write(cell, 3, row.w);
    }
    warp_sync();
}

// The 32 bytes of one row, and the scales of its four groups of 16.
struct Row {
    u32 halves[16], live[8];
    Scale scales[4];

    template <u32 CTA_GROUP>
    __device__ __forceinline__ void load(u64 desc, u32 row, u32 part, u32 flip, u32 codes,
                                         u32 count, u32 id, bool power_of_two) {
#pragma unroll
        for (u32 chunk = 0; chunk < 2; ++chunk) {
            const u32x4 v = tile_chunk<CTA_GROUP>(desc, row, chunk, part);
            const u32 words[4] = {v.x ^ flip, v.y ^ flip, v.z ^ flip, v.w ^ flip};
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                live[4 * chunk + i] = live_codes(words[i]);
                halves[8 * chunk + 2 * i] = decode_halves(words[i]);
                halves[8 * chunk + 2 * i + 1] = decode_halves(words[i] >> 16);
            }
        }
#pragma unroll
        for (u32 g = 0; g < 4; ++g) {
            const u32 at = id + g * count / 4;
            scales[g] = decode_scale(codes >> 8 * at & 0xff, power_of_two);
        }
    }
};

__device__ __forceinline__ u32 multiply_rows(const Row& a, const Row& b, u32 c) {
    i32 sums[4];
    bool live[4];
#pragma unroll
    for (u32 g = 0; g < 4; ++g) {
        sums[g] = 0;
#pragma unroll
        for (u32 i = 0; i < 4; ++i)
            sums[g] = dot_of_bytes(a.halves[4 * g + i], b.halves[4 * g + i], sums[g]);
        live[g] = (a.live[2 * g] & b.live[2 * g] | a.live[2 * g + 1] & b.live[2 * g + 1]) != 0;
    }
    return gst_fdpa(sums, live, a.scales, b.scales, c);
}

// D = (A * SFA) * (B * SFB) + D over 64 elements along K.
template <u32 CTA_GROUP>
__device__ __forceinline__ void unit_multiply(const Operation& op) {
    const u32 n = (op.idesc >> 17 & 63) << 3;
    const bool power_of_two = op.idesc >> 23 & 1;
    const u32 a_flip = op.idesc >> 13 & 1 ? 0x88888888 : 0;
    const u32 b_flip = op.idesc >> 14 & 1 ? 0x88888888 : 0;
    const u32 a_id = op.idesc >> 29 & 3, b_id = op.idesc >> 4 & 3;
    if ((op.idesc >> 27 & 3) != CTA_GROUP) __trap();  // 128 rows in each CTA
#pragma unroll 1
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        const u32 row = lane_index() + 32 * quarter;
        Row a, b;
        a.load<1>(op.a, row, 0, a_flip, tmem_read(tmem_cell(op.sfa, row), quarter), op.scales,
                  a_id, power_of_two);
        const u64 d = tmem_cell(op.d, row);
#pragma unroll 1
        for (u32 j = 0; j < n; ++j) {
            const u32 codes = tmem_read(tmem_cell(op.sfb, j % 32 + 32 * quarter), j / 32);
            b.load<CTA_GROUP>(op.b, j % (n / CTA_GROUP), j / (n / CTA_GROUP), b_flip, codes,
                              op.scales, b_id, power_of_two);
            const u32 c = op.accumulate ? tmem_read(d, j) : 0;
            tmem_write(d, j, multiply_rows(a, b, c));
        }
    }
}

// The 32 bytes of one row as terms, moved by the row's scale.
template <u32 CTA_GROUP, u32 NBYTES>
__device__ __forceinline__ void load_terms(Term (&terms)[32 / NBYTES], u64 desc, u32 row,
                                           u32 part, ElementFormat of, bool negate, u32 scale) {
    constexpr u32 EACH = 16 / NBYTES;
#pragma unroll
    for (u32 chunk = 0; chunk < 2; ++chunk) {
        u32 codes[EACH];
        chunk_codes(tile_chunk<CTA_GROUP>(desc, row, chunk, part), of, codes);
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
            Term& term = terms[EACH * chunk + i];
            term = decode_element(codes[i], of, negate);
            term.exponent += static_cast<i32>(scale) - 127;
            if (scale == 0xff) term = {0, INFINITE};
        }
    }
}

// The scale of a row for one MMA of kind::mxf8f6f4; without scales that of 2^0.
__device__ __forceinline__ u32 row_scale(bool scaled, u32 taddr, u32 row, u32 id) {
    if (!scaled) return 127;
    return tmem_read(tmem_cell(taddr, row % 32), row / 32) >> 8 * id & 0xff;
}

// D = A * B + D over 32 bytes along K, of elements of `NBYTES` bytes.
//
// With 64 rows in each CTA of a pair, the second half of N is in lanes 64 to 127.
template <u32 CTA_GROUP, u32 NBYTES>
__device__ __forceinline__ void unit_multiply_elements(const Operation& op, bool scaled) {
    const u32 n = (op.idesc >> 17 & 63) << 3, of_b = n / CTA_GROUP;
    const u32 m = scaled ? (op.idesc >> 27 & 3) << 7 : (op.idesc >> 24 & 31) << 4;
    const u32 rows = m / CTA_GROUP, columns = n * rows / 128;
    if (op.idesc >> 15 & 3) __trap();  // MN-major
    if (rows != 128 && (CTA_GROUP == 1 || rows != 64 || scaled)) __trap();  // other lanes of D
    const ElementFormat a_of = element_format(NBYTES, op.idesc >> 7 & 7);
    const ElementFormat b_of = element_format(NBYTES, op.idesc >> 10 & 7);
    const u32 a_id = op.idesc >> 29 & 3, b_id = op.idesc >> 4 & 3;
#pragma unroll 1
    for (u32 lane = lane_index(); lane < 128; lane += 32) {
        const u32 row = lane % rows, first = lane / rows * columns;
        Term a[32 / NBYTES], b[32 / NBYTES];
        load_terms<1, NBYTES>(a, op.a, row, 0, a_of, op.idesc >> 13 & 1,
                              row_scale(scaled, op.sfa, row, a_id));
        const u64 d = tmem_cell(op.d, lane);
#pragma unroll 1
        for (u32 column = 0; column < columns; ++column) {
            const u32 j = first + column;
            load_terms<CTA_GROUP, NBYTES>(b, op.b, j % of_b, j / of_b, b_of,
                                          op.idesc >> 14 & 1,
                                          row_scale(scaled, op.sfb, j, b_id));
            const u32 c = op.accumulate ? tmem_read(d, column) : 0;
            tmem_write(d, column, t_fdpa(a, b, a_of.mantissa_bits + b_of.mantissa_bits, c));
        }
    }
}

// What an operation asks for, but for the commit.
template <u32 CTA_GROUP>
__device__ __forceinline__ void unit_execute(const Operation& op) {
    if (op.what == COPY) unit_copy(op);
    if (op.what == MULTIPLY) unit_multiply<CTA_GROUP>(op);
    if (op.what == MULTIPLY_F16) unit_multiply_elements<CTA_GROUP, 2>(op, false);
    if (op.what == MULTIPLY_F8) unit_multiply_elements<CTA_GROUP, 1>(op, false);
    if (op.what == MULTIPLY_MXF8) unit_multiply_elements<CTA_GROUP, 1>(op, true);
}

// One arrival on the barrier, or at its offset in every CTA of the mask.
template <bool IN_CLUSTER>
__device__ __forceinline__ void unit_commit(const Operation& op) {
    smem_fence_proxy_async();
    warp_sync();
    if (!elect_sync()) return;
    if constexpr (IN_CLUSTER) {
        const u32 own = op.idesc == 0;
        for (u32 rank = 0; rank < 16 && !own; ++rank)
            if (op.idesc >> rank & 1) mbarrier_arrive<true>(cluster_mapa(op.d, rank));
        if (own) mbarrier_arrive<true>(op.d);
    } else {
        mbarrier_arrive(op.d);
    }
}

// The unit's barriers and words, and those of the relay.
template <u32 CTA_GROUP>
__device__ __forceinline__ void init_unit() {
    const u32 base = smem_base();
    for (u32 turn = 0; turn < 2; ++turn) {
        mbarrier_init(base + UNIT_FULL + 8 * turn, 1);
        mbarrier_init(base + UNIT_EMPTY + 8 * turn, 32);
        mbarrier_init(base + UNIT_DONE + 8 * turn, 32);
    }
    for (u32 i = 0; CTA_GROUP == 2 && i < RELAY_TICKETS; ++i)
        mbarrier_init(base + RELAY + 8 * i, 1);
    if (elect_sync()) {
        shared_st(base + UNIT_BATCH, 0);
        shared_st(base + UNIT_COUNT, 0);
        shared_st(base + RELAY_COUNT, 0);
    }
    mbarrier_fence_mbarrier_init();
}

// Of a pair the leader waits for its peer's unit, which tells it.
template <u32 CTA_GROUP>
__device__ __forceinline__ void join_units(u32 batch) {
    if constexpr (CTA_GROUP == 2) {
        const u32 done = smem_base() + UNIT_DONE + 8 * (batch % 2);
        pair_fence_proxy_async();
        if (leads_pair<2>())
            mbarrier_try_wait<true>(done, batch / 2 & 1);
        else
            mbarrier_arrive<true>(in_pair<2>(done, 0));
    }
}

// Work off batches until an empty one.
template <bool IN_CLUSTER, u32 CTA_GROUP>
__device__ __forceinline__ void unit() {
    const u32 base = smem_base();
    const bool leads = leads_pair<CTA_GROUP>();
    u32 done = 0;
    for (u32 batch = 0;; ++batch) {
        const u32 turn = batch % 2;
        mbarrier_try_wait<CTA_GROUP == 2>(base + UNIT_FULL + 8 * turn, batch / 2 & 1);
        const u32 count = smem_ld(base + UNIT_LENGTH + 4 * turn);
        if (count == 0) return;
        const Operation* operations = soft_queue[smem_ld(base + UNIT_QUEUE + 4 * turn)][turn];
        for (u32 i = 0; i < count; ++i) {
            const Operation& op = operations[i];
            delay(9, op.what + op.d);
            flip(done++);
            warp_sync();
            unit_execute<CTA_GROUP>(op);
        }
        join_units<CTA_GROUP>(batch);
        const Operation& last = operations[count - 1];
        if (leads && last.what == COMMIT) unit_commit<IN_CLUSTER>(last);
        if (leads) mbarrier_arrive(base + UNIT_EMPTY + 8 * turn);
    }
}

template <bool IN_CLUSTER, u32 CTA_GROUP>
__device__ __forceinline__ void tensor_core() {
    const bool is_unit = warp_index() % 2 == 0;
    if (!is_unit && leads_pair<CTA_GROUP>()) return;
    if (is_unit) init_unit<CTA_GROUP>();
    if constexpr (IN_CLUSTER) {
        cluster_arrive();
        cluster_wait();
    }
    if (!is_unit) return relay();
    named_barrier_sync(UNIT_BARRIER, 64);
    unit<IN_CLUSTER, CTA_GROUP>();
}
