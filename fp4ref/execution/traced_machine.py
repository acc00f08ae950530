"""traced_machine: a machine, the recorder that watches it, and what its trace says."""

from __future__ import annotations

from typing import Any

from fp4ref.hardware.machine import Machine, Races
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.timing import Durations
from fp4ref.trace import Recorder, Trace


class TracedMachine:
    """A machine whose launches are recorded, where a trace is wanted.

    Parameters
    ----------
    sms, schedule, ordering, trace, races
        As for `fp4ref.run`.

    Raises
    ------
    InputError
        The machine cannot have so many SMs, or there is no such schedule.
    """

    def __init__(
        self,
        sms: int,
        schedule: str | int | Durations,
        ordering: Ordering,
        trace: bool,
        races: Races = "raise",
    ) -> None:
        recorder = Recorder() if trace else None
        watch: Races = races if trace else "off"
        self.machine = Machine(sms, make_schedule(schedule), ordering, recorder, watch)

    def record_anew(self) -> None:
        """Forget what was recorded: a recorder holds one launch."""
        if self.machine.recorder:
            self.machine.recorder = Recorder()

    def meta(self) -> dict[str, Any]:
        """Say on what the last launch ran, in JSON values."""
        machine = self.machine
        clock = machine.clock
        timing = {} if clock is None else {"timing": clock.durations.to_dict()}
        return timing | {
            "schedule": machine.schedule.name,
            "ordering": machine.ordering,
            "sms": len(machine.sms),
            "cluster": list(machine.cluster),
            "allocations": [list(found) for found in machine.gmem.allocations],
        }

    def trace(self, meta: dict[str, Any]) -> Trace | None:
        """Return what was recorded, with `meta`; None if nothing is recorded."""
        if self.machine.recorder is None:
            return None
        trace = self.machine.recorder.trace
        trace.meta = meta
        return trace
