"""gaps: the one list of what exists elsewhere and not here.

A gap is something that the hardware, PTX 9.0, the CUDA runtime, or the formats and
recipes in use for FP4 have, and that fp4ref does not do. It is refused by name, with an
error whose attribute ``gap`` is the id of a row here, or it goes unseen. Input that is
wrong everywhere (a shape that does not fit, a word that nobody knows, a limit of the
hardware) is no gap.

The rows are data: ``data/gaps.toml`` for the machine and the product, and two more
files for instructions.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that exists elsewhere and not here.

    Attributes
    ----------
    operation
        PTX name, or the part of the product.
    refused
        Whether its use is refused by name; if not, it goes unseen.
    opcodes
        Which refused opcodes the row speaks for: leading words, then modifiers that are
        among the others, as in ``"tcgen05 .cta_group::2"``.
    examples
        PTX instructions that ptxas takes for `target` and the executor refuses.
    """

    id: str
    operation: str
    what: str
    refused: bool = True
    opcodes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    target: str = "sm_100a"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


_FILES = ("gaps.toml", "gaps_arithmetic.toml", "gaps_instructions.toml")


def _read() -> tuple[Gap, ...]:
    found: list[Gap] = []
    for name in _FILES:
        text = resources.files("fp4ref.data").joinpath(name).read_text("utf-8")
        for row in tomllib.loads(text)["gap"]:
            lists = {k: tuple(v) for k, v in row.items() if isinstance(v, list)}
            found.append(Gap(**row | lists))
    return tuple(found)


GAPS: tuple[Gap, ...] = tuple(sorted(_read(), key=lambda gap: not gap.refused))
"""Every gap, refused ones first."""


@cache
def covering(opcode: str) -> Gap | None:
    """Return the row that speaks for a refused opcode: the one with the most words."""
    words = opcode.split(".")
    best, most = None, 0
    for gap in GAPS:
        for pattern in gap.opcodes:
            head, *modifiers = pattern.split(" ")
            leading = head.split(".")
            if words[: len(leading)] == leading and all(
                modifier[1:] in words for modifier in modifiers
            ):
                count = len(leading) + len(modifiers)
                if count > most:
                    best, most = gap, count
    return best
