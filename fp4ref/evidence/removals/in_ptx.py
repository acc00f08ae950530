"""in_ptx: the synchronisation operations in the text of the compiled kernel."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from unittest.mock import patch

from fp4ref.cuda_kernel import KernelCode, on_sm
from fp4ref.cuda_kernel.build import compile_kernel
from fp4ref.cuda_kernel.choices import PARTS, ROLES
from fp4ref.cuda_kernel.header import PLAN
from fp4ref.cuda_kernel.line_information import (
    KernelPlace,
    call_chains,
    is_wrapper,
    normalised,
)
from fp4ref.cuda_kernel.sources import MAIN, kernel_root
from fp4ref.evidence.removals.operation import Variant, is_synchronisation, short
from fp4ref.evidence.removals.site import Call, Chain
from fp4ref.gemm.config import GemmConfig

_INSTRUCTION = re.compile(r"(\s*)(?:@!?%?\w+\s+)?([a-z][\w.:]*)([^;]*);")
_COMPARISON = re.compile(r"\s*setp\.ne\.b32\s+[^,]*,[^,]*,\s*([^;]*);")
_FUNCTION = re.compile(r"__device__ __forceinline__ .*?(\w+)\(")
_WRITTEN = {MAIN, PARTS, PLAN, ROLES}
"""Files between the kernel's entry and a role, or written for each configuration."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A synchronisation operation in the text of one configuration.

    Attributes
    ----------
    line
        Of the text, from 0.
    copy
        Number among those that the compiler made of one statement, from 1.
    """

    line: int
    chain: Chain
    copy: int


@cache
def instructions(config: GemmConfig) -> tuple[Instruction, ...]:
    """Find every synchronisation operation in a configuration's text.

    Raises
    ------
    CompileError
        NVRTC is not installed.
    """
    raw = compile_kernel(config).ptx
    copies: dict[Chain, int] = {}
    found = []
    lines = zip(_lines(config), call_chains(raw), strict=False)
    for number, (line, places) in enumerate(lines):
        instruction = _INSTRUCTION.match(line)
        if instruction is None or not is_synchronisation(instruction[2]):
            continue
        chain = Chain(_calls(places), short(instruction[2]))
        copies[chain] = copies.get(chain, 0) + 1
        found.append(Instruction(number, chain, copies[chain]))
    return tuple(found)


@cache
def _lines(config: GemmConfig) -> list[str]:
    return normalised(compile_kernel(config).ptx).splitlines()


def _calls(places: tuple[KernelPlace, ...]) -> tuple[Call, ...]:
    """Return the statements of the roles, the outermost first."""
    return tuple(
        Call(place.file, _function(place), place.line)
        for place in reversed(places)
        if place.file not in _WRITTEN and not is_wrapper(place.file)
    )


def _function(place: KernelPlace) -> str:
    """Return the function that a statement stands in."""
    heads = _heads(place.file)
    return next(name for line, name in reversed(heads) if line <= place.line)


@cache
def _heads(file: str) -> list[tuple[int, str]]:
    """Line and name of each function of a file."""
    text = (kernel_root() / PurePosixPath(file)).read_text(encoding="utf-8")
    return [
        (number, found[1])
        for number, line in enumerate(text.splitlines(), 1)
        if (found := _FUNCTION.search(line))
    ]


def replaced(line: str, variant: Variant, awaited: str = "") -> str:
    """Return what takes the place of an instruction: nothing, or the answer.

    A wait is a loop around ``try_wait`` or ``ld.acquire``, which left out lets the warp
    go on. `awaited` is the operand that the loop compares the loaded word with.
    """
    found = _INSTRUCTION.match(line)
    assert found is not None
    indent, opcode, operands = found.groups()
    if opcode.startswith("ld.acquire"):
        return f"{indent}mov.b32 {operands.split(',')[0].strip()}, {awaited};"
    if not opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
        return line[: found.start(1)] + line[found.end() :]
    done = opcode.startswith("mbarrier.try_wait") or variant == "answers yes"
    predicate = operands.split(",")[0].strip()
    compare = "eq" if done else "ne"
    return f"{indent}setp.{compare}.u32 {predicate}, 0, 0;"


@contextlib.contextmanager
def changed(config: GemmConfig, line: int, text: str) -> Iterator[None]:
    """Let the backend ``"ptx"`` run the kernel with one line of its text replaced."""
    lines = list(_lines(config))
    lines[line] = text
    code = KernelCode("\n".join(lines) + "\n", "one line replaced")
    with patch.object(on_sm, "kernel_code", lambda _: code):
        yield


@contextlib.contextmanager
def removed(
    config: GemmConfig, instruction: Instruction, variant: Variant
) -> Iterator[None]:
    """Leave one operation out of a configuration's text."""
    lines, number = _lines(config), instruction.line
    text = replaced(lines[number], variant, _awaited(lines[number:]))
    with changed(config, number, text):
        yield


def _awaited(lines: list[str]) -> str:
    """Return what the next comparison for inequality compares with, if there is one."""
    compared = (_COMPARISON.match(line) for line in lines)
    return next((found[1] for found in compared if found), "")
