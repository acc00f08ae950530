"""The errata's truths: computed from what their entries name, and never typed in."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from other_inputs import others

from fp4ref import frames
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.lessons import record
from fp4ref.lessons.answer import first_difference
from fp4ref.lessons.errata import ERRATA, Entry, ErrataError
from fp4ref.lessons.truths import epilogue

CLASSES = {
    "document's own figures": "fp4ref.lessons.truths.",
    "A line of C": "record:lines.",
    "own refusal": "record:refused.",
    "ptxas 13.5's verdict": "record:ptx.",
}
"""What an evidence says, and the input that it therefore has."""


def reads(entry: Entry) -> bool:
    """Whether some other input gives another value."""
    before = entry.true_value
    for change in others(entry.input):
        with change:
            try:
                after = replace(entry).true_value
            except ErrataError:
                continue
        if first_difference(after, before) is not None:
            return True
    return False


@pytest.mark.parametrize("id", ERRATA)
def test_another_input_gives_another_value(id: str) -> None:
    assert reads(ERRATA[id]), f"{ERRATA[id].truth} does not read {ERRATA[id].input}"


def test_an_input_that_a_truth_does_not_read_is_noticed() -> None:
    entry = ERRATA["001-14"]
    unread = "record:types.sm90_epilogue.stages_c"
    assert not reads(replace(entry, input=unread))
    assert not reads(replace(ERRATA["6.11"], input="trace:tcgen05.alloc"))
    assert not reads(replace(ERRATA["8.5"], input="ptx:tcgen05.mma"))
    assert not reads(replace(ERRATA["003-22"], input=entry.truth[:-13] + "_EXTENT"))


def test_after_a_change_everything_is_as_before() -> None:
    entry = ERRATA["001-14"]
    assert reads(entry)
    assert replace(entry).true_value == entry.true_value
    assert record.compiled("sm90_epilogue", "fragment_size") == entry.true_value


@pytest.mark.parametrize("id", ERRATA)
def test_an_evidence_and_its_input_agree(id: str) -> None:
    entry = ERRATA[id]
    if entry.evidence.startswith("CUTLASS 4.2.0's compiled"):
        assert entry.input.startswith("record:types.")
    for words, start in CLASSES.items():
        if words in entry.evidence:
            assert entry.input.startswith(start)
    assert ("in the record" in entry.evidence) == entry.input.startswith("record:")


def mask(mode: int) -> int:
    return int(record.compiled("cute_types", f"mask_of_mode_{mode}"))


def of_72b(name: str) -> int:
    return int(record.compiled("sm100_72b", name))


def test_what_this_package_computes_is_what_cutlass_compiles() -> None:
    assert ERRATA["1.1"].true_value == of_72b("mainloop_stages")
    assert ERRATA["1.2"].true_value == of_72b("transaction_nbytes")
    assert ERRATA["1.5"].true_value == (mask(1) | mask(2)).bit_count()
    assert ERRATA["1.6b"].true_value == record.line("umma_arrive")
    assert int(record.line("smem_capacity")) == SMEM_NBYTES
    assert ERRATA["3.7"].true_value == mask(2)
    assert ERRATA["3.7b"].true_value == mask(1)


@pytest.mark.parametrize(("frame", "ring"), [("5.1", None), ("6.1", "accumulator")])
def test_this_kernels_producers_start_as_cutlass_has_it(
    frame: str, ring: str | None
) -> None:
    shown = frames.show(frame)
    state = shown[ring] if ring else shown
    expected = [int(value) for value in record.lines("producer_start_state")]
    assert [state["index"], state["phase"], state["count"]] == expected


@pytest.mark.parametrize("id", ERRATA)
def test_a_line_that_an_evidence_names_is_in_the_record(id: str) -> None:
    recorded = {
        (f"include/{each['file']}", each["line"])
        for each in record.entry("lines").values()
        if each["package"] == "nvidia-cutlass"
    }
    named = re.findall(r"(include/[\w./]+):(\d+)", ERRATA[id].evidence)
    assert {(file, int(line)) for file, line in named} <= recorded


def truth_of(entry: Entry) -> Callable[[], Any]:
    module, _, name = entry.truth.partition(":")
    found: Callable[[], Any] = getattr(import_module(module), name)
    return found


def typed_in(function: Callable[[], Any]) -> bool:
    """Whether a function reads nothing, or only gives back a constant of its module."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    read = {each.id for each in names if isinstance(each.ctx, ast.Load)} - own
    read = {each for each in read if not hasattr(builtins, each)}
    last = node.body[-1]  # type: ignore[attr-defined]
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Name):
        module = ast.parse(inspect.getsource(inspect.getmodule(function)))
        assigned = {
            each.id
            for statement in module.body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            for each in ast.walk(statement)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        read -= assigned if len(node.body) <= 2 else set()  # type: ignore[attr-defined]
    return not read


@pytest.mark.parametrize("truth", sorted({each.truth for each in ERRATA.values()}))
def test_a_truth_is_not_typed_in(truth: str) -> None:
    entry = next(each for each in ERRATA.values() if each.truth == truth)
    assert not typed_in(truth_of(entry))


def literal() -> int:
    """A bare literal."""
    return 16


def arithmetic_on_literals() -> int:
    """A sum that nothing can change."""
    stages, matrices = 4, 2
    return round(stages * matrices * 64 / 32)


_ANSWER = 16


def constant() -> int:
    """An answer under a name."""
    return _ANSWER


def test_what_is_typed_in_is_noticed() -> None:
    assert typed_in(literal)
    assert typed_in(arithmetic_on_literals)
    assert typed_in(constant)
    assert not typed_in(epilogue.warps)
