"""racy_programs: small random programs of a few warps, run by the real units."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import numpy as np
from on_machine import TILE, launch
from tensor_copies import tensor_map

from fp4ref.errors import HardwareFault
from fp4ref.hardware import mbarrier, named_barrier, smem, tcgen05, tma, tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Blocked, Cta, Warp
from fp4ref.trace import Recorder

Step = tuple[Any, ...]
"""Warp, operation, operands."""

MBARS = 0x400
WORDS = 0x600
SLOT = 0x700
TILES = (TILE, TILE + 0x400)
TILE_NBYTES = 512
LAST_BARRIER, FIRST_BARRIER = 15, 14
COLUMNS = 32
CP_DESCRIPTOR = 0x00004008 << 32


class Program:
    """One random program.

    Steps are drawn in one sequence, in which a wait comes after what completes it: so
    no schedule can block for ever.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.warps = self.rng.randint(2, 4)
        self.steps: list[Step] = []
        self.counts: list[tuple[int, int]] = []
        self.schedule = self.rng.choice(["eager", "late", self.rng.randrange(1000)])
        self.fences_init = self.rng.random() < 0.9
        self.sparse = self.rng.random() < 0.5
        kinds = [
            *(["words"] * 6),
            *(["mbarrier"] * 4),
            *(["bar"] * 2),
            *(["fence"] * 2),
            *(["load"] * 2),
            *(["store"] * 2),
            *(["cp"] * 2),
            *(["tmem"] * 2),
        ]
        for _ in range(self.rng.randint(4, 14)):
            getattr(self, self.rng.choice(kinds))()

    def warp(self) -> int:
        return self.rng.randrange(self.warps)

    def add(self, warp: int, operation: str, *operands: Any) -> None:
        self.steps.append((warp, operation, *operands))

    def words(self) -> None:
        """A few bytes near each other, by any warp; in sparse programs its own."""
        for _ in range(self.rng.randint(1, 2)):
            warp, size = self.warp(), self.rng.choice([1, 2, 4, 8])
            place = WORDS + self.rng.randrange(16 // size) * size
            if self.sparse and self.rng.random() < 0.8:
                place += 32 * (warp + 1)
            elif self.rng.random() < 0.2:
                place = self.rng.choice(TILES) + self.rng.randrange(64) * 8
            self.add(warp, self.rng.choice(["st", "ld"]), place, size)

    def fence(self) -> None:
        names = ["proxy", "proxy", "before", "after"]
        self.add(self.warp(), self.rng.choice(names))

    def some(self) -> list[int]:
        return self.rng.sample(range(self.warps), self.rng.randint(1, self.warps))

    def mbarrier(self) -> None:
        """Arrivals of some warps, waits of some; perhaps the waiters arrive again."""
        givers = self.some()
        takers = self.some()
        again = len(givers) == len(takers) and self.rng.random() < 0.5
        bar = self.new_bar(len(givers))
        for warp in givers:
            self.edge(warp)
            self.add(warp, "arrive", bar)
        for warp in takers:
            self.add(warp, "wait", bar, 0)
            self.edge(warp)
        if again:
            for warp in takers:
                self.add(warp, "arrive", bar)
            for warp in self.some():
                if warp in takers:
                    self.add(warp, "wait", bar, 1)

    def edge(self, warp: int) -> None:
        """Perhaps what a careful program has beside a barrier."""
        if self.rng.random() < 0.3:
            self.add(warp, self.rng.choice(["proxy", "before", "after"]))

    def new_bar(self, count: int, tx: int = 0) -> int:
        self.counts.append((count, tx))
        return MBARS + 8 * (len(self.counts) - 1)

    def bar(self) -> None:
        """A named barrier of some warps; a few only arrive. Each id once."""
        used = sum(1 for step in self.steps if step[1] == "id")
        if used >= 12:
            return
        self.add(0, "id", used)
        members = self.some()
        threads = 32 * len(members)
        quiet = members[: self.rng.randrange(len(members))]
        for warp in members:
            self.edge(warp)
            arrives = "bar_arrive" if warp in quiet else "bar_sync"
            self.add(warp, arrives, 1 + used, threads)

    def load(self) -> None:
        warp, tile = self.warp(), self.rng.choice(TILES)
        bar = self.new_bar(1)
        self.add(warp, "expect", bar, TILE_NBYTES)
        self.add(warp, "load", tile, self.rng.randrange(2), bar)
        for taker in self.some() if self.rng.random() < 0.8 else ():
            self.add(taker, "wait", bar, 0)

    def store(self) -> None:
        warp, tile = self.warp(), self.rng.choice(TILES)
        for _ in range(self.rng.randint(1, 2)):
            self.add(warp, "store", tile, self.rng.randrange(2))
            self.add(warp, "commit_group")
        if self.rng.random() < 0.7:
            read = self.rng.random() < 0.5
            self.add(warp, "wait_group", self.rng.randrange(2), read)

    def cp(self) -> None:
        warp, tile = self.warp(), self.rng.choice(TILES)
        self.add(warp, "cp", 4 * self.rng.randrange(2), tile)
        if self.rng.random() < 0.8:
            bar = self.new_bar(1)
            self.add(warp, "commit", bar)
            for taker in self.some():
                self.add(taker, "wait", bar, 0)
                if self.rng.random() < 0.5:
                    self.add(taker, "after")

    def tmem(self) -> None:
        warp = self.warp()
        operation = self.rng.choice(["tmem_ld", "tmem_st"])
        self.add(warp, operation, 4 * self.rng.randrange(2))
        if self.rng.random() < 0.7:
            self.add(warp, "wait_" + operation[-2:])
            if self.rng.random() < 0.5:
                self.add(warp, "before")

    # -- running it ---------------------------------------------------------------

    def run(self) -> Machine:
        on = Unguarded(
            1, make_schedule(self.schedule), "ptx", Recorder(), races="collect"
        )
        _, self.map = tensor_map(on, "UINT8", (256, 4), (256, 2))
        bodies = [self.body(w) for w in range(self.warps)]
        launch(on, *bodies, setup=_fill)
        return on

    def body(self, index: int) -> Any:
        def steps(warp: Warp) -> Generator[Blocked, None, None]:
            threads = 32 * self.warps
            if index == 0:
                for i, (count, _) in enumerate(self.counts):
                    mbarrier.init(warp, MBARS + 8 * i, count)
                if self.fences_init:
                    mbarrier.fence_mbarrier_init(warp)
                yield from tmem.alloc(warp, SLOT, COLUMNS)
                warp.tmem.written[:] = True
            yield from named_barrier.sync(warp, FIRST_BARRIER, threads)
            for step in self.steps:
                if step[0] == index:
                    yield from self.do(warp, step[1], *step[2:])
            yield AllLanded(warp)
            yield from named_barrier.sync(warp, LAST_BARRIER, threads)
            if index == 0:
                tmem.dealloc(warp, 0, COLUMNS)

        return steps

    def do(self, warp: Warp, operation: str, *x: Any) -> Generator[Blocked, None, None]:
        lane = 32 * (warp.index % 4) << 16
        match operation:
            case "st":
                smem.st(warp, x[0], np.full(x[1], warp.index, np.uint8))
            case "ld":
                smem.ld(warp, *x)
            case "proxy":
                smem.fence_proxy_async(warp)
            case "before":
                tcgen05.fence_before_thread_sync(warp)
            case "after":
                tcgen05.fence_after_thread_sync(warp)
            case "arrive":
                mbarrier.arrive(warp, *x)
            case "expect":
                mbarrier.arrive_expect_tx(warp, *x)
            case "wait":
                yield from mbarrier.try_wait(warp, *x)
            case "bar_sync":
                yield from named_barrier.sync(warp, *x)
            case "bar_arrive":
                named_barrier.arrive(warp, *x)
            case "load":
                tma.load(warp, self.map, (0, 2 * x[1]), x[0], x[2])
            case "store":
                tma.store(warp, self.map, (0, 2 * x[1]), x[0])
            case "commit_group":
                tma.commit_group(warp)
            case "wait_group":
                yield from tma.wait_group(warp, *x)
            case "cp":
                tcgen05.cp(warp, x[0], CP_DESCRIPTOR | x[1] >> 4)
            case "commit":
                tcgen05.commit(warp, *x)
            case "tmem_ld":
                tmem.ld(warp, lane | x[0], "32x32b", 4)
            case "tmem_st":
                tmem.st(warp, lane | x[0], np.zeros((32, 4), np.uint32), "32x32b", 4)
            case "wait_ld":
                yield from tmem.wait_ld(warp)
            case "wait_st":
                yield from tmem.wait_st(warp)


class AllLanded:
    """Blocks until nothing is in flight, which orders nothing for the warp."""

    def __init__(self, warp: Warp) -> None:
        self.machine = warp.machine

    def ready(self) -> bool:
        return not self.machine.in_flight

    def describe(self) -> str:
        return "landings"

    released_by = describe


class Unguarded(Machine):
    """A machine that lets races run, so that more than one can be seen."""

    def guard(self, where: Any, is_write: bool) -> None:
        pass

    def check_conflicts(self, *args: Any) -> None:
        pass


def _fill(cta: Cta) -> None:
    """No byte is without a value, and none awaits a proxy fence."""
    cta.smem.written[:] = True
    cta.smem.mark_unfenced = lambda where, mark: None  # type: ignore[method-assign]


def engine_pairs(program: Program) -> tuple[Machine, set[tuple[int, int]], str]:
    """Run a program; return the machine, the pairs of steps, and a fault's name."""
    pairs: set[tuple[int, int]] = set()
    fault = ""
    on: Any = None
    original = Machine.launch

    def launched(self: Machine, *args: Any, **named: Any) -> None:
        nonlocal on
        on = self
        self.order.on_pair = lambda a, b, view: pairs.add((a.step, b.step))
        original(self, *args, **named)

    Unguarded.launch = launched  # type: ignore[method-assign]
    try:
        program.run()
    except HardwareFault as error:
        fault = str(error)
    finally:
        del Unguarded.launch
    return on, pairs, fault
