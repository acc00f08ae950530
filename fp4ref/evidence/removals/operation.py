"""operation: what is a synchronisation operation, in PTX and on the emulated machine.

PTX decides: an instruction that waits, arrives, expects bytes, fences, commits, meets
others, or acquires or releases a word of memory. A function of the machine is the
instruction that its docstring names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Literal

from fp4ref.hardware import (
    clc,
    cluster,
    cp_async,
    gmem,
    mbarrier,
    named_barrier,
    smem,
    tcgen05,
    tma,
    tmem,
)

UNITS: tuple[ModuleType, ...] = (
    *(clc, cluster, cp_async, gmem, mbarrier, named_barrier, smem),
    *(tcgen05, tma, tmem),
)
"""The machine's modules whose functions are instructions."""

Variant = Literal["left out", "answers yes"]
"""What takes its place: nothing, or, of a test, the answer that all is done."""

_SYNCHRONISES = re.compile(
    r"mbarrier\.(arrive|arrive_drop|expect_tx|complete_tx|test_wait|try_wait)\b"
    r"|(bar|barrier|fence|membar|griddepcontrol)\."
    r"|tcgen05\.(commit|fence|wait|alloc|dealloc|relinquish_alloc_permit)\b"
    r"|cp\.async\.(bulk\.)?(commit|wait)_(group|all)\b"
    r"|cp\.async\.mbarrier\."
    r"|ld\.acquire\b|red\.release\b"
)
_QUALIFIERS = re.compile(
    r"\.(?:shared|sync|aligned|cta_group|relaxed|parity|read|gpu|\.)"
    r"|(?<!mbarrier_init)(?<!ld)(?<!red)\.(?:release|acquire)"
)
_NAMED = re.compile(r"``([a-z][\w.:]*)")


def is_synchronisation(opcode: str) -> bool:
    """Whether an instruction of PTX is a synchronisation operation.

    ``tcgen05.alloc`` blocks, and what frees TMEM lets it go on, so these count too.
    """
    return _SYNCHRONISES.match(opcode) is not None


def short(opcode: str) -> str:
    """Return an opcode without state space, type, scope and ``.sync.aligned``."""
    if opcode.startswith("bar."):
        return opcode
    return _QUALIFIERS.split(opcode)[0]


def variants(opcode: str) -> tuple[Variant, ...]:
    """What a removal can mean."""
    if opcode.startswith("mbarrier.test_wait"):
        return "left out", "answers yes"
    return ("left out",)


def _operations() -> Mapping[tuple[str, str], str]:
    found = {}
    for module in UNITS:
        for name, value in vars(module).items():
            if not isinstance(value, FunctionType) or name.startswith("_"):
                continue
            named = _NAMED.search(inspect.getdoc(value) or "")
            if named and is_synchronisation(named[1]):
                found[module.__name__, name] = short(named[1])
    return MappingProxyType(found)


OPERATIONS: Mapping[tuple[str, str], str] = _operations()
"""Opcode by module and name of each function of the machine that synchronises."""
