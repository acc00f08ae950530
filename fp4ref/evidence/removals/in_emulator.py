"""in_emulator: the synchronisation operations that the emulator's roles execute."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from fp4ref.evidence.removals.operation import OPERATIONS, Variant
from fp4ref.evidence.removals.site import Call, Chain
from fp4ref.hardware import source_line

_PACKAGE = Path(source_line.__file__).parents[1]
_GEMM = _PACKAGE / "gemm"
_HOST = "problem.py"
"""What launches the roles, and is none."""

Decide = Callable[[Chain], Variant | None]
"""Says of an operation that is about to execute what takes its place, if anything."""


@contextlib.contextmanager
def decided(decide: Decide) -> Iterator[None]:
    """Ask `decide` about every operation of the roles for the length of a ``with``."""
    known: dict[CodeType, str | None] = {}
    with contextlib.ExitStack() as stack:
        for (module_name, name), opcode in OPERATIONS.items():
            module = importlib.import_module(module_name)
            asked = _asking(getattr(module, name), opcode, decide, known)
            stack.enter_context(patch.object(module, name, asked))
        yield


@contextlib.contextmanager
def executed(found: set[Chain]) -> Iterator[None]:
    """Collect the operations that execute."""

    def note(chain: Chain) -> None:
        found.add(chain)

    with decided(note):
        yield


@contextlib.contextmanager
def removed(variant: Variant, *sites: Chain) -> Iterator[None]:
    """Leave operations out, wherever they would execute."""
    with decided(lambda chain: variant if chain in sites else None):
        yield


def _asking(
    original: Callable[..., Any],
    opcode: str,
    decide: Decide,
    known: dict[CodeType, str | None],
) -> Callable[..., Any]:
    """Return a function that does what `decide` leaves of `original`."""
    waits = inspect.isgeneratorfunction(original)

    def call(*args: Any, **named: Any) -> Any:
        chain = Chain(_calls(sys._getframe(1), known), opcode)
        variant = decide(chain) if chain.calls else None
        if variant is None:
            return original(*args, **named)
        return _nothing() if waits else variant == "answers yes"

    return call


def _nothing() -> Generator[Any, None, None]:
    """Do nothing where something may block."""
    yield from ()


def _calls(
    frame: FrameType | None, known: dict[CodeType, str | None]
) -> tuple[Call, ...]:
    """Return the statements of the roles on the stack, the outermost first.

    `known` caches the file by code object; None for one that is no role's.
    """
    calls: list[Call] = []
    while frame is not None:
        code = frame.f_code
        if code not in known:
            path = Path(code.co_filename)
            ours = path.is_relative_to(_GEMM) and path.name != _HOST
            ours = ours and not source_line.is_caller_meant(frame.f_globals)
            name = path.relative_to(_PACKAGE.parent).as_posix() if ours else None
            known[code] = name
        if file := known[code]:
            calls.append(Call(file, code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(calls))
