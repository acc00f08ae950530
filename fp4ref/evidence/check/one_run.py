"""one_run: a launch under one schedule and one ordering, and what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DeadlockError, HardwareFault, NotModelled
from fp4ref.evidence.check.budget import Budget, OverBudget
from fp4ref.evidence.check.evidence_row import of_advisory, of_fault, of_race
from fp4ref.evidence.check.finding import RELIED_ON, Finding, Kind, Place
from fp4ref.evidence.check.kernel_text import KernelText
from fp4ref.evidence.check.launch import Launch
from fp4ref.execution.traced_machine import TracedMachine
from fp4ref.hardware.advisory import SILENT
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.order.race import Race
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch
from fp4ref.trace import Trace

Contents = tuple[NDArray[np.uint8], NDArray[np.bool_]]
"""Bytes of a buffer after the launch, and which of them were ever written."""

_TAILS = {"error": "", "allowed": RELIED_ON, "review": ", for review"}
_MOST_WAITERS = 3
"""Kinds of waiters that a deadlock names."""

_SILENT = {advisory.value for advisory in SILENT}
_AT = re.compile(r" at (\S+:\d+)$")
_STATEMENT = re.compile(r"(?:^|at )(\S+:\d+)$")


@dataclass
class Outcome:
    """What one run showed.

    Attributes
    ----------
    ended
        Whether the launch came to its end.
    findings
        Errors first, as they were found.
    contents
        Of every buffer, by name; empty if the launch did not end.
    relies
        Whether it relies on anything that the PTX text does not promise.
    printed
        What the kernel printed.
    """

    schedule: str
    ordering: Ordering
    ended: bool = True
    findings: list[Finding] = field(default_factory=list)
    contents: dict[str, Contents] = field(default_factory=dict)
    relies: bool = False
    printed: list[str] = field(default_factory=list)
    steps: int = 0
    trace: Trace | None = None
    same_as: str = ""

    @property
    def name(self) -> str:
        """The run in two words."""
        return f"{self.schedule}, {self.ordering}"

    @property
    def clean(self) -> bool:
        """Whether it showed no error."""
        return all(each.ok for each in self.findings)

    @property
    def keeps_to_the_text(self) -> bool:
        """Whether no rule that an ordering could relax came up."""
        return self.clean and not self.relies


@dataclass(frozen=True)
class Checked:
    """A kernel and its launch, ready to run again and again."""

    kernel: KernelText
    program: Program
    launch: Launch
    budget: Budget

    def run(self, schedule: str | int, ordering: Ordering, trace: bool) -> Outcome:
        """Run it once.

        Raises
        ------
        NotModelled
            It does something that this machine does not.
        """
        name = str(make_schedule(schedule).name)
        outcome = Outcome(name, ordering)
        machine, traced = self._machine(schedule, ordering, trace)
        addresses = self._place(machine)
        self.budget.begin()
        try:
            outcome.printed = self._launch(machine, addresses)
        except NotModelled:
            raise
        except HardwareFault as fault:
            outcome.ended = False
            outcome.findings.append(self._of_fault(fault, machine, schedule, ordering))
        self._of_order(machine, outcome)
        if outcome.ended:
            for each, at in addresses.items():
                start = at - machine.gmem.base
                end = start + self.launch.buffers[each].nbytes
                outcome.contents[each] = (
                    machine.gmem.data[start:end].copy(),
                    machine.gmem.written[start:end].copy(),
                )
        outcome.steps = self.budget.used
        if traced is not None:
            outcome.trace = traced.trace(
                {"backend": "ptx", "kernel": self.kernel.name} | traced.meta()
            )
        outcome.findings = [replace(f, runs=(outcome.name,)) for f in outcome.findings]
        return outcome

    def _machine(
        self, schedule: str | int, ordering: Ordering, trace: bool
    ) -> tuple[Machine, TracedMachine | None]:
        sms = self.launch.machine_sms
        if trace:
            traced = TracedMachine(sms, schedule, ordering, True, "collect")
            return traced.machine, traced
        machine = Machine(sms, make_schedule(schedule), ordering, None, "collect")
        return machine, None

    def _place(self, machine: Machine) -> dict[str, int]:
        """Put the buffers into global memory; return their addresses."""
        found = {}
        for buffer in self.launch.buffers.values():
            at = machine.gmem.allocate(buffer.name, buffer.nbytes)
            if buffer.data is not None:
                machine.gmem.poke(at, buffer.data)
            found[buffer.name] = at
        return found

    def _launch(self, machine: Machine, addresses: dict[str, int]) -> list[str]:
        machine.on_step.append(self.budget.watch)
        return launch(
            machine,
            self.program,
            self.launch.grid,
            self.launch.block,
            self.launch.block_of_params(self.program, addresses),
            cluster=self.launch.cluster,
            nonportable=self.launch.nonportable,
            smem_nbytes=self.launch.smem_nbytes,
            on_turn=self.budget.spend,
        )

    # -- what it showed -----------------------------------------------------------

    def _of_fault(
        self,
        fault: HardwareFault,
        machine: Machine,
        schedule: str | int,
        ordering: Ordering,
    ) -> Finding:
        if isinstance(fault, DeadlockError):
            return self._of_deadlock(fault, machine, schedule, ordering)
        row, blames = of_fault(fault)
        kind: Kind = "budget" if isinstance(fault, OverBudget) else "fault"
        return Finding(
            kind,
            type(fault).__name__,
            fault.what,
            self._places(list(self._statements(fault, machine, blames))),
            fault.who,
            fault.where,
            fault.rule,
            fault.remedy,
            row,
        )

    def _statements(
        self, fault: HardwareFault, machine: Machine, blames: str
    ) -> Iterator[str]:
        """Say where a fault happened, the statement that executed first."""
        if fault.statement:
            yield fault.statement
        elif isinstance(fault, OverBudget):
            yield from (w.kernel_source for sm in machine.sms if sm.cta
                        for w in sm.cta.warps if not w.done)  # fmt: skip
        for said in (fault.where, fault.who):
            if found := _STATEMENT.search(said):
                yield found[1]
        if not fault.statement and blames:
            words = blames.split()
            for position, each in enumerate(self.program.instructions):
                if all(word in each.opcode for word in words):
                    yield self.program.source(position) or f"PTX:{each.line}"

    def _of_deadlock(
        self,
        fault: DeadlockError,
        machine: Machine,
        schedule: str | int,
        ordering: Ordering,
    ) -> Finding:
        """Say the root first, then where the others wait."""
        if fault.root is not None and machine.recorder is None:
            fault = self._again_traced(schedule, ordering) or fault
        row, _ = of_fault(fault)
        waits = [found[1] for who, _, _ in fault.edges if (found := _AT.search(who))]
        graph = _waiters(fault.edges)
        root = fault.root
        if root is None:
            return Finding(
                "deadlock", "DeadlockError", fault.what, self._places(waits),
                graph, "", fault.rule, fault.remedy, row,
            )  # fmt: skip
        return Finding(
            "deadlock",
            "DeadlockError",
            f"{fault.what}. Root: {root.where}: {root.what}",
            self._places([root.statement, *waits]),
            f"signalled by {root.by}" if root.by else graph,
            root.where,
            fault.rule,
            root.remedy,
            row,
        )

    def _again_traced(
        self, schedule: str | int, ordering: Ordering
    ) -> DeadlockError | None:
        """Run once more with a trace, which knows who signalled the root."""
        machine, _ = self._machine(schedule, ordering, True)
        self.budget.begin()
        try:
            self._launch(machine, self._place(machine))
        except DeadlockError as fault:
            return fault
        except HardwareFault:
            pass
        return None

    def _of_order(self, machine: Machine, outcome: Outcome) -> None:
        """Add the races, and what the kernel relies on."""
        found = machine.order.findings
        races = sorted(found.races, key=lambda race: race.severity)
        for race in races:
            if race.severity == "error":
                outcome.findings.append(self._of_race(race, "race"))
            else:
                outcome.relies |= race.severity == "allowed"
                outcome.findings.append(self._of_race(race, "advisory"))
        for why in found.unsure:
            outcome.findings.append(Finding("incomplete", "not all was checked", why))
        for text, count in machine.advisories.items():
            row = of_advisory(text)
            outcome.relies |= text not in _SILENT
            what = f"{count} times" if count > 1 else "once"
            outcome.findings.append(Finding("advisory", text, what, evidence=row))

    def _of_race(self, race: Race, kind: Kind) -> Finding:
        words = race.failure.value
        said = f"{race.first.operation} {race.first.verb} and {race.second.operation} "
        said += f"{race.second.verb} {race.nbytes} bytes, and nothing orders them"
        return Finding(
            kind,
            words.name + _TAILS[race.severity],
            said,
            self._places([race.second.source, race.first.source]),
            f"{race.second.who}; {race.first.who}",
            race.where,
            words.rule,
            words.remedy,
            of_race(race.failure),
        )

    def _places(self, statements: Sequence[str]) -> tuple[Place, ...]:
        found = dict.fromkeys(each for each in statements if each)
        return tuple(Place.of(each, self.kernel) for each in list(found)[:4])


def _waiters(edges: Sequence[tuple[str, str, str]]) -> str:
    """Say who waits for what; warps that wait alike once."""
    alike: dict[tuple[str, str], list[str]] = {}
    for who, on, _ in edges:
        warp, _, line = who.partition(" at ")
        alike.setdefault((line, on), []).append(warp)
    said = []
    for (line, on), warps in list(alike.items())[:_MOST_WAITERS]:
        more = f" and {len(warps) - 1} more" if len(warps) > 1 else ""
        verb = "wait" if more else "waits"
        said.append(f"{warps[0]}{more} at {line} {verb} for {on}")
    return "; ".join(said)
