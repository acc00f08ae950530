"""addresses: where the texts are that the package names, as links for a reader.

Sections of the PTX ISA, files of CUTLASS, and projects. Nothing here is ever asked for
by the package itself.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, Final

KNOWN: Final[dict[str, Any]] = tomllib.loads(
    resources.files("fp4ref.evidence").joinpath("addresses.toml").read_text("utf-8")
)


def cutlass(path: str, line: str | None = None) -> str:
    """Return the address of a file of CUTLASS."""
    known = KNOWN["cutlass"]
    at = f"#L{line}" if line else ""
    return f"{known['address']}/blob/{known['tag']}/{path}{at}"


def ptx(section: str) -> str:
    """Return the address of a section of the PTX ISA."""
    known = KNOWN["ptx"]
    return f"{known['address']}#{known['sections'][section]}"


@cache
def section_of(operation: str) -> str:
    """Return the section on an operation, by the longest part that has one, or ''."""
    name = operation.replace("::", ".")
    while name and name not in KNOWN["ptx"]["sections"]:
        name = name.rpartition(".")[0]
    return name
