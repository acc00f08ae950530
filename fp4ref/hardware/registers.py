"""registers: what a ``tcgen05.ld`` loads into, and when it may be read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import RegistersNotReady
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState


class Registers:
    """Destination registers of one ``tcgen05.ld``, shape (32 threads, registers)."""

    def __init__(self, machine: MachineState, who: str) -> None:
        self._machine, self._who = machine, who
        self._words: NDArray[np.uint32] | None = None
        self._waited = False
        self.op: AsyncOp | None = None
        self.facts: dict[str, bool] = {}

    def fill(self, words: NDArray[np.uint32]) -> None:
        """Land the load."""
        self._words = words

    def wait(self) -> None:
        """Mark that ``tcgen05.wait::ld`` covered this load."""
        self._waited = True

    @property
    def words(self) -> NDArray[np.uint32]:
        """The values.

        Under ``ordering="shipped"`` the first use makes the load land, as the
        scoreboard does.

        Raises
        ------
        RegistersNotReady
            No ``tcgen05.wait::ld`` came between the load and this use.
        """
        machine = self._machine
        early = None if self._waited else self.op
        if early is not None and machine.allows(Advisory.LOAD_WITHOUT_WAIT):
            machine.land_now(early)
            self.facts["used"] = True
            self._waited = True
        if self._words is None or not self._waited:
            raise RegistersNotReady(
                "a tcgen05.ld result is used before tcgen05.wait::ld",
                who=self._who,
                rule="tcgen05.ld is asynchronous [PTX: tcgen05.wait]",
                remedy="execute tcgen05.wait::ld first",
            )
        return self._words
