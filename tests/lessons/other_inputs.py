"""other_inputs: an erratum's input, changed in every way that its kind allows.

`others` gives one context manager for each change; inside it a truth is computed from
the changed input. Results kept from before are forgotten on the way in and out.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from enum import Enum
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from fp4ref.cuda_kernel import build
from fp4ref.lessons import record
from fp4ref.lessons.truths import runs
from fp4ref.trace import Event, Trace

Change = AbstractContextManager[None]

EPILOGUE = "fp4ref.lessons.truths.collective_epilogue"
OTHER_VALUES: dict[str, list[Any]] = {
    # What one more, one less or twice as much would not show.
    "fp4ref.lessons.truths.structured_kernel:_N": [32],
    f"{EPILOGUE}:_COLUMN_MAJOR_EXAMPLE.d_layout": ["row"],
    f"{EPILOGUE}:_FIRST_EXAMPLE.c": ["f32"],
    "record:lines.prefetch_condition": [["blockIdx.x == 0"]],
    "record:lines.tensor_map_arguments": [["a", "b", "c", "d", "multicastMask"]],
}


def others(name: str) -> Iterator[Change]:
    """Changes of the input that an entry names."""
    kind, _, what = name.partition(":")
    known = OTHER_VALUES.get(name)
    if kind == "record":
        yield from _records(what.split("."), known)
    elif kind == "trace":
        yield from _traces(what)
    elif kind in ("ptx", "sass"):
        yield from _texts(kind, what)
    else:
        yield from _constants(kind, what.split("."), known)


def other_values(value: Any) -> list[Any]:
    """Values of the same type that are not `value`."""
    match value:
        case bool():
            return [not value]
        case Enum():
            return [each for each in type(value) if each is not value]
        case int() | float():
            return [value + 1, 2 * value, value - 1, value // 2]
        case str() if value.isdigit():
            return [str(int(value) + 1)]
        case str():
            return [f"other {value}", f"{value}.other"]
        case list() | tuple():
            kind = type(value)
            changed = [
                kind([*value[:i], other, *value[i + 1 :]])
                for i, each in enumerate(value)
                for other in other_values(each)
            ]
            all_of_them = kind(other_values(each)[0] for each in value)
            lengths = [kind(value[:-1]), kind([*value[:1], *value])]
            return [*changed, all_of_them, *lengths]
        case np.ndarray():
            is_float = value.dtype.kind == "f"
            infinite = [np.full_like(value, np.inf)] if is_float else []
            return [np.roll(value, 1), value + 1, *infinite]
        case FunctionType():
            return [lambda *a, f=f: f(value(*a)) for f in _RESULTS]
    raise TypeError(f"no other value of {value!r}")


_RESULTS = (
    lambda found: other_values(found)[0],
    lambda found: other_values(found)[-1],
)
"""Other results of a function."""


@contextmanager
def _patched(*places: tuple[Any, str, Any]) -> Iterator[None]:
    _forget()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, value in places:
            patch.setattr(owner, name, value)
        yield
    _forget()


def _forget() -> None:
    for kept in (runs.instructions, runs.quarter_of):
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


@cache
def _imports(path: str) -> list[tuple[str, str, str]]:
    """``from module import name as alias`` of one source file."""
    return [
        (node.module or "", each.name, each.asname or each.name)
        for node in ast.walk(ast.parse(Path(path).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]


def _bindings(module: str, name: str) -> list[tuple[Any, str]]:
    """Every module of this package that has the name, with its name there."""
    found = [(import_module(module), name)]
    for importer in [m for n, m in sys.modules.items() if n.startswith("fp4ref.")]:
        file = getattr(importer, "__file__", None)
        for source, imported, alias in _imports(file) if file else ():
            if (source, imported) == (module, name):
                found.append((importer, alias))
    return found


def _with(value: Any, fields: list[str], other: Any) -> Any:
    """Replace a field of a field of `value`, or what a table has under a name."""
    if not fields:
        return other
    first, *rest = fields
    new = {first: _with(_field(value, first), rest, other)}
    return {**value, **new} if isinstance(value, Mapping) else replace(value, **new)


def _field(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, Mapping) else getattr(value, name)


def _constants(
    module: str, path: list[str], known: list[Any] | None
) -> Iterator[Change]:
    name, *fields = path
    value = getattr(import_module(module), name)
    inner = reduce(_field, fields, value)
    for other in known or other_values(inner):
        try:
            new = _with(value, fields, other)
        except Exception:  # the configuration refuses it
            continue
        yield _patched(*((owner, as_, new) for owner, as_ in _bindings(module, name)))


def _records(path: list[str], known: list[Any] | None) -> Iterator[Change]:
    *way, last = [*path, "found"] if path[0] == "lines" else path
    old = record.entry(*way)[last]
    if path[0] == "ptx":
        changed = [old | {"error": "" if old["error"] else "refused"}]
    elif path[0] == "refused":
        changed = ["" if old else "refused"]
    else:
        changed = known or other_values(old)
    for other in changed:
        whole = copy.deepcopy(record.record())
        place = whole
        for name in way:
            place = place[name]
        place[last] = other
        yield _patched((record, "record", lambda whole=whole: whole))


def _with_operand_changed(name: str, which: int) -> Callable[[Event], Event]:
    """Give an operand of every event another value; the `which`-th that there is."""

    def change(event: Event) -> Event:
        try:
            other = other_values(event.operands[name])[which]
        except (KeyError, TypeError, IndexError):
            return event
        return replace(event, operands={**event.operands, name: other})

    return change


def _relabelled(event: Event) -> Event:
    """Swap the two barriers of every ring."""
    swap = {"full": "empty", "empty": "full"}
    barrier = []
    for each in event.barrier:
        words = re.split(r"(\W)", each.label)
        label = "".join(swap.get(word, word) for word in words)
        barrier.append(each._replace(label=label))
    return replace(event, barrier=tuple(barrier))


def _with_arrival(event: Event) -> Event:
    """Have every change of a barrier take a pending count away."""
    barrier = []
    for each in event.barrier:
        phase, pending, tx = each.before
        barrier.append(each._replace(after=(phase, pending - 1, tx)))
    return replace(event, barrier=tuple(barrier))


_MOST_VALUES = 4
"""Other values of an operand that are tried."""

_EVENT_CHANGES: dict[str, Callable[[Event], Event]] = {
    "another operation": lambda e: replace(e, operation=f"other.{e.operation}"),
    "a longer operation": lambda e: replace(e, operation=f"{e.operation}.other"),
    "first": lambda e: replace(e, step=-1),
    "last": lambda e: replace(e, step=10**9),
    "another warp": lambda e: replace(e, agent="warp9"),
    "no arrival": lambda e: replace(e, barrier=()),
    "an arrival": _with_arrival,
    "the other barrier": _relabelled,
    "what it writes": lambda e: replace(e, reads=(*e.reads, *e.writes)),
    "in no frame": lambda e: replace(e, frames=()),
}


def _traces(operation: str) -> Iterator[Change]:
    """Changes of the events of one operation, in the traces of all schedules."""

    def changed(change: Callable[[list[Event]], list[Event]]) -> Change:
        real = runs.trace

        def trace(schedule: str = "eager") -> Trace:
            changed = copy.copy(real(schedule))
            changed.events = change(changed.events)
            return changed

        where = _bindings("fp4ref.lessons.truths.runs", "trace")
        return _patched(*((owner, name, trace) for owner, name in where))

    def is_named(event: Event) -> bool:
        return event.operation.startswith(operation)

    names = {name for e in runs.trace() if is_named(e) for name in e.operands}
    operands = (
        _with_operand_changed(name, which)
        for name in sorted(names)
        for which in range(_MOST_VALUES)
    )
    for each in (*_EVENT_CHANGES.values(), *operands):
        yield changed(lambda es, each=each: [each(e) if is_named(e) else e for e in es])
    yield changed(lambda es: _all_alike(es, is_named))
    yield changed(lambda es: _without_first(es, is_named))
    yield changed(lambda es: [e for e in es for _ in range(1 + is_named(e))])


def _all_alike(events: list[Event], is_named: Callable[[Event], bool]) -> list[Event]:
    first = next(e for e in events if is_named(e))
    return [replace(e, operands=first.operands) if is_named(e) else e for e in events]


def _without_first(
    events: list[Event], is_named: Callable[[Event], bool]
) -> list[Event]:
    first = next(i for i, e in enumerate(events) if is_named(e))
    return events[:first] + events[first + 1 :]


def _texts(kind: str, prefix: str) -> Iterator[Change]:
    """Another opcode, or other operands, in the packaged kernel's PTX or SASS."""
    name = f"example_72b.{kind}"
    real = build.packaged
    text = real(name)
    assert prefix in text
    changes = (
        lambda: text.replace(prefix, f"{prefix}.other"),
        lambda: text.replace(prefix, f"{prefix}.sync.aligned"),
        lambda: "\n".join(_with_operand(line, prefix) for line in text.splitlines()),
        lambda: "\n".join(_unaligned(line, prefix) for line in text.splitlines()),
        lambda: "\n".join(_of_rank_5(line, prefix) for line in text.splitlines()),
        lambda: text.replace(prefix, "other"),
    )
    for change in changes:

        def packaged(file: str, changed: str = change()) -> str:
            return changed if file == name else real(file)

        where = _bindings("fp4ref.cuda_kernel.build", "packaged")
        yield _patched(*((owner, as_, packaged) for owner, as_ in where))


def _with_operand(line: str, prefix: str) -> str:
    """Give an instruction one register more, first and last."""
    head, opcode, rest = line.partition(prefix)
    name, _, operands = rest.partition(" ")
    if not opcode:
        return line
    return f"{head}{opcode}{name} %other, {operands.rstrip(';')}, %other;"


def _of_rank_5(line: str, prefix: str) -> str:
    return re.sub(r"\.\dd\.", ".5d.", line) if prefix in line else line


def _unaligned(line: str, prefix: str) -> str:
    return line.replace(".sync.aligned", "") if prefix in line else line
