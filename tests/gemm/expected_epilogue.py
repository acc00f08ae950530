"""expected_epilogue: the four warps that read the accumulators and store D."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from expected_problem import EPILOGUE, MMA_K, SUBTILE, VEC, WARP, Tile
from expected_steps import Agent, Cta, Side, Step, issue, note, sync

MEET = sync("bar.sync", barrier=1, threads=EPILOGUE)


@dataclass
class Store:
    """Stores of a warp: issued, waited for, and where the next one goes."""

    sent: int = 0
    released: int = 0
    corner: list[int] = field(default_factory=list)


class EpilogueWarps(Cta):
    """Warps 4 to 7."""

    def epilogue(self, warp: int) -> Agent:
        """Rows 32 * (warp % 4) and on; the first of the four warps talks to TMA."""
        g, s = self.g, self.s
        lane, store = WARP * (warp % 4), Store()
        yield self.together()
        yield sync("bar.sync", barrier=6, threads=WARP + EPILOGUE)
        yield sync("ld.shared", address=s.tmem_pointer, nbytes=4)
        yield self.first()
        clc = self.clc_side("consumer")
        acc = Side("accumulator", "consumer", s.acc_full, g.accumulator_stages)
        c = Side("c", "consumer", s.c_full, g.c_stages)
        for number, tile in enumerate(self.tiles):
            yield from self.fetch(clc, number)
            stage = yield from acc.enter()
            yield sync("tcgen05.fence::after_thread_sync")
            yield note("accumulator.stage", index=stage)
            for subtile in range(g.subtiles):
                column = stage * g.tile_n + SUBTILE * subtile
                taddr = lane << 16 | column
                yield issue("tcgen05.ld", taddr=taddr, shape="32x32b", repeat=SUBTILE)
                yield sync("tcgen05.wait::ld")
                if subtile + 1 == g.subtiles:
                    yield sync("tcgen05.fence::before_thread_sync")
                    yield self.arrive(s.acc_empty, stage)
                if g.loads_c:
                    yield from self.read_c(c, lane)
                yield from self.finish(tile, subtile, lane, store)
            if g.delay:
                yield from self.send(lane, store)
        if warp == 4:
            yield sync("cp.async.bulk.wait_group.read", pending=0)
        while g.releases and store.released < store.sent:
            yield self.release(store)

    def read_c(self, c: Side, lane: int) -> Agent:
        g, row = self.g, self.g.row_nbytes(self.g.c)
        i = yield from c.enter()
        address = self.s.c + i * g.c_stage_nbytes + lane * row
        yield sync("ld.shared", address=address, nbytes=WARP * row)
        if not g.reuse:
            yield sync("fence.proxy.async.shared::cta")
            yield self.arrive(self.s.c_empty, i)

    def finish(
        self, tile: Tile, subtile: int, lane: int, store: Store
    ) -> Iterator[Step]:
        """Bias, fusion, scales, and one subtile to shared memory."""
        g, row = self.g, self.g.row_nbytes(self.g.d)
        corner = self.corner(tile, subtile)
        if g.bias and corner[0] < g.n:
            yield sync("ld.global", nbytes=4 * min(SUBTILE, g.n - corner[0]))
        if g.mixed:
            yield MEET
        yield note("fusion", subtile=subtile, rows=WARP, columns=SUBTILE)
        if g.delay and subtile:
            yield from self.send(lane, store)
        if g.d == "nvfp4" and corner[0] < -(-g.n // MMA_K) * MMA_K:
            yield sync("st.global", lanes=WARP, nbytes=WARP * SUBTILE // VEC)
        if not (g.delay or g.releases):
            yield from self.acquire(lane)
        buffer = store.sent % g.store_stages
        address = self.s.d + buffer * g.store_nbytes + lane * row
        yield sync("st.shared", address=address, nbytes=WARP * row)
        yield sync("fence.proxy.async.shared::cta")
        store.corner = corner
        if not g.delay:
            yield from self.send(lane, store)

    def acquire(self, lane: int) -> Iterator[Step]:
        """Until so few stores may still read that the next stage is free."""
        if lane == 0:
            pending = self.g.d_stages - 1
            yield sync("cp.async.bulk.wait_group.read", pending=pending)
        yield MEET

    def send(self, lane: int, store: Store) -> Iterator[Step]:
        """A stage to TMA; with it C's stage is given back, some stores later."""
        g = self.g
        yield MEET
        if lane == 0:
            box = self.box("D", store.sent % g.store_stages, store.corner)
            yield issue("cp.async.bulk.tensor.3d.store", **box)
            yield sync("cp.async.bulk.commit_group", group=store.sent)
        store.sent += 1
        if g.delay or g.releases:
            yield from self.acquire(lane)
        if g.releases and store.sent >= g.d_stages:
            yield self.release(store)

    def release(self, store: Store) -> Step:
        """C's oldest stage."""
        store.released += 1
        return self.arrive(self.s.c_empty, (store.released - 1) % self.g.c_stages)
