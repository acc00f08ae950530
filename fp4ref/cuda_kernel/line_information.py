"""line_information: which statement of the kernel each line of its PTX comes from.

The compiler says where each instruction stands and, of an inlined call, where the call
stands. The text that the machine runs keeps the statement of a role, and not the
wrapper in ``kernel/hardware`` that it was inlined from: so a compiled event reads as
the emulator's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import NamedTuple

from fp4ref.hardware.source_line import is_caller_meant

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(?:.*/)?(kernel/[^"]+)".*')
_LOC = re.compile(
    r"\s*\.loc\s+(\d+) (\d+) (\d+)"
    r"(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?"
)

Place = tuple[str, str, str]
"""File number, line and column, as ``.loc`` has them."""


class KernelPlace(NamedTuple):
    """A statement of a file of ``kernel/``; `line` counts from 1."""

    file: str
    line: int


def normalised(ptx: str) -> str:
    """Return PTX whose lines name ``kernel/`` files, and the statement of a role.

    Of an inlined call the innermost statement outside the wrappers stays: what the
    emulator calls the source of an event. Debug strings go.
    """
    names, lines = _file_names(ptx), []
    for line, calls in _with_calls(ptx):
        if found := _FILE.fullmatch(line):
            line = f'\t.file\t{found[1]} "{found[2]}"'
        elif _LOC.match(line):
            line = f"\t.loc\t{' '.join(_statement(calls, names))}"
        lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def call_chains(ptx: str) -> list[tuple[KernelPlace, ...]]:
    """Return, for each line of ``normalised(ptx)``, the statements it comes from.

    Parameters
    ----------
    ptx
        As NVRTC writes it.

    Returns
    -------
    list
        The innermost statement first, then the calls that it was inlined at.
    """
    names = _file_names(ptx)
    return [
        tuple(
            KernelPlace(names[file], int(line))
            for file, line, _ in calls
            if file in names
        )
        for _, calls in _with_calls(ptx)
    ]


def _file_names(ptx: str) -> dict[str, str]:
    return {m[1]: m[2] for line in ptx.splitlines() if (m := _FILE.fullmatch(line))}


def _with_calls(ptx: str) -> Iterator[tuple[str, tuple[Place, ...]]]:
    """Give each line before the debug sections, with the places it comes from."""
    above: dict[Place, Place | None] = {}
    calls: tuple[Place, ...] = ()
    for line in ptx.splitlines():
        if line.lstrip().startswith(".section"):
            return
        if not _FILE.fullmatch(line) and (found := _LOC.match(line)):
            place: Place = (found[1], found[2], found[3])
            outer: Place | None = (found[4], found[5], found[6]) if found[4] else None
            # A template that calls itself: what called it first is still known.
            if outer != place:
                above[place] = outer
            calls = _outwards(place, above)
        yield line, calls


def _outwards(place: Place, above: dict[Place, Place | None]) -> tuple[Place, ...]:
    """Return a place, where its function was inlined, and so on."""
    chain = [place]
    while (outer := above.get(chain[-1])) is not None and outer not in chain:
        chain.append(outer)
    return tuple(chain)


@cache
def is_wrapper(file: str) -> bool:
    """Whether not `file` but the statement that calls it is an event's source.

    Of the kernel's own files those are the twins of modules that say so.
    """
    if not file.startswith("kernel/gemm/"):
        return file.startswith("kernel/")
    path = PurePosixPath(file).with_suffix("").relative_to("kernel")
    return is_caller_meant(vars(import_module(f"fp4ref.{'.'.join(path.parts)}")))


def _statement(calls: tuple[Place, ...], names: dict[str, str]) -> Place:
    """Return the innermost place outside the wrappers, or else the outermost."""
    outside = (place for place in calls if not is_wrapper(names.get(place[0], "")))
    return next(outside, calls[-1])
