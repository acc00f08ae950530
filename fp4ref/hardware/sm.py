"""sm: one streaming multiprocessor, the CTA that lives on it, and the CTA's warps.

A warp is a Python generator. It suspends only where the hardware would block it, by
yielding what it waits for; everything between two yields happens at once. Compiled PTX
drives the same `Warp` object, instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, Protocol

from fp4ref.errors import ClusterFault
from fp4ref.hardware.copy_groups import CopyGroups
from fp4ref.hardware.cta_barriers import NamedBarriers
from fp4ref.hardware.exited import of_exited
from fp4ref.hardware.frame_label import NO_FRAMES, FrameScope
from fp4ref.hardware.frame_label import frame as frame
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState
from fp4ref.hardware.mbarrier_unit import MbarrierUnit
from fp4ref.hardware.order.knowledge import Place
from fp4ref.hardware.registers import Registers
from fp4ref.hardware.shared_memory import BASE, NBYTES, RANK_SHIFT, SharedMemory
from fp4ref.hardware.tensor_memory import TensorMemory
from fp4ref.trace import Dim3, Kind, Range


class Blocked(Protocol):
    """What a suspended warp waits for."""

    def ready(self) -> bool:
        """Whether the warp may run again."""
        ...

    def describe(self) -> str:
        """What is missing, for the deadlock report."""
        ...

    def released_by(self) -> str:
        """Who could bring it."""
        ...


Body = Generator[Blocked, None, None]
Role = Callable[["Warp"], Body]
Kernel = Callable[["Cta"], Sequence[Role]]
"""Sets up one CTA and returns the role of each of its warps, in warp order."""


class Warp:
    """Thirty-two threads that run one role.

    Attributes
    ----------
    agent
        ``"warp<index>"``, as in traces.
    actor
        What is ordered before its lanes' next accesses.
    unfenced
        A range around the bytes of ``st.shared`` since the last ``fence.proxy.async``,
        by memory; which of them are this warp's, their marks say.
    kernel_source
        ``file:line`` of the CUDA statement, while compiled code runs.
    bulk_open, bulk_groups, bulk_count
        Bulk stores not yet in a group, the committed groups that are not all done, and
        how many groups were committed in all.
    tmem_accesses, tmem_loads
        ``tcgen05.ld`` / ``st`` that no wait has covered yet, and the registers of the
        loads among them.
    tcgen05_queue
        ``tcgen05`` copies, MMAs and commits in flight, oldest first.
    cp_async_queue
        ``cp.async`` copies in flight, oldest first.
    cp_async_issued
        The accesses of all of them, for an arrival that follows.
    cp_async_groups
        Those that a lane has not waited for, and the groups of each lane.
    time, waits_since
        On the clock of the schedule "timed": now, and since when it waits if it does.
    loaded, did
        Accumulator elements that each thread has loaded and not waited for, and the
        operation before.
    """

    def __init__(self, cta: Cta, index: int) -> None:
        self.cta, self.index = cta, index
        self.machine = cta.machine
        self.agent = f"warp{index}"
        self.who = f"cta {cta.ctaid} {self.agent}"
        self.actor = self.machine.order.actor(self.who, cta.place, self.statement)
        self.frames: list[str] = []
        self.kernel_source = ""
        self.body: Body | None = None
        self.blocked: Blocked | None = None
        self.done = False
        self.unfenced: dict[SharedMemory, Range] = {}
        self.bulk_open: list[AsyncOp] = []
        self.bulk_groups: list[list[AsyncOp]] = []
        self.bulk_count = 0
        self.tmem_accesses: list[AsyncOp] = []
        self.tmem_loads: list[Registers] = []
        self.tcgen05_queue: list[AsyncOp] = []
        self.cp_async_queue: list[AsyncOp] = []
        self.cp_async_issued: list[Any] = []
        self.cp_async_groups = CopyGroups()
        self.time, self.loaded, self.did = 0.0, 0, ""
        self.waits_since: float | None = None

    @property
    def smem(self) -> SharedMemory:
        """Shared memory of the warp's CTA."""
        return self.cta.smem

    @property
    def tmem(self) -> TensorMemory:
        """TMEM of the warp's SM."""
        return self.cta.tmem

    def frame(self, *ids: str) -> FrameScope:
        """Label the events inside a ``with`` block with frame ids."""
        return (
            NO_FRAMES if self.machine.recorder is None else FrameScope(self.frames, ids)
        )

    @property
    def now(self) -> int:
        """Step of the next event, or -1 untraced."""
        recorder = self.machine.recorder
        return recorder.step if recorder else -1

    def record(
        self,
        operation: str,
        operands: Mapping[str, Any],
        *,
        kind: Kind = "sync",
        since: int = -1,
        after: Sequence[int] = (),
    ) -> int:
        """Tell the trace what was done; returns the event's step, or -1 untraced.

        `since` is the step at which a wait began, `after` is `Event.after`.
        """
        recorder, clock = self.machine.recorder, self.machine.clock
        time = None
        if clock is not None and kind != "note":
            time = clock.spend(self, operation, operands)
        elif clock is not None:
            time = self.time, self.time
        if recorder is None:
            return -1
        event = recorder.end(
            self.cta.sm.index,
            self.cta.ctaid,
            self.agent,
            operation,
            kind,
            operands,
            frames=self.frames,
            source=self._source,
            kernel_source=self.kernel_source,
            issued=since,
            after=after,
            time=time,
        )
        return event.step

    def prolong(self, step: int) -> None:
        """Let an event end now: it was recorded before its wait."""
        recorder = self.machine.recorder
        if self.machine.clock is not None and recorder is not None:
            recorder.prolong(step, self.time)
        self.waits_since = None

    def wait(self, blocked: Blocked) -> Generator[Blocked, None, int]:
        """Suspend until `blocked` is ready; returns the step at which a wait began.

        It is -1 for a warp that does not wait. On the clock of the schedule "timed"
        one gives up its turn in any case: what it has done so far may be later than
        what others have still to do.
        """
        clock = self.machine.clock
        if clock is None and blocked.ready():
            return -1
        since = self.now
        yield blocked
        if clock is not None and not clock.resume(self, blocked):
            return -1
        return since

    def issue(
        self,
        operation: str,
        operands: Mapping[str, Any],
        land: Callable[[], None],
        *,
        unit: str = "tmem",
        reads: Sequence[Range] = (),
        writes: Sequence[Range] = (),
        after: Sequence[AsyncOp] = (),
        survives_exit: bool = False,
        part_of: AsyncOp | None = None,
        reduces: int = 0,
    ) -> AsyncOp:
        """Put an operation in flight; the eager schedule lands it at once.

        `part_of` names the operation whose instruction issued this one too; `reduces`
        is that of `AsyncOp`.

        Raises
        ------
        ReadWhileInFlight
            It conflicts with an operation in flight that it is not ordered after.
        """
        machine = self.machine
        traced = machine.recorder is not None
        waiting = [op for op in after if not op.landed]
        if machine.in_flight:
            machine.check_conflicts(
                self.who, operation, reads, writes, waiting, reduces
            )
        step = -1 if part_of is None else part_of.issued
        if part_of is None:
            if traced or machine.clock is not None:
                first = sorted({op.issued for op in waiting})
                step = self.record(operation, operands, kind="issue", after=first)
            machine.count(operation)
        op = AsyncOp(
            who=self.who,
            sm=self.cta.sm.index,
            ctaid=self.cta.ctaid,
            unit=unit,
            operation=operation,
            operands=operands,
            land=land,
            reads=reads,
            writes=writes,
            after=waiting,
            survives_exit=survives_exit,
            frames=tuple(self.frames),
            source=self._source if traced else "",
            kernel_source=self.kernel_source,
            issued=step,
            reduces=reduces,
        )
        machine.put_in_flight(op)
        return op

    def statement(self) -> str:
        """``file:line`` of what the warp executes, in CUDA or in the emulator."""
        return self.kernel_source or self.machine.source()

    @property
    def _source(self) -> str:
        """``file:line`` of the emulator's statement, unless compiled code runs."""
        return "" if self.kernel_source else self.machine.source()

    def note(self, operation: str, **facts: Any) -> None:
        """State a fact that is no hardware operation: loop counts, pipeline states."""
        self.record(operation, facts, kind="note")


