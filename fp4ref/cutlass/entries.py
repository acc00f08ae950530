"""entries: the parameter block of each kernel, as its PTX declares it.

A program launches a kernel with one pointer for each parameter and tells nobody how
long they are. PTX does: ``.entry`` lists types, sizes and alignments, and the block
has them in this order, each at its alignment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fp4ref.errors import InputError

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>[a-z]\d+)\s+"
    r"(?:\.ptr\b[^,]*?\s)?(?P<name>[\w$]+)\s*(?:\[(?P<count>\d+)\])?\s*$"
)


class Param(NamedTuple):
    """One kernel parameter: where it is in the block and how long."""

    offset: int
    nbytes: int


def read_entries(ptx: str) -> dict[str, tuple[Param, ...]]:
    """Return the parameters of every kernel entry in `ptx`, by its name.

    Raises
    ------
    InputError
        A parameter declaration that is not understood.
    """
    return {
        name: _layout(name, [d.strip() for d in text.split(",") if d.strip()])
        for name, text in _ENTRY.findall(ptx)
    }


def _layout(entry: str, declarations: Sequence[str]) -> tuple[Param, ...]:
    params: list[Param] = []
    end = 0
    for declaration in declarations:
        found = _PARAM.match(declaration)
        if not found:
            raise InputError(f"entry {entry}: parameter {declaration!r} is not known")
        size = int(found["type"][1:]) // 8
        align = int(found["align"] or size)
        offset = -(-end // align) * align
        nbytes = size * int(found["count"] or 1)
        params.append(Param(offset, nbytes))
        end = offset + nbytes
    return tuple(params)


def parameter_block(params: Sequence[Param], values: bytes) -> bytes:
    """Return the block that a kernel reads, from its values without gaps.

    Raises
    ------
    InputError
        `values` is not as long as the parameters together.
    """
    if len(values) != sum(p.nbytes for p in params):
        raise InputError(
            f"{len(values)} bytes for parameters of {[p.nbytes for p in params]} bytes"
        )
    block = bytearray(params[-1].offset + params[-1].nbytes if params else 0)
    taken = 0
    for offset, nbytes in params:
        block[offset : offset + nbytes] = values[taken : taken + nbytes]
        taken += nbytes
    return bytes(block)
