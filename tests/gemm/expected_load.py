"""expected_load: the warps that ask for work and load: scheduler, A and B, C."""

from __future__ import annotations

from expected_problem import ALL_LANES, CLC_NBYTES, MMA_K, ROWS, TILE_K, Tile
from expected_steps import Agent, Cta, Side, issue, note, sync


class SchedulerWarp(Cta):
    """Warp 1."""

    def scheduler(self) -> Agent:
        g, s = self.g, self.s
        yield self.together()
        if not g.clc:
            return
        yield self.first()
        throttle = Side("throttle", "consumer", s.throttle_full, g.clc_stages)
        requests, answers = self.clc_side("producer"), self.clc_side("consumer")
        for number in range(len(self.tiles)):
            i = yield from throttle.enter()
            yield self.arrive(s.throttle_empty, i)
            i = yield from requests.enter()
            full = s.clc_full + 8 * i
            yield sync("mbarrier.arrive.expect_tx", mbar=full, tx_bytes=CLC_NBYTES)
            yield issue(
                "clusterlaunchcontrol.try_cancel",
                response=s.answer + 16 * i,
                mbar=full,
                tx_bytes=CLC_NBYTES,
            )
            yield from self.fetch(answers, number)
        yield from requests.tail()


class LoadWarp(Cta):
    """Warp 2: A, B and their scales."""

    def load(self) -> Agent:
        g, s = self.g, self.s
        for name in ("A", "B", "SFA", "SFB"):
            yield sync("prefetch.tensormap", tensor=name)
        yield self.together()
        yield sync("griddepcontrol.wait")
        yield self.first()
        clc = self.clc_side("consumer")
        ab = Side("mainloop", "producer", s.ab_empty, g.ring)
        throttle = Side("throttle", "producer", s.throttle_empty, g.clc_stages)
        prologue = min(g.ring, g.k_tiles)
        for number, tile in enumerate(self.tiles):
            if g.clc:
                i = yield from throttle.enter()
                yield self.arrive(s.throttle_full, i)
            yield note("k_tile_count", k_tiles=g.k_tiles, prologue=prologue)
            yield from self.loads(ab, tile, 0, prologue)
            if number == 0 and g.loads_c:
                yield self.arrive(s.load_order, 0)
            yield from self.loads(ab, tile, prologue, g.k_tiles)
            yield from self.fetch(clc, number)
        yield from ab.tail()

    def loads(self, ab: Side, tile: Tile, first: int, last: int) -> Agent:
        """Four copies for each k-tile; coordinates in elements, scales in atoms."""
        g = self.g
        m, n, batch = tile
        if first < last:
            yield from ab.peek()
        for k_tile in range(first, last):
            i = yield from ab.enter()
            full = self.s.ab_full + 8 * i
            yield sync("mbarrier.arrive.expect_tx", mbar=full, tx_bytes=g.tx_bytes)
            if k_tile + 1 < last:
                yield from ab.peek()
            yield sync("elect.sync", mask=ALL_LANES, lane=0)
            corners = {
                "A": [TILE_K * k_tile, ROWS * m, batch],
                "B": [TILE_K * k_tile, g.tile_n * n, batch],
                "SFA": [0, TILE_K // MMA_K * k_tile, m, batch],
                "SFB": [0, TILE_K // MMA_K * k_tile, g.tile_n * n // ROWS, batch],
            }
            for name, coords in corners.items():
                rank = len(coords)
                operands = self.box(name, i, coords)
                yield issue(f"cp.async.bulk.tensor.{rank}d.load", **operands, mbar=full)
            yield note("load.k_tile", k_tile=k_tile, left=last - k_tile - 1)
        facts = {"index": ab.index, "phase": ab.parity, "count": ab.count}
        yield note("load.exit", k_tiles=last - first, **facts)


class EpilogueLoadWarp(Cta):
    """Warp 3: C."""

    def epilogue_load(self) -> Agent:
        g, s = self.g, self.s
        yield self.together()
        if not g.loads_c:
            return
        yield self.first()
        yield sync("mbarrier.try_wait.parity", mbar=s.load_order, parity=0)
        clc = self.clc_side("consumer")
        c = Side("c", "producer", s.c_empty, g.c_stages)
        for number, tile in enumerate(self.tiles):
            yield from self.fetch(clc, number)
            for subtile in range(g.subtiles):
                i = yield from c.enter()
                full = s.c_full + 8 * i
                yield sync("elect.sync", mask=ALL_LANES, lane=0)
                nbytes = g.subtile_nbytes(g.c)
                yield sync("mbarrier.expect_tx", mbar=full, tx_bytes=nbytes)
                box = self.box("C", i, self.corner(tile, subtile))
                yield issue("cp.async.bulk.tensor.3d.load", **box, mbar=full)
                yield self.arrive(s.c_full, i)
        yield from c.tail()