def elect_sync(warp: Warp, mask: int = 0xFFFF_FFFF) -> int:
    """``elect.sync``: the elected lane, always the lowest of `mask`. Frame 5.4.3."""
    lane = (mask & -mask).bit_length() - 1
    warp.record("elect.sync", {"mask": mask, "lane": lane})
    return lane


class Cta:
    """One cooperative thread array, resident on one SM.

    Attributes
    ----------
    ctaid, grid
        Index and extent in the launch.
    rank
        Position in the cluster; bits 24 and up of its shared addresses.
    place
        Numbers of its cluster and of itself in the grid.
    named
        What operands of its tcgen05 instructions name.
    clc_refusal, clc_failed
        Where a ``try_cancel`` answered that nothing is left, and whether a thread has
        read that answer.
    """

    def __init__(
        self, machine: MachineState, sm: Sm, ctaid: Dim3, grid: Dim3, cluster: Cluster
    ) -> None:
        self.machine, self.sm, self.ctaid, self.grid = machine, sm, ctaid, grid
        self.cluster = cluster
        self.rank = len(cluster.ctas)
        first = cluster.ctas[0].ctaid if cluster.ctas else ctaid
        self.place = Place(_linear(first, grid), _linear(ctaid, grid))
        self.smem, self.tmem = sm.smem, sm.tmem
        self.mbarriers = MbarrierUnit(sm.smem, machine.clock)
        self.named_barriers = NamedBarriers()
        self.clc_refusal: Range | None = None
        self.clc_failed = False
        self.warps: list[Warp] = []
        self.named: dict[Hashable, Any] = {}

    @property
    def smem_base(self) -> int:
        """Shared address of the CTA's first byte, rank included."""
        return self.rank << RANK_SHIFT | BASE

    def resolve_shared(self, address: int) -> tuple[Cta, int]:
        """Return the CTA and the local offset that a shared::cluster address names.

        Raises
        ------
        ClusterFault
            No CTA of the cluster has that rank, or it has exited.
        """
        cta = self.cluster.ctas[self.peer_rank(address)]
        offset = address & ((1 << RANK_SHIFT) - 1)
        if cta is not self and cta.finished:
            who, use = f"cta {self.ctaid}", f"use of shared address {address:#x}"
            raise of_exited(who, use, cta.ctaid, cta.smem.describe(offset))
        return cta, offset

    def peer_rank(self, address: int) -> int:
        """Return the rank that a shared::cluster address names, or raise."""
        rank = address >> RANK_SHIFT
        if not 0 <= rank < len(self.cluster.ctas):
            raise ClusterFault(
                f"shared address {address:#x} names rank {rank}",
                who=f"cta {self.ctaid}",
                where=f"cluster of {len(self.cluster.ctas)} CTAs",
                rule="bits 24 and up of a shared::cluster address are a rank of the "
                "cluster [PTX: mapa]",
                remedy="form remote addresses with mapa",
            )
        return rank

    def check_resident(self, warp: Warp, operation: str) -> None:
        """Raise `ClusterFault` if the CTA has exited and `operation` needs it."""
        if self.finished:
            raise of_exited(warp.who, operation, self.ctaid, self.smem.space)

    @property
    def live_threads(self) -> int:
        """Threads that have not exited."""
        return 32 * sum(not w.done for w in self.warps)

    @property
    def finished(self) -> bool:
        """Whether every warp has returned."""
        return all(w.done for w in self.warps)


