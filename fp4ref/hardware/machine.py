"""machine: SMs and global memory; launches grids, steps warps, lands async work.

Asynchronous units work in two steps. An instruction *issues* an `AsyncOp`; later it
*lands*: it reads its operands, writes its result and signals. What must land before it
is in `AsyncOp.after`; all else is free, and the schedule decides. A conflict with an
operation in flight is a fault at issue, and at any other access.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from types import CodeType, GeneratorType
from typing import Any, Literal

from fp4ref.errors import (
    DeadlockError,
    InputError,
    LaunchFault,
    ReadWhileInFlight,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.gmem import GlobalMemory
from fp4ref.hardware.grid import check_exit, check_launch, check_roles, origins
from fp4ref.hardware.in_flight import AsyncOp as AsyncOp
from fp4ref.hardware.in_flight import closure, find_conflict
from fp4ref.hardware.schedule import Eager, Schedule
from fp4ref.hardware.sm import Cluster, Cta, Dim3, Kernel, Sm, Warp, caller, source_line
from fp4ref.hardware.smem import NBYTES
from fp4ref.trace import Range, Recorder

Ordering = Literal["ptx", "shipped"]

MOST_SMS = 160
"""SMs of the largest Blackwell GPU, the B300 (NVIDIA, Hot Chips 2025)."""


def check_sms(sms: int) -> None:
    """Raise `InputError` for a number of SMs that no Blackwell GPU has."""
    if sms < 1:
        raise InputError(f"a machine of {sms} SMs; ask for at least 1")
    if sms > MOST_SMS:
        raise InputError(
            f"a machine of {sms} SMs; a B200 has 148 and the largest Blackwell GPU "
            f"{MOST_SMS}. Ask for {MOST_SMS} or fewer: each tile needs one"
        )


class Machine:
    """A GPU of `sms` SMs.

    Parameters
    ----------
    sms
        Streaming multiprocessors; each holds one CTA at a time.
    schedule
        When asynchronous work lands and which warp runs.
    ordering
        ``"ptx"``: what the PTX text does not promise is a fault. ``"shipped"``: what
        compiled, working kernels rely on is allowed too.
    recorder
        Collects a trace; None runs without one.
    """

    def __init__(
        self,
        sms: int = 2,
        schedule: Schedule | None = None,
        ordering: Ordering = "ptx",
        recorder: Recorder | None = None,
    ) -> None:
        check_sms(sms)
        if ordering not in ("ptx", "shipped"):
            raise InputError(f"ordering {ordering!r}: say 'ptx' or 'shipped'")
        self.schedule: Schedule = schedule or Eager()
        self.ordering: Ordering = ordering
        self.recorder = recorder
        self.gmem = GlobalMemory()
        self.sms = [Sm(i) for i in range(sms)]
        self.in_flight: list[AsyncOp] = []
        self.pending: deque[Dim3] = deque()
        self.dependents_launched = False
        self.on_step: list[Callable[[Machine], None]] = []
        self.steps = 0
        self.stats: dict[str, int] = {}
        self.advisories: dict[str, int] = {}
        self._faulted = False
        self._agent = "host"
        self._landing = False
        self._known_code: dict[CodeType, str | None] = {}
        for memory in self._memories():
            memory.guard = self.guard
            memory.who = lambda: self._agent

    def _memories(self) -> Iterable[Memory]:
        yield self.gmem
        for sm in self.sms:
            yield from (sm.smem, sm.tmem)

    def source(self) -> str:
        """``file:line`` of the kernel statement that is executing."""
        return source_line(caller(), self._known_code)

    def count(self, operation: str) -> None:
        """Count one operation in `stats`."""
        self.stats[operation] = self.stats.get(operation, 0) + 1

    def advise(self, advisory: Advisory) -> None:
        """Count a use of what the PTX text does not promise, in `advisories`."""
        text = advisory.value
        self.advisories[text] = self.advisories.get(text, 0) + 1

    def land_now(self, op: AsyncOp) -> None:
        """Land an operation that something needs at once, and all before it."""
        for before in op.after:
            self.land_now(before)
        if not op.landed:
            self._land(op)

    def issue(
        self,
        warp: Warp,
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
    ) -> AsyncOp:
        """Put an operation in flight; the eager schedule lands it at once.

        `part_of` names the operation whose instruction issued this one too.

        Raises
        ------
        ReadWhileInFlight
            It conflicts with an operation in flight that it is not ordered after.
        """
        waiting = [op for op in after if not op.landed]
        if self.in_flight:
            ordered = closure(waiting)
            for other in self.in_flight:
                if other not in ordered:
                    self._check_conflict(warp.who, operation, reads, writes, other)
        if part_of is None:
            step = warp.record(operation, operands, kind="issue")
            self.count(operation)
        else:
            step = part_of.issued
        op = AsyncOp(
            warp=warp,
            unit=unit,
            operation=operation,
            operands=operands,
            land=land,
            reads=reads,
            writes=writes,
            after=waiting,
            survives_exit=survives_exit,
            frames=tuple(warp.frames),
            source=warp.kernel_source or (self.source() if self.recorder else ""),
            issued=step,
        )
        self.in_flight.append(op)
        if self.schedule.lands_at_issue:
            self._land(op)
        return op

    def _check_conflict(
        self,
        who: str,
        what: str,
        reads: Sequence[Range],
        writes: Sequence[Range],
        other: AsyncOp,
    ) -> None:
        found = find_conflict(reads, writes, other)
        if found is None:
            return
        memory = next(m for m in self._memories() if m.space == found.space)
        raise ReadWhileInFlight(
            f"{what} touches bytes that {other.operation} in flight {found.verb}",
            who=f"{who}; in flight from {other.warp.who}"
            + (f" at {other.source}" if other.source else ""),
            where=memory.describe(found.address),
            rule="accesses by asynchronous operations are ordered only by their "
            "completion mechanism or by a listed pipeline order [PTX: Memory "
            "consistency, tcgen05]",
            remedy="wait for the barrier or group that completes it",
        )

    def guard(self, where: Range, is_write: bool) -> None:
        """Raise `ReadWhileInFlight` if an operation in flight still uses `where`."""
        if self._landing:
            return
        for other in self.in_flight:
            reads, writes = ((), (where,)) if is_write else ((where,), ())
            self._check_conflict(self._agent, "an access", reads, writes, other)

    def _land(self, op: AsyncOp) -> None:
        outer_agent, outer_landing = self._agent, self._landing
        self._agent, self._landing = f"{op.unit} for {op.warp.who}", True
        try:
            op.land()
        finally:
            self._agent, self._landing = outer_agent, outer_landing
        op.finish()
        self.in_flight.remove(op)
        if self.recorder:
            cta = op.warp.cta
            self.recorder.end(
                cta.sm.index,
                cta.ctaid,
                op.unit,
                op.operation,
                "land",
                op.operands,
                frames=op.frames,
                source="" if op.warp.kernel_source else op.source,
                kernel_source=op.source if op.warp.kernel_source else "",
                issued=op.issued,
            )

    def launch(
        self,
        kernel: Kernel,
        grid: Dim3,
        *,
        cluster: Dim3 = (1, 1, 1),
        smem_nbytes: int = NBYTES,
        only: Iterable[Dim3] | None = None,
    ) -> None:
        """Run a grid to its end.

        Parameters
        ----------
        kernel
            Sets up a CTA and returns its warps' roles.
        grid, cluster
            Extents in CTAs; x is fastest. The grid is a multiple of the cluster.
        only
            Launch only these CTAs of the grid (all of it by default).

        Raises
        ------
        LaunchFault
            Too much shared memory, a cluster that does not fit, CTAs outside the grid,
            a CTA without warps, or an earlier launch that ended in a fault.
        InputError
            The recorder has followed another launch.
        HardwareFault
            Whatever the kernel does wrong.
        DeadlockError
            No warp can run and nothing is in flight.
        """
        if self._faulted:
            raise LaunchFault(
                "launch on a machine whose last launch ended in a fault",
                rule="a fault is sticky: warps and work in flight are left over",
                remedy="make a new Machine",
            )
        check_launch(grid, cluster, smem_nbytes, len(self.sms))
        self.pending = origins(grid, cluster, only)
        self.dependents_launched = False
        self._attach_recorder()
        for sm in self.sms:
            sm.smem.nbytes = smem_nbytes
        # As on silicon: after a fault the machine is of no more use.
        self._faulted = True
        self._start(kernel, grid, cluster)
        while self._step():
            self._finish()
            if self.pending:
                self._start(kernel, grid, cluster)
        self._faulted = False

    def _attach_recorder(self) -> None:
        """Give the memories the recorder, and the recorder their bytes."""
        if self.recorder and self.recorder.trace.images:
            raise InputError(
                "the recorder holds another launch already; set machine.recorder to a "
                "new Recorder before each launch"
            )
        for memory in self._memories():
            memory.recorder = self.recorder
            if self.recorder:
                self.recorder.image(memory.space, memory.data, memory.base)

    def _start(self, kernel: Kernel, grid: Dim3, cluster_shape: Dim3) -> None:
        """Give free SMs the next clusters."""
        size = cluster_shape[0] * cluster_shape[1] * cluster_shape[2]
        while self.pending:
            free = [sm for sm in self.sms if sm.cta is None]
            if len(free) < size:
                return
            origin = self.pending.popleft()
            cluster = Cluster(cluster_shape)
            offsets = product(*(range(c) for c in cluster_shape[::-1]))
            for sm, (dz, dy, dx) in zip(free, offsets, strict=False):
                ctaid = (origin[0] + dx, origin[1] + dy, origin[2] + dz)
                sm.smem.forget()
                sm.tmem.forget()
                sm.cta = Cta(self, sm, ctaid, grid, cluster)
                cluster.ctas.append(sm.cta)
            for cta in cluster.ctas:
                self.count("cta")
                roles = kernel(cta)
                check_roles(cta, roles)
                for index, role in enumerate(roles):
                    warp = Warp(cta, index)
                    warp.body = role(warp)
                    cta.warps.append(warp)

    def _warps(self) -> list[Warp]:
        return [w for sm in self.sms if sm.cta for w in sm.cta.warps if not w.done]

    def _step(self) -> bool:
        """Do one thing; False when all is done."""
        self.steps += 1
        for watch in self.on_step:
            watch(self)
        warps = self._warps()
        runnable = [w for w in warps if w.blocked is None or w.blocked.ready()]
        landable = [
            op for op in self.in_flight if all(before.landed for before in op.after)
        ]
        choice = self.schedule.choose(runnable, landable)
        if choice is None:
            if warps:
                raise self._deadlock(warps)
            return bool(self.pending)
        if isinstance(choice, AsyncOp):
            self._land(choice)
        else:
            self._run(choice)
        return True

    def _run(self, warp: Warp) -> None:
        """Run one warp to its next block or its end."""
        assert warp.body is not None
        self._agent = warp.who
        try:
            warp.blocked = next(warp.body)
        except StopIteration:
            warp.done, warp.blocked = True, None
            # Barriers of the whole CTA or cluster wait only for warps that live.
            warp.cta.named_barriers.settle(warp.cta.live_threads)
            warp.cta.cluster.settle()
        finally:
            self._agent = "host"

    def _finish(self) -> None:
        """Retire the CTAs of finished clusters."""
        for sm in self.sms:
            cta = sm.cta
            if cta is None or not all(c.finished for c in cta.cluster.ctas):
                continue
            mine = [op for op in self.in_flight if op.warp.cta is cta]
            check_exit(cta, mine)
            if not mine:
                sm.cta = None

    def _deadlock(self, warps: Sequence[Warp]) -> DeadlockError:
        edges = []
        for warp in warps:
            if warp.blocked:
                on = warp.blocked.describe()
                line = warp.kernel_source or _suspended_line(warp, self._known_code)
                edges.append((f"{warp.who} at {line}", on, warp.blocked.released_by()))
        return DeadlockError(
            f"{len(edges)} warps wait and nothing is in flight",
            edges,
            rule="every wait needs an arrival that will come",
            remedy="compare the missing arrivals and bytes with what the releasing "
            "agents do",
        )


def _suspended_line(warp: Warp, known: dict[CodeType, str | None]) -> str:
    """``file:line`` of the role statement at which a warp is suspended."""
    line = ""
    body: object = warp.body
    while isinstance(body, GeneratorType) and body.gi_frame is not None:
        line = source_line(body.gi_frame, known) or line
        body = body.gi_yieldfrom
    return line
