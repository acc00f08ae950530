"""expected_steps: one event, one side of a ring, and what several roles share.

A warp is a generator of `Step`s. A peek may be answered either way, so the driver sends
the answer back in; a wait follows exactly when the answer was no or nobody asked.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from expected_problem import (
    BITS,
    CLC_NBYTES,
    CTA,
    ROWS,
    SUBTILE,
    SWIZZLE_OF_ROW,
    TILE_K,
    WARP,
    Gemm,
    Smem,
    Tile,
)


class Step(NamedTuple):
    """One event: PTX operation, kind, payload."""

    operation: str
    kind: str
    payload: Mapping[str, Any]


Agent = Generator[Step, bool | None, None]


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


class Cta:
    """One CTA that works on `tiles`, in that order."""

    def __init__(self, g: Gemm, tiles: list[Tile]) -> None:
        self.g, self.tiles, self.s = g, tiles, Smem(g)

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
            nbytes = g.subtile_nbytes(kind)
            first, stride = s.d, g.store_nbytes
            if name == "C":
                first, stride = s.c, g.c_stage_nbytes
            base = first + stage * (stride - nbytes)
        return {
            "tensor": name,
            "coords": coords,
            "smem": base + stage * nbytes,
            "box": shape,
            "bits": bits,
            "swizzle": swizzle,
            "tx_bytes": nbytes,
        }

    def together(self) -> Step:
        return sync("bar.sync", barrier=0, threads=CTA)

    def corner(self, tile: Tile, subtile: int) -> list[int]:
        m, n, batch = tile
        return [self.g.tile_n * n + SUBTILE * subtile, ROWS * m, batch]
