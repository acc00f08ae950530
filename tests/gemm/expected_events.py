"""expected_events: what every agent must do, written from the hardware's formulas.

An independent table: plain Python with its own constants, no import of fp4ref. Sources
are the CUTLASS kernel's counts, its loop bodies and the PTX rules, not the emulator.

A warp is a generator of `Step`s. A peek may be answered either way, so the driver sends
the answer back in; a wait follows exactly when the answer was no or nobody asked.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SMEM_BASE = 0x400
SMEM_NBYTES = 232_448
CARVEOUT = 160
BARRIER_PAIR = 128
ROWS, TILE_K, MMA_K, VEC = 128, 256, 64, 16
SUBTILE = 32
WARP, EPILOGUE, CTA = 32, 128, 256
TMEM_COLUMNS = 512
CLC_NBYTES = 16
ALL_LANES = 0xFFFF_FFFF
BITS = {"f32": 32, "bf16": 16, "f16": 16, "nvfp4": 4}
SWIZZLE_OF_ROW = {128: 3, 64: 2, 16: 0}

Tile = tuple[int, int, int]
"""(m, n, batch) in tiles."""


class Step(NamedTuple):
    """One event: PTX operation, kind, payload."""

    operation: str
    kind: str
    payload: Mapping[str, Any]


Agent = Generator[Step, bool | None, None]


@dataclass(frozen=True)
class Gemm:
    """Problem and kernel variant; names as in the kernel's configuration."""

    m: int
    n: int
    k: int
    batches: int = 1
    tile_n: int = 128
    d: str = "f32"
    c: str | None = None
    loads_c: bool = False
    bias: bool = False
    clc: bool = True
    raster: str = "m"
    stages: int | None = None
    c_stages: int = 2
    d_stages: int = 2
    accumulator_stages: int = 2
    clc_stages: int = 2
    scale_buffers: int = 2
    ue8m0: bool = False

    @property
    def tx_bytes(self) -> int:
        """A and B at half a byte, one scale byte for each row and 16 elements."""
        sf_rows_b = -(-self.tile_n // ROWS) * ROWS
        operands = (ROWS + self.tile_n) * TILE_K // 2
        return operands + (ROWS + sf_rows_b) * TILE_K // VEC

    @property
    def epilogue_nbytes(self) -> int:
        c = self.c_stages * self.subtile_nbytes(self.c) if self.c else 0
        return c + self.d_stages * self.subtile_nbytes(self.d)

    @property
    def ring(self) -> int:
        """Mainloop stages: what fits."""
        free = SMEM_NBYTES - CARVEOUT - self.epilogue_nbytes
        return self.stages or free // (self.tx_bytes + BARRIER_PAIR)

    @property
    def k_tiles(self) -> int:
        return -(-self.k // TILE_K)

    @property
    def subtiles(self) -> int:
        return self.tile_n // SUBTILE

    @property
    def tiles(self) -> tuple[int, int, int]:
        return -(-self.m // ROWS), -(-self.n // self.tile_n), self.batches

    def row_nbytes(self, kind: str | None) -> int:
        return SUBTILE * BITS[kind or "f32"] // 8

    def subtile_nbytes(self, kind: str | None) -> int:
        return ROWS * self.row_nbytes(kind)

    def order(self) -> list[Tile]:
        """Tiles in launch order: the raster dimension fastest, batch slowest."""
        tm, tn, batches = self.tiles
        if self.raster == "m":
            return [
                (x, y, z) for z in range(batches) for y in range(tn) for x in range(tm)
            ]
        return [(y, x, z) for z in range(batches) for y in range(tm) for x in range(tn)]

    def ctaid(self, tile: Tile) -> Tile:
        m, n, batch = tile
        return (m, n, batch) if self.raster == "m" else (n, m, batch)

    def tile_of_answer(self, answer: bytes) -> Tile | None:
        """Decode a CLC answer: ctaid.x, ctaid.y | ctaid.z << 16, canceled flag."""
        x, yz, flag, _ = (
            int.from_bytes(answer[i : i + 4], "little") for i in (0, 4, 8, 12)
        )
        if not flag & 1:
            return None
        y, z = yz & 0xFFFF, yz >> 16
        return (x, y, z) if self.raster == "m" else (y, x, z)


class Smem:
    """Shared addresses: barriers in the order of their pipelines, then the tiles."""

    def __init__(self, g: Gemm) -> None:
        self._at = SMEM_BASE
        self.ab_full, self.ab_empty = self._pair(g.ring)
        self.c_full, self.c_empty = self._pair(g.c_stages)
        self.load_order = self._take(8, 8)
        self.clc_full, self.clc_empty = self._pair(g.clc_stages)
        self.acc_full, self.acc_empty = self._pair(g.accumulator_stages)
        self.throttle_full, self.throttle_empty = self._pair(g.clc_stages)
        self.answer = self._take(CLC_NBYTES * g.clc_stages, 16)
        self.tmem_pointer = self._take(4, 4)
        self.d = self._take(g.d_stages * g.subtile_nbytes(g.d), 1024)
        self.c = self._take(g.c_stages * g.subtile_nbytes(g.c) if g.c else 0, 1024)
        self.a = self._take(g.ring * ROWS * TILE_K // 2, 1024)
        self.b = self._take(g.ring * g.tile_n * TILE_K // 2, 1024)
        self.sfa = self._take(g.ring * 2048, 128)
        self.sfb = self._take(g.ring * 2048, 128)

    def _take(self, nbytes: int, alignment: int) -> int:
        at = -(-self._at // alignment) * alignment
        self._at = at + nbytes
        return at

    def _pair(self, stages: int) -> tuple[int, int]:
        return self._take(8 * stages, 8), self._take(8 * stages, 8)


def sync(operation: str, **payload: Any) -> Step:
    return Step(operation, "sync", payload)


def note(operation: str, **payload: Any) -> Step:
    return Step(operation, "note", payload)


def issue(operation: str, **payload: Any) -> Step:
    return Step(operation, "issue", payload)


class Side:
    """One side of a ring; its position follows from how often it was entered."""

    def __init__(self, name: str, role: str, barrier: int, stages: int) -> None:
        self.name, self.role, self.barrier, self.stages = name, role, barrier, stages
        self.count, self.told = 0, False

    @property
    def index(self) -> int:
        return self.count % self.stages

    @property
    def parity(self) -> int:
        """Producers start one phase ahead."""
        return (self.count // self.stages + (self.role == "producer")) % 2

    @property
    def word(self) -> int:
        return self.barrier + 8 * self.index

    def peek(self) -> Agent:
        answer = yield sync(
            "mbarrier.test_wait.parity", mbar=self.word, parity=self.parity
        )
        self.told = bool(answer)

    def enter(self) -> Generator[Step, bool | None, int]:
        if not self.told:
            yield self.wait()
        self.told = False
        i, self.count = self.index, self.count + 1
        facts = {"index": self.index, "phase": self.parity, "count": self.count}
        yield note("pipeline.advance", ring=self.name, role=self.role, **facts)
        return i

    def wait(self) -> Step:
        return sync("mbarrier.try_wait.parity", mbar=self.word, parity=self.parity)

    def tail(self) -> Agent:
        for _ in range(self.stages):
            yield self.wait()
            self.count += 1


class Expected:
    """The agents of one CTA that works on `tiles`, in that order."""

    def __init__(self, g: Gemm, tiles: list[Tile]) -> None:
        self.g, self.tiles, self.s = g, tiles, Smem(g)

    def warps(self) -> dict[str, Agent]:
        """A fresh generator for each warp."""
        roles = [self.mma(), self.scheduler(), self.load(), self.epilogue_load()]
        roles += [self.epilogue(warp) for warp in range(4, 8)]
        return {f"warp{i}": role for i, role in enumerate(roles)}

    # What several roles share.

    def arrive(self, barrier: int, index: int, count: int = WARP) -> Step:
        return sync("mbarrier.arrive", mbar=barrier + 8 * index, count=count)

    def first(self) -> Step:
        m, n, batch = self.tiles[0]
        facts = {"m": m, "n": n, "l": batch, "valid": True}
        return note("tile_scheduler.initial_work", **facts)

    def clc_side(self, role: str) -> Side:
        barrier = self.s.clc_full if role == "consumer" else self.s.clc_empty
        return Side("clc", role, barrier, self.g.clc_stages)

    def fetch(self, side: Side, done: int) -> Agent:
        """Read the answer after tile number `done`."""
        if self.g.clc:
            i = yield from side.enter()
            yield sync("ld.shared", address=self.s.answer + 16 * i, nbytes=CLC_NBYTES)
            yield sync("fence.proxy.async.shared::cta")
            yield self.arrive(self.s.clc_empty, i)
        last = done + 1 == len(self.tiles)
        m, n, batch = (0, 0, 0) if last else self.tiles[done + 1]
        facts = {"m": m, "n": n, "l": batch, "valid": not last}
        yield note("tile_scheduler.next_work", **facts)

    def box(self, name: str, stage: int, coords: list[int]) -> dict[str, Any]:
        """Operands of the tensor copy of one stage."""
        g, s = self.g, self.s
        if name in ("SFA", "SFB"):
            shape, bits, swizzle, base = [256, 4, 1, 1], 16, 0, s.sfa
            base = s.sfa if name == "SFA" else s.sfb
            nbytes = 2048
        elif name in ("A", "B"):
            rows = ROWS if name == "A" else g.tile_n
            shape, bits, swizzle = [TILE_K, rows, 1], 4, 3
            base, nbytes = (s.a if name == "A" else s.b), rows * TILE_K // 2
        else:
            kind = g.c if name == "C" else g.d
            shape, bits = [SUBTILE, ROWS, 1], BITS[kind or ""]
            swizzle = SWIZZLE_OF_ROW[g.row_nbytes(kind)]
            base, nbytes = (s.c if name == "C" else s.d), g.subtile_nbytes(kind)
        return {
            "tensor": name,
            "coords": coords,
            "smem": base + stage * nbytes,
            "box": shape,
            "bits": bits,
            "swizzle": swizzle,
            "tx_bytes": nbytes,
        }

    # The roles.

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

    def together(self) -> Step:
        return sync("bar.sync", barrier=0, threads=CTA)

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
            for k_tile in range(g.k_tiles):
                yield from self.k_tile(ab, tile, stage, k_tile)
            facts = {"index": ab.index, "phase": ab.parity, "count": ab.count}
            yield note("mma.exit", k_tiles=g.k_tiles, **facts)
            yield issue("tcgen05.commit", mbar=s.acc_full + 8 * stage, count=1)
        yield sync("griddepcontrol.launch_dependents")
        yield sync("tcgen05.relinquish_alloc_permit")
        yield from acc.tail()
        yield sync("tcgen05.dealloc", taddr=0, columns=TMEM_COLUMNS)
        yield note("exit", columns_allocated=0)

    def k_tile(self, ab: Side, tile: Tile, acc_stage: int, k_tile: int) -> Agent:
        """Wait, 8 scale copies, 4 MMAs, one commit to the stage's empty barrier."""
        g, s = self.g, self.s
        number = ab.count
        i = yield from ab.enter()
        if k_tile + 1 < g.k_tiles:
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

    def corner(self, tile: Tile, subtile: int) -> list[int]:
        m, n, batch = tile
        return [self.g.tile_n * n + SUBTILE * subtile, ROWS * m, batch]

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

    def epilogue(self, warp: int) -> Agent:
        """Rows 32 * (warp % 4) and on; the first of the four warps talks to TMA."""
        g, s = self.g, self.s
        lane, stores = WARP * (warp % 4), 0
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
                yield from self.finish(tile, subtile, lane, stores)
                stores += 1
        if warp == 4:
            yield sync("cp.async.bulk.wait_group.read", pending=0)

    def read_c(self, c: Side, lane: int) -> Agent:
        g, row = self.g, self.g.row_nbytes(self.g.c)
        i = yield from c.enter()
        address = self.s.c + i * g.subtile_nbytes(g.c) + lane * row
        yield sync("ld.shared", address=address, nbytes=WARP * row)
        yield sync("fence.proxy.async.shared::cta")
        yield self.arrive(self.s.c_empty, i)

    def finish(
        self, tile: Tile, subtile: int, lane: int, stores: int
    ) -> Iterator[Step]:
        """Bias, fusion, scales, and one subtile through shared memory to TMA."""
        g, row = self.g, self.g.row_nbytes(self.g.d)
        corner = self.corner(tile, subtile)
        if g.bias and corner[0] < g.n:
            yield sync("ld.global", nbytes=4 * min(SUBTILE, g.n - corner[0]))
        yield note("fusion", subtile=subtile, rows=WARP, columns=SUBTILE)
        if g.d == "nvfp4" and corner[0] < -(-g.n // MMA_K) * MMA_K:
            yield sync("st.global", lanes=WARP, nbytes=WARP * SUBTILE // VEC)
        buffer = stores % g.d_stages
        if lane == 0:
            yield sync("cp.async.bulk.wait_group.read", pending=g.d_stages - 1)
        yield sync("bar.sync", barrier=1, threads=EPILOGUE)
        address = self.s.d + buffer * g.subtile_nbytes(g.d) + lane * row
        yield sync("st.shared", address=address, nbytes=WARP * row)
        yield sync("fence.proxy.async.shared::cta")
        yield sync("bar.sync", barrier=1, threads=EPILOGUE)
        if lane == 0:
            box = self.box("D", buffer, corner)
            yield issue("cp.async.bulk.tensor.3d.store", **box)
            yield sync("cp.async.bulk.commit_group", group=stores)


UNITS = {
    "cp.async.bulk.tensor.3d.load": ("tma",),
    "cp.async.bulk.tensor.4d.load": ("tma",),
    "cp.async.bulk.tensor.3d.store": ("tma.read", "tma"),
    "tcgen05.cp": ("tcgen05",),
    "tcgen05.mma": ("tcgen05",),
    "tcgen05.commit": ("tcgen05",),
    "tcgen05.ld": ("tmem",),
    "clusterlaunchcontrol.try_cancel": ("clc",),
}
"""Units on which an issued operation lands, in this order."""


def event_count(g: Gemm, tiles_per_cta: list[int], false_peeks: int) -> int:
    """Events of a run over the whole grid, in closed form.

    A false peek costs one event, the wait that follows; a true one costs none.
    """
    c, clc = int(g.loads_c), int(g.clc)
    acc, fetch = g.accumulator_stages, 6 if clc else 1
    inits = 2 * g.ring + 2 * acc + c * (2 * g.c_stages + 1) + clc * 4 * g.clc_stages
    tails = g.ring + acc + c * g.c_stages + clc * g.clc_stages
    per_cta = inits + tails + 36 + 3 * c + clc
    per_tile = (6 + c + clc) * fetch + 35 + 11 * clc
    per_k_tile = 42  # load warp 13, MMA warp 29
    per_subtile = 37 + 27 * c
    rows = g.tiles[0] * g.batches
    by_column = rows * (
        4 * g.bias * -(-g.n // 32) + 8 * (g.d == "nvfp4") * -(-g.n // 64)
    )
    reuse = sum(max(0, t * g.k_tiles - 2) for t in tiles_per_cta)
    return (
        len(tiles_per_cta) * per_cta
        + sum(tiles_per_cta)
        * (per_tile + per_k_tile * g.k_tiles + per_subtile * g.subtiles)
        + by_column
        + reuse * (g.scale_buffers == 2)
        + false_peeks
    )


def is_promised(first: Step, second: Step) -> bool:
    """Whether PTX lets `second`, issued later by the same thread, land only afterwards.

    Copies come before MMAs; MMAs on one accumulator keep their order; a commit follows
    all copies and MMAs. Nothing orders a copy, or anything after a commit. CLC requests
    follow each other because each waits for the answer before.
    """
    if first.operation.startswith("cluster"):
        return second.operation == first.operation
    if first.operation == "tcgen05.cp":
        return second.operation in ("tcgen05.mma", "tcgen05.commit")
    if first.operation == "tcgen05.mma":
        same = first.payload["d_tmem"] == second.payload.get("d_tmem")
        return second.operation == "tcgen05.commit" or same
    return False
