"""registers: what a ``tcgen05.ld`` loads into, and when it may be read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import RegistersNotReady, UninitialisedRead
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState


class Registers:
    """Destination registers of one ``tcgen05.ld``, shape (32 threads, registers)."""

    def __init__(self, machine: MachineState, who: str) -> None:
        self._machine, self._who = machine, who
        self._words: NDArray[np.uint32] | None = None
        self._known: NDArray[np.bool_] | None = None
        self._waited = False
        self.op: AsyncOp | None = None
        self.facts: dict[str, bool] = {}

    def fill(self, words: NDArray[np.uint32], known: NDArray[np.bool_]) -> None:
        """Land the load; `known` says which registers have values."""
        self._words, self._known = words, known

    def wait(self) -> None:
        """Mark that ``tcgen05.wait::ld`` covered this load."""
        self._waited = True

    @property
    def words(self) -> NDArray[np.uint32]:
        """All values, (32 threads, registers).

        Raises
        ------
        UninitialisedRead
            A lane of TMEM was never written.
        """
        words, known = self.landed()
        if not known.all():
            raise UninitialisedRead(
                f"{int((~known).sum())} of {known.size} registers hold cells that "
                "were never written",
                who=self._who,
                rule="memory holds no defined value before its first write",
                remedy="use the lanes that the MMA writes",
            )
        return words

    def landed(self) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """Return the values, and which registers have one.

        Without ``tcgen05.wait::ld`` the first use makes the load land. A true register
        dependency is respected, and implies no other order [PTX: 9.7.16.6.4.5]. What
        uses the TMEM next needs the wait.
        """
        if not self._waited and self.op is not None:
            self._machine.allows(Advisory.LOAD_WITHOUT_WAIT)
            self._machine.land_now(self.op)
            self.facts["used"] = True
            self._waited = True
        assert self._words is not None
        assert self._known is not None
        return self._words, self._known

    def overwrite(self) -> None:
        """Let another result take these registers.

        Raises
        ------
        RegistersNotReady
            With ``ordering="ptx"``: neither a use nor ``tcgen05.wait::ld`` came
            between the load and this.
        """
        if not self._waited and self._machine.ordering == "ptx":
            raise RegistersNotReady(
                "a register that a tcgen05.ld fills is overwritten before "
                "tcgen05.wait::ld",
                who=self._who,
                rule="against anti-dependencies tcgen05.wait::ld must be used "
                "[PTX: 9.7.16.6.4.5]",
                remedy="execute tcgen05.wait::ld first",
            )
