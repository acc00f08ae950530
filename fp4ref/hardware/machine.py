"""machine: SMs and global memory; launches grids and steps warps.

What happens next, a warp that runs to its next block or an operation in flight that
lands, is the choice of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Literal, get_args

from fp4ref.errors import DeadlockError, HardwareFault, InputError, LaunchFault
from fp4ref.hardware.deadlock import Inquest
from fp4ref.hardware.grid import (
    check_exit,
    check_launch,
    check_memory_unused,
    check_roles,
    origins,
)
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState, Ordering
from fp4ref.hardware.order.race import RaceFault
from fp4ref.hardware.schedule import Schedule
from fp4ref.hardware.shared_memory import NBYTES
from fp4ref.hardware.sm import Cluster, Cta, Kernel, Sm, Warp
from fp4ref.hardware.source_line import suspended_line
from fp4ref.hardware.waiting_clusters import WaitingClusters
from fp4ref.trace import Dim3, Recorder

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


Races = Literal["raise", "collect", "off"]


class Machine(MachineState):
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
    races
        What becomes of accesses that nothing orders: ``"raise"`` ends the launch with
        all of them, ``"collect"`` keeps them in `order.findings`, ``"off"`` does not
        look. By default a recorded launch raises, another one does not look.
    """

    def __init__(
        self,
        sms: int = 2,
        schedule: Schedule | None = None,
        ordering: Ordering = "ptx",
        recorder: Recorder | None = None,
        races: Races | None = None,
    ) -> None:
        check_sms(sms)
        if races is None:
            races = "raise" if recorder else "off"
        if races not in get_args(Races):
            raise InputError(f"races {races!r}: say 'raise', 'collect' or 'off'")
        self.races = races
        super().__init__(sms, schedule, ordering, recorder, races != "off")
        self.sms = [Sm(i) for i in range(sms)]
        self.on_step: list[Callable[[Machine], None]] = []
        self.steps = 0
        self._faulted = False
        for sm in self.sms:
            self.watch(sm.smem)
            self.watch(sm.tmem)

    def launch(
        self,
        kernel: Kernel,
        grid: Dim3,
        *,
        cluster: Dim3 = (1, 1, 1),
        preferred: Dim3 | None = None,
        nonportable: bool = False,
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
        preferred
            Shape of the clusters that run wherever enough SMs are free; elsewhere
            `cluster` is the fallback.
        nonportable
            Whether a cluster may have more than 8 CTAs.
        only
            Launch only these CTAs of the grid (all of it by default).

        Raises
        ------
        LaunchFault
            Too much shared memory, a cluster that does not fit or divide the grid,
            CTAs outside the grid, a CTA without warps, or an earlier launch that ended
            in a fault.
        InputError
            The recorder has followed another launch.
        HardwareFault
            Whatever the kernel does wrong.
        DeadlockError
            No warp can run and nothing is in flight.
        RaceFault
            Accesses of the same bytes that nothing orders.
        """
        if self._faulted:
            raise LaunchFault(
                "launch on a machine whose last launch ended in a fault",
                rule="a fault is sticky: warps and work in flight are left over",
                remedy="make a new Machine",
            )
        sms = len(self.sms)
        check_launch(grid, cluster, smem_nbytes, sms, preferred, nonportable)
        first = origins(grid, preferred or cluster, only)
        self.pending = WaitingClusters(first, cluster, preferred)
        self.cluster = preferred or cluster
        self.dependents_launched = False
        self.cta_group = 0
        self._attach_recorder()
        self.order.begin()
        for sm in self.sms:
            sm.smem.nbytes = smem_nbytes
        # As on silicon: after a fault the machine is of no more use.
        self._faulted = True
        self._start(kernel, grid)
        try:
            while self._step():
                self._finish()
                if self.pending:
                    self._start(kernel, grid)
            self._check_races()
        except HardwareFault as error:
            error.races = error.races or tuple(self.order.findings.races)
            raise
        self._faulted = False

    def _check_races(self) -> None:
        """Raise `RaceFault` for accesses that nothing orders, if that is asked for."""
        findings = self.order.findings
        if self.races == "raise" and findings.verdict == "error":
            raise RaceFault(findings.of("error"), findings.count("error"))

    def _attach_recorder(self) -> None:
        """Give the memories the recorder, and the recorder their bytes."""
        if self.recorder and self.recorder.trace.images:
            raise InputError(
                "the recorder holds another launch already; set machine.recorder to a "
                "new Recorder before each launch"
            )
        for memory in self.memories:
            memory.recorder = self.recorder
            if self.recorder:
                self.recorder.image(memory.space, memory.data, memory.base)

    def _start(self, kernel: Kernel, grid: Dim3) -> None:
        """Give free SMs the next clusters."""
        while self.pending:
            free = [sm for sm in self.sms if sm.cta is None]
            if (waiting := self.pending.start(len(free))) is None:
                return
            origin, shape = waiting.origin, waiting.shape
            cluster = Cluster(shape)
            offsets = product(*(range(c) for c in shape[::-1]))
            for sm, (dz, dy, dx) in zip(free, offsets, strict=False):
                ctaid = (origin[0] + dx, origin[1] + dy, origin[2] + dz)
                sm.smem.forget()
                sm.tmem.forget()
                sm.cta = Cta(self, sm, ctaid, grid, cluster)
                self.order.forget(sm.smem.space, sm.cta.place)
                self.order.forget(sm.tmem.space, sm.cta.place)
                cluster.ctas.append(sm.cta)
            for cta in cluster.ctas:
                self.count("cta")
                roles = kernel(cta)
                check_roles(cta, roles)
                for index, role in enumerate(roles):
                    warp = Warp(cta, index)
                    warp.body = role(warp)
                    cta.warps.append(warp)
                if self.clock is not None:
                    self.clock.begin(cta, [each.sm.index for each in cluster.ctas])

    def _warps(self) -> list[Warp]:
        return [w for sm in self.sms if sm.cta for w in sm.cta.warps if not w.done]

    def _step(self) -> bool:
        """Do one thing; False when all is done."""
        self.steps += 1
        for watch in self.on_step:
            watch(self)
        warps = self._warps()
        runnable = [w for w in warps if w.blocked is None or w.blocked.ready()]
        landable: list[AsyncOp] = []
        if not (runnable and self.schedule.warps_first):
            landable = [op for op in self.in_flight if op.may_land]
        choice = self.schedule.choose(runnable, landable)
        if choice is None:
            if warps and not self.cycles.jump():
                raise self._deadlock(warps)
            if warps:
                return True
            return bool(self.pending)
        if isinstance(choice, AsyncOp):
            self.land(choice)
        else:
            self._run(choice)
        return True

    def _run(self, warp: Warp) -> None:
        """Run one warp to its next block or its end."""
        assert warp.body is not None
        self.agent = warp.who
        if self.clock is not None:
            self.clock.act(warp)
        try:
            warp.blocked = next(warp.body)
        except StopIteration:
            warp.done, warp.blocked = True, None
            # Barriers of the whole CTA or cluster wait only for warps that live.
            warp.cta.named_barriers.settle(warp.cta.live_threads)
            warp.cta.cluster.settle()
            if warp.cta.finished:
                check_memory_unused(warp.cta, self.in_flight)
                warp.cta.mbarriers.exited = warp.cta.ctaid
        finally:
            self.agent = "host"
            if self.clock is not None:
                self.clock.act(None)

    def _finish(self) -> None:
        """Retire the CTAs of finished clusters."""
        for sm in self.sms:
            cta = sm.cta
            if cta is None or not all(c.finished for c in cta.cluster.ctas):
                continue
            mine = [op for op in self.in_flight if op.ctaid == cta.ctaid]
            check_exit(cta, mine)
            if not mine:
                self.order.exit([w.actor for w in cta.warps], cta.smem)
                sm.cta = None
                if self.clock is not None:
                    self.clock.exit(cta)

    def _deadlock(self, warps: Sequence[Warp]) -> DeadlockError:
        edges = []
        for warp in warps:
            if warp.blocked:
                on = warp.blocked.describe()
                line = warp.kernel_source or suspended_line(warp.body, self.known_code)
                edges.append((f"{warp.who} at {line}", on, warp.blocked.released_by()))
        return DeadlockError(
            f"{len(edges)} warps wait and nothing is in flight",
            edges,
            Inquest(warps, self.recorder).root(),
            rule="every wait needs an arrival that will come",
            remedy="compare the missing arrivals and bytes with what the releasing "
            "agents do",
        )
