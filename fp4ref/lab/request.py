"""request: a reader's own figures and access patterns, from a TOML file.

[parameters]
clock = 1.9e9             # within the published range

[[pattern]]
name = "my rows"
width = 16                # bytes a lane
load = true               # ld.shared; without it st.shared
offsets = [0, 272, 544]   # bytes from the start of shared memory, lane 0 on

[[pattern]]
name = "a stride"
width = 4
start = 0
stride = 132
swizzle = true            # of 128 bytes
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.files.toml_rows import line_of, parse, rows
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.lab.banks import LANES, Access, access
from fp4ref.layout import SwizzleMode
from fp4ref.parameters import Parameters, published

_FIELDS = ({"name", "width", "offsets"}, {"name", "width", "stride"})
_OPTIONAL = ({"load"}, {"load", "start", "swizzle"})


@dataclass(frozen=True, slots=True)
class Request:
    """What a report is made of.

    Attributes
    ----------
    patterns
        The reader's accesses, by name.
    """

    parameters: Parameters = field(default_factory=published)
    patterns: tuple[tuple[str, Access], ...] = ()


def read_request(path: Path) -> Request:
    """Read a reader's file.

    Raises
    ------
    InputError
        With file and line: it cannot be read, is no TOML, names no such parameter, has
        a figure outside its published range, or a pattern that no warp can have.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: no text in UTF-8") from None
    found = parse(text, str(path))
    for name in found:
        if name not in ("parameters", "pattern"):
            where = f"{path}:{line_of(text, name)}"
            raise InputError(f"{where}: {name}: need [parameters] or [[pattern]]")
    return Request(_parameters(found, text, path), tuple(_patterns(found, text, path)))


def _parameters(found: dict[str, Any], text: str, path: Path) -> Parameters:
    parameters = published()
    asked = found.get("parameters", {})
    if not isinstance(asked, dict):
        where = f"{path}:{line_of(text, 'parameters')}"
        raise InputError(f"{where}: parameters: need a table of name = number")
    for name, value in asked.items():
        where = f"{path}:{line_of(text, name)}"
        parameters = parameters.override(name, value, where)
    return parameters


def _patterns(found: dict[str, Any], text: str, path: Path) -> list[tuple[str, Access]]:
    patterns: list[tuple[str, Access]] = []
    for table, line in rows(found, text, str(path), "pattern"):
        where = f"{path}:{line}"
        try:
            patterns.append(_pattern(table))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if patterns[-1][0] in [name for name, _ in patterns[:-1]]:
            raise InputError(f"{where}: pattern {patterns[-1][0]!r}: there is one")
    return patterns


def _pattern(table: dict[str, Any]) -> tuple[str, Access]:
    name = table.get("name")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError("pattern: name: need a text of printable characters")
    given = set(table)
    by_stride = "stride" in given
    if given - _OPTIONAL[by_stride] != _FIELDS[by_stride]:
        raise InputError(
            f"pattern {name!r}: has {', '.join(sorted(given))}; need name, width and "
            "either offsets, or stride with start and swizzle if you like; and load"
        )
    try:
        offsets = _strided(table) if by_stride else table["offsets"]
        if not isinstance(offsets, list):
            raise InputError(f"offsets: {offsets!r:.60}; need a list of bytes")
        return name, access(offsets, table["width"], load=_flag(table, "load"))
    except InputError as error:
        raise InputError(f"pattern {name!r}: {error}") from None


def _strided(table: dict[str, Any]) -> list[int | None]:
    start = require_integer(table.get("start", 0), "start", 0)
    stride = require_integer(table["stride"], "stride")
    swizzle = _flag(table, "swizzle")
    every = [start + stride * lane for lane in range(LANES)]
    if swizzle and 0 <= min(every) <= max(every) < SMEM_NBYTES:
        every = [int(SwizzleMode.B128.swizzle(at)) for at in every]
    return [*every]


def _flag(table: dict[str, Any], name: str) -> bool:
    found = table.get(name, False)
    if not isinstance(found, bool):
        raise InputError(f"{name}: {found!r:.60}; need true or false")
    return found
