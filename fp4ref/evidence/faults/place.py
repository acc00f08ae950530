"""place: the statement of the emulator, the kernel or a program that a fault names.

A fault says who and why. Where it happened is on the stack of the exception: a role's
statement in Python, or the CUDA statement that the executing warp was at.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from fp4ref.errors import DeadlockError, ExitFault, HardwareFault
from fp4ref.hardware import machine_state
from fp4ref.hardware.mbarrier_wait import MbarrierWait
from fp4ref.hardware.source_line import is_caller_meant, suspended_line
from fp4ref.ptx import executor

_PACKAGE = Path(machine_state.__file__).parents[1]
_PLACE = re.compile(r"\S+:\d+")
EXIT = "exit"
"""In place of a statement: the end of a CTA or of the run, which is no statement."""

_ROLES = ("gemm", "evidence/faults/programs")
"""Folders whose statements are a kernel's."""


def places(error: HardwareFault) -> tuple[str, ...]:
    """``file:line`` of every statement that a fault names, the nearest first.

    A deadlock names where each warp waits, a race its two accesses, and any other fault
    the one statement that the machine refused; what a CTA leaves behind is at `EXIT`.
    """
    if isinstance(error, DeadlockError):
        found = [waiter.rpartition(" at ")[2] for waiter, _, _ in error.edges]
    elif isinstance(error, ExitFault):
        found = [error.where if _PLACE.fullmatch(error.where) else EXIT]
    else:
        stack = list(traceback.walk_tb(error.__traceback__))
        named = (_statement(frame, line) for frame, line in reversed(stack))
        found = [next((place for place in named if place), "")]
    for race in getattr(error, "races", ()):
        found += [race.first.source, race.second.source]
    return tuple(dict.fromkeys(place for place in found if place))


def _statement(frame: FrameType, line: int) -> str:
    """Return the kernel's statement that a frame of the stack executes, if any."""
    code, known = frame.f_code, frame.f_locals
    if code is machine_state.MachineState.land.__code__:
        landing: Any = known["op"]
        return str(landing.statement)
    if code is executor._run.__code__:
        executing: Any = known["state"]
        return str(executing.warp.kernel_source)
    if code is MbarrierWait.ready.__code__:
        waiting: Any = known["self"]
        warp = waiting.warp
        return warp.kernel_source or suspended_line(warp.body, {})
    path = Path(code.co_filename)
    if not path.is_relative_to(_PACKAGE) or is_caller_meant(frame.f_globals):
        return ""
    inside = path.relative_to(_PACKAGE)
    if not inside.as_posix().startswith(_ROLES) or inside.name == "problem.py":
        return ""
    return f"{_PACKAGE.name}/{inside.as_posix()}:{line}"
