"""Part 1. pipeline: rings of full and empty barriers, with their two states.

A stage is entered by a ``with`` block and left by commit (producer) or release
(consumer), which therefore cannot be forgotten. While the block is open the next
stage may be peeked at, but not entered::

    with (yield from producer.acquire()) as stage:
        ...                       # fill the stage
                                  # commit happens here

A producer starts with the opposite phase: on a fresh barrier parity 1 passes at once.
Names follow CUTLASS ``sm100_pipeline.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import TracebackType

from fp4ref.errors import PipelineMisuse
from fp4ref.hardware import cluster, mbarrier
from fp4ref.hardware.mbarrier import DEFAULT, Semantics
from fp4ref.hardware.shared_memory import NOBODY, Signaller
from fp4ref.hardware.sm import Blocked, Cta, Warp

SOURCE_IS_CALLER = True
"""In a trace a wait or an arrival names the role's statement, not the pipeline's."""


@dataclass(frozen=True, slots=True)
class Signals:
    """How the barriers of a ring are signalled in a cluster.

    Attributes
    ----------
    full, empty
        CTAs that get the arrival of a ``tcgen05.commit``, as masks; None for the own
        one alone.
    cta_group
        Of that instruction.
    empty_in
        Rank of the CTA whose empty barrier a thread's arrival is for; None for the own
        one.
    semantics
        Of arrivals and waits: in a cluster its scope is the cluster.
    """

    full: int | None = None
    empty: int | None = None
    cta_group: int = 1
    empty_in: int | None = None
    semantics: Semantics = DEFAULT


@dataclass(frozen=True, slots=True)
class Ring:
    """Barriers of one pipeline. Frames 1.1 to 1.3.

    Attributes
    ----------
    full, empty
        Shared addresses, one for each stage; a barrier that is passed once has no
        empty one.
    full_count, empty_count
        Arrivals that complete a phase: an mbarrier has ONE count.
    full_by, empty_by
        Who makes them, for the report of a deadlock.
    signals
        How.
    """

    name: str
    full: tuple[int, ...]
    empty: tuple[int, ...]
    full_count: int
    empty_count: int
    full_by: Signaller = NOBODY
    empty_by: Signaller = NOBODY
    signals: Signals = Signals()

    @classmethod
    def at(
        cls,
        name: str,
        full: int,
        empty: int | None,
        stages: int,
        counts: tuple[int, int],
    ) -> Ring:
        """Lay out `stages` barriers of 8 bytes from each address."""
        fulls = tuple(full + mbarrier.NBYTES * i for i in range(stages))
        if empty is None:
            return cls(name, fulls, (), *counts)
        empties = tuple(empty + mbarrier.NBYTES * i for i in range(stages))
        return cls(name, fulls, empties, *counts)

    @property
    def stages(self) -> int:
        """Length of the ring."""
        return len(self.full)

    def init(self, warp: Warp) -> None:
        """Initialise all barriers, full ones first. Frame 1.4."""
        counts = [self.full_count] * self.stages
        counts += [self.empty_count] * len(self.empty)
        self.name_in(warp.cta)
        for (address, _), count in zip(self.labels(), counts, strict=True):
            mbarrier.init(warp, address, count)

    def name_in(self, cta: Cta) -> None:
        """Tell the shared memory what its barriers are called, and who signals them."""
        signals = [self.full_by] * self.stages + [self.empty_by] * len(self.empty)
        for (address, name), by in zip(self.labels(), signals, strict=True):
            where, offset = cta.resolve_shared(address)
            where.smem.labels[offset] = name
            where.smem.signallers[offset] = by

    def labels(self) -> list[tuple[int, str]]:
        """Address and name of each barrier, full ones first."""
        if not self.empty:
            return [(self.full[0], self.name)]
        full = [(a, f"{self.name}.full[{i}]") for i, a in enumerate(self.full)]
        return full + [(a, f"{self.name}.empty[{i}]") for i, a in enumerate(self.empty)]


@dataclass(slots=True)
class PipelineState:
    """Position in a ring. Frame 1.8."""

    index: int = 0
    phase: int = 0
    count: int = 0

    def facts(self) -> dict[str, int]:
        """Index, phase and count by name, for a trace."""
        return {"index": self.index, "phase": self.phase, "count": self.count}

    def advance(self, stages: int) -> None:
        """Go to the next stage; the phase flips when the ring wraps."""
        self.count += 1
        self.index += 1
        if self.index == stages:
            self.index = 0
            self.phase ^= 1


@dataclass(slots=True)
class Stage:
    """One stage, held by a ``with`` block."""

    index: int
    full: int
    empty: int
    phase: int
    leave: Callable[[Stage], None]
    signals: Signals = Signals()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.leave(self)


Leave = Callable[[Warp, Stage], None]


class _Side:
    """What producer and consumer share: a state, a peek, and one open stage."""

    role = ""
    frame = ""

    def __init__(self, warp: Warp, ring: Ring, phase: int, leave: Leave) -> None:
        self.warp, self.ring = warp, ring
        self.state = PipelineState(phase=phase)
        self._leave = leave
        self._token = False
        self._open = False
        self._semantics = ring.signals.semantics

    def _barrier(self) -> int:
        raise AssertionError

    def peek(self) -> None:
        """``try_acquire`` / ``try_wait``: ask once, without blocking. Frame 5.3.

        The answer is a yes or no that the next entry uses; it is not a barrier.
        """
        with self.warp.frame(self.frame):
            self._token = mbarrier.test_wait(
                self.warp, self._barrier(), self.state.phase, self._semantics
            )

    def forget(self) -> None:
        """Let the next entry ask again, whatever a peek has answered."""
        self._token = False

    def _enter(self) -> Generator[Blocked, None, Stage]:
        if self._open:
            raise PipelineMisuse(
                f"{self.warp.who}: {self.ring.name} {self.role} enters stage "
                f"{self.state.index} while the stage before is still open; leave its "
                "with block first"
            )
        with self.warp.frame(self.frame):
            if not self._token:
                yield from mbarrier.try_wait(
                    self.warp, self._barrier(), self.state.phase, self._semantics
                )
        self._token, self._open = False, True
        stage = self._stage(self.state, self._close)
        self._advance(self.state)
        return stage

    def _advance(self, state: PipelineState) -> None:
        state.advance(self.ring.stages)
        with self.warp.frame("1.8"):
            self.warp.note(
                "pipeline.advance",
                ring=self.ring.name,
                role=self.role,
                **state.facts(),
            )

    def _stage(self, at: PipelineState, leave: Callable[[Stage], None]) -> Stage:
        ring, i = self.ring, at.index
        return Stage(i, ring.full[i], ring.empty[i], at.phase, leave, ring.signals)

    def _close(self, stage: Stage) -> None:
        with self.warp.frame(self.frame):
            self._leave(self.warp, stage)
        self._open = False


class Producer(_Side):
    """Fills stages: acquire waits for empty, commit makes full. Frame 1.6."""

    role = "producer"
    frame = "1.6"

    def __init__(self, warp: Warp, ring: Ring, commit: Leave) -> None:
        super().__init__(warp, ring, 1, commit)

    def _barrier(self) -> int:
        return self.ring.empty[self.state.index]

    def acquire(self) -> Generator[Blocked, None, Stage]:
        """``producer_acquire``: wait until the stage is empty."""
        return self._enter()

    def tail(self) -> Generator[Blocked, None, None]:
        """``producer_tail``: wait until every stage has been released.

        So no consumer's arrival can come after this CTA is gone. Frames 8.1 and 8.3.
        """
        for _ in range(self.ring.stages):
            yield from mbarrier.try_wait(
                self.warp, self._barrier(), self.state.phase, self._semantics
            )
            self.state.advance(self.ring.stages)


class Consumer(_Side):
    """Uses stages: wait for full, release makes empty. Frame 1.7."""

    role = "consumer"
    frame = "1.7"

    def __init__(self, warp: Warp, ring: Ring, release: Leave) -> None:
        super().__init__(warp, ring, 0, release)

    def _barrier(self) -> int:
        return self.ring.full[self.state.index]

    def wait(self) -> Generator[Blocked, None, Stage]:
        """``consumer_wait``: wait until the stage is full."""
        return self._enter()

    def wait_ahead(self, at: PipelineState) -> Generator[Blocked, None, Stage]:
        """``consumer_wait`` with a state of its own; `release` gives the stage back.

        So several stages are held at a time.
        """
        with self.warp.frame(self.frame):
            yield from mbarrier.try_wait(
                self.warp, self.ring.full[at.index], at.phase, self._semantics
            )
        held = self._stage(at, lambda _: None)
        self._advance(at)
        return held

    def release(self) -> None:
        """``consumer_release`` of the oldest stage that is held."""
        with self.warp.frame(self.frame):
            self._leave(self.warp, self._stage(self.state, self._close))
        self.state.advance(self.ring.stages)


def arrive_on_full(count: int) -> Leave:
    """Commit by `count` plain arrivals."""
    return lambda warp, stage: mbarrier.arrive(
        warp, stage.full, count, stage.signals.semantics
    )


def arrive_on_empty(count: int) -> Leave:
    """Release by `count` plain arrivals, one for each thread."""

    def release(warp: Warp, stage: Stage) -> None:
        to, barrier = stage.signals, stage.empty
        if to.empty_in is not None:
            barrier = cluster.mapa(warp, barrier, to.empty_in)
        mbarrier.arrive(warp, barrier, count, to.semantics)

    return release


def committed_by_tma(warp: Warp, stage: Stage) -> None:
    """Commit nothing: TMA's complete_tx ends the phase that expect_tx opened."""