def _linear(ctaid: Dim3, grid: Dim3) -> int:
    """Number of a CTA in its grid, x fastest."""
    return ctaid[0] + grid[0] * (ctaid[1] + grid[1] * ctaid[2])


class Cluster:
    """CTAs that were launched together, by rank, and their ``barrier.cluster``.

    Attributes
    ----------
    pairs
        The `CtaPair` objects in use, by half their even rank.
    """

    def __init__(self, shape: Dim3) -> None:
        self.shape = shape
        self.ctas: list[Cta] = []
        self.arrived: set[Warp] = set()
        self.rounds = 0
        self.pairs: dict[int, Any] = {}

    @property
    def live(self) -> list[Warp]:
        """Warps that have not exited; only they are waited for."""
        return [w for cta in self.ctas for w in cta.warps if not w.done]

    def settle(self) -> None:
        """Complete the round of the cluster barrier if every live warp is in."""
        if self.arrived and self.arrived.issuperset(self.live):
            self.arrived.clear()
            self.rounds += 1


class Sm:
    """Shared memory and TMEM, and the CTA that uses them."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.smem = SharedMemory(index)
        self.tmem = TensorMemory(index)
        self.cta: Cta | None = None

    @property
    def smem_nbytes(self) -> int:
        """Shared memory that a CTA can have."""
        return NBYTES
