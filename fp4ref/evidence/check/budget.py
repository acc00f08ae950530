"""budget: an end for a kernel that has none."""

from __future__ import annotations

import time

from fp4ref.errors import HardwareFault
from fp4ref.hardware.machine import Machine


class OverBudget(HardwareFault):
    """The kernel did not end within the steps or the seconds that it was given."""


class Budget:
    """What a check may use.

    Parameters
    ----------
    steps
        Of one run: steps of the machine and branches backwards, together.
    seconds
        Of processor time, for all runs together.
    """

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps, self.seconds = steps, seconds
        self.used = 0
        self._end = time.process_time() + seconds

    def begin(self) -> None:
        """Begin another run."""
        self.used = 0

    def watch(self, machine: Machine) -> None:
        """Count one step of a machine."""
        self.spend()

    def spend(self) -> None:
        """Count one step.

        Raises
        ------
        OverBudget
            It was one too many.
        """
        self.used += 1
        if self.used > self.steps:
            raise self._over(f"{self.steps:,} steps", "--steps")
        if self.used % 64 == 0 and time.process_time() > self._end:
            raise self._over(f"{self.seconds:g} seconds", "--seconds")

    def _over(self, what: str, option: str) -> OverBudget:
        return OverBudget(
            f"still running after {what}",
            rule="a kernel ends; this one was stopped where it was",
            remedy=f"if the loop ends by itself, give more with {option}, or launch a "
            "smaller grid or K; else look for what should end it",
        )
