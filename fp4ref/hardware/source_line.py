"""source_line: the kernel statement that executes, for traces and faults.

A module of small steps, whose callers say more than it does, sets ``SOURCE_IS_CALLER``:
then the statement that calls it is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType, GeneratorType
from typing import Any

_HARDWARE = str(Path(__file__).parent)
_PACKAGE = Path(__file__).parents[1]


def is_caller_meant(module: Mapping[str, Any]) -> bool:
    """Whether the module of these globals leaves its place to its callers."""
    return module.get("SOURCE_IS_CALLER", False) is True


def source_line(frame: FrameType | None, known: dict[CodeType, str | None]) -> str:
    """``file:line`` of the nearest caller that is not hardware and does not pass it on.

    `known` caches, per code object, the name to print, or None for one to skip.
    """
    while frame is not None:
        code = frame.f_code
        if code not in known:
            file = code.co_filename
            skip = file.startswith(_HARDWARE) or is_caller_meant(frame.f_globals)
            path = Path(file)
            inside = path.is_relative_to(_PACKAGE)
            name = path.relative_to(_PACKAGE.parent).as_posix() if inside else path.name
            known[code] = None if skip else name
        if name_or_skip := known[code]:
            return f"{name_or_skip}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def caller() -> FrameType | None:
    """Return the frame of the caller's caller."""
    return sys._getframe(2)


def suspended_line(body: object, known: dict[CodeType, str | None]) -> str:
    """``file:line`` of the role statement at which a warp's `body` is suspended."""
    line = ""
    while isinstance(body, GeneratorType) and body.gi_frame is not None:
        line = source_line(body.gi_frame, known) or line
        body = body.gi_yieldfrom
    return line
