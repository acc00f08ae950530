"""expected_mma: the MMA warp, which also initialises the barriers."""

from __future__ import annotations

from collections.abc import Iterator

from expected_problem import (
    ALL_LANES,
    EPILOGUE,
    ROWS,
    TILE_K,
    TMEM_COLUMNS,
    WARP,
    Tile,
)
from expected_steps import Agent, Cta, Side, Step, issue, note, sync


class MmaWarp(Cta):
    """Warp 0."""

    def init(self) -> Iterator[Step]:
        """Arrival counts: one expect_tx or commit; 32 or 128 threads; CLC's readers."""
        g, s = self.g, self.s
        readers = WARP * (3 + 4 + g.loads_c)
        rings = [(s.ab_full, g.ring, 1), (s.ab_empty, g.ring, 1)]
        if g.loads_c:
            rings += [(s.c_full, g.c_stages, WARP), (s.c_empty, g.c_stages, EPILOGUE)]
            rings += [(s.load_order, 1, WARP)]
        if g.clc:
            rings += [
                (s.clc_full, g.clc_stages, 1),
                (s.clc_empty, g.clc_stages, readers),
            ]
            rings += [(s.throttle_full, g.clc_stages, WARP)]
            rings += [(s.throttle_empty, g.clc_stages, WARP)]
        rings += [(s.acc_full, g.accumulator_stages, 1)]
        rings += [(s.acc_empty, g.accumulator_stages, EPILOGUE)]
        for barrier, stages, count in rings:
            for i in range(stages):
                yield sync("mbarrier.init", mbar=barrier + 8 * i, count=count)
        yield sync("fence.mbarrier_init")

    def mma(self) -> Agent:
        g, s = self.g, self.s
        yield from self.init()
        yield self.together()
        yield sync("tcgen05.alloc", dst=s.tmem_pointer, columns=TMEM_COLUMNS, taddr=0)
        yield sync("bar.arrive", barrier=6, threads=WARP + EPILOGUE)
        yield sync("ld.shared", address=s.tmem_pointer, nbytes=4)
        yield self.first()
        clc = self.clc_side("consumer")
        ab = Side("mainloop", "consumer", s.ab_full, g.ring)
        acc = Side("accumulator", "producer", s.acc_empty, g.accumulator_stages)
        for number, tile in enumerate(self.tiles):
            yield from self.fetch(clc, number)
            yield from ab.peek()
            stage = yield from acc.enter()
            yield sync("tcgen05.fence::after_thread_sync")
            yield note("accumulate", value="zero", stage=stage)
            whole = self.rounds(ab.count)
            for k_tile in range(g.k_tiles):
                if k_tile in whole:
                    ab.told = False  # a peek before a round is asked in vain
                peeks = k_tile + 1 < g.k_tiles and k_tile not in whole
                yield from self.k_tile(ab, tile, stage, k_tile, peeks)
            facts = {"index": ab.index, "phase": ab.parity, "count": ab.count}
            yield note("mma.exit", k_tiles=g.k_tiles, **facts)
            yield issue("tcgen05.commit", mbar=s.acc_full + 8 * stage, count=1)
        yield sync("griddepcontrol.launch_dependents")
        yield sync("tcgen05.relinquish_alloc_permit")
        yield from acc.tail()
        yield sync("tcgen05.dealloc", taddr=0, columns=TMEM_COLUMNS)
        yield note("exit", columns_allocated=0)

    def rounds(self, count: int) -> range:
        """Give the k-tiles that whole double rounds of the ring use.

        A CTA counts its k-tiles through all its tiles; a round begins with one whose
        number divides by its length, and ends within the tile.
        """
        length = 2 * self.g.ring
        first = -count % length
        left = 0 if self.g.rolled else self.g.k_tiles - first
        rounds = max(0, left) // length
        return range(first, first + rounds * length)

    def k_tile(
        self, ab: Side, tile: Tile, acc_stage: int, k_tile: int, peeks: bool
    ) -> Agent:
        """Wait, 8 scale copies, 4 MMAs, one commit to the stage's empty barrier."""
        g, s = self.g, self.s
        number = ab.count
        i = yield from ab.enter()
        if peeks:
            yield from ab.peek()
        yield sync("elect.sync", mask=ALL_LANES, lane=0)
        if g.scale_buffers == 2 and number >= 2:
            round_of_ring, index = divmod(number - 2, g.ring)
            facts = {"mbar": s.ab_empty + 8 * index, "parity": round_of_ring % 2}
            yield sync("mbarrier.try_wait.parity", **facts)
        scales = g.accumulator_stages * g.tile_n + 32 * (number % g.scale_buffers)
        for base, column in ((s.sfa, scales), (s.sfb, scales + 16)):
            for block in range(4):
                start = (base + 2048 * i + 512 * block) >> 4
                yield issue(
                    "tcgen05.cp",
                    taddr=column + 4 * block,
                    s_desc=0x00004008 << 32 | 1 << 16 | start,
                    shape="32x128b.warpx4",
                    nbytes=512,
                )
        a = s.a + ROWS * TILE_K // 2 * i
        b = s.b + g.tile_n * TILE_K // 2 * i
        shift = 2 if g.tile_n == 64 and tile[1] % 2 else 0
        idesc = 0x08000480 | g.tile_n // 8 << 17 | g.ue8m0 << 23
        for block in range(4):
            yield issue(
                "tcgen05.mma",
                d_tmem=acc_stage * g.tile_n,
                a_desc=0x40004040 << 32 | 0x10000 | (a >> 4) + 2 * block,
                b_desc=0x40004040 << 32 | 0x10000 | (b >> 4) + 2 * block,
                idesc=idesc,
                sfa_tmem=scales + 4 * block,
                sfb_tmem=scales + 16 + 4 * block + shift,
                enable_input_d=(k_tile, block) != (0, 0),
                kind="mxf4nvf4",
                scale_vec="4X",
            )
            if (k_tile, block) == (0, 0):
                yield note("accumulate", value="one", stage=acc_stage)
        yield issue("tcgen05.commit", mbar=s.ab_empty + 8 * i, count=1)
