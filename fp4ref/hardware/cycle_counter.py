"""cycle_counter: ``%clock64`` and ``%globaltimer``, and warps that wait for time.

Nothing here takes a number of cycles. A reading is larger than every one before it.
Where no warp can go on and some wait for time, time jumps, each time twice as far: a
delay of any length ends, and a limit passes only if nothing else can happen.
"""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_JUMP = 64
_LAST_JUMP = 1 << 60


@dataclass
class CycleCounter:
    """Time of a machine, in cycles and nanoseconds alike.

    Attributes
    ----------
    now
        The last reading.
    waiting
        Warps, or sides of a branch, that wait for time.
    jumps
        How often time has passed for them.
    """

    now: int = 0
    waiting: int = 0
    jumps: int = 0
    _jump: int = _FIRST_JUMP

    def read(self) -> int:
        """Return the time; it has passed since the last reading."""
        self.now += 1
        return self.now

    def jump(self) -> bool:
        """Let time pass for those that wait for it; False if none do, or in vain."""
        if not self.waiting or self._jump > _LAST_JUMP:
            return False
        self.jumps += 1
        self.now += self._jump
        self._jump *= 2
        return True

    def settle(self) -> None:
        """Something else has happened: the next jump is a short one."""
        self._jump = _FIRST_JUMP
