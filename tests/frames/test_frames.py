"""The index: 91 frames, each a function that exists, each claim with its truth."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from frame_kinds import KINDS

from fp4ref.errors import InputError
from fp4ref.frames import (
    FRAMES,
    Frame,
    FrameError,
    FrameKind,
    Verdict,
    derive,
    events_of,
    frame,
    resolve,
    show,
)
from fp4ref.gemm.why import Deduced
from fp4ref.lessons.errata import ERRATA
from fp4ref.trace import Trace

ROOT = Path(__file__).parents[2]
CONTEXTS = ["5 ctx", "6 ctx", "7 ctx"]
"""Entries of the warp loops: they have no number in the document."""


# The index itself.


def test_there_are_91_numbered_frames_and_three_contexts() -> None:
    numbered = [id for id in FRAMES if id not in CONTEXTS]
    assert len(numbered) == len(set(numbered)) == 91
    assert [id for id in FRAMES if id in CONTEXTS] == CONTEXTS
    by_part = Counter(entry.part for entry in FRAMES.values())
    assert by_part == {1: 10, 2: 4, 3: 7, 4: 5, 5: 19, 6: 25, 7: 14, 8: 10}


def test_kinds_and_verdicts_are_counted() -> None:
    kinds = {kind.value: len(entries) for kind, entries in KINDS.items()}
    assert kinds == {"event": 58, "constructed": 24, "derived": 9, "cond": 3}
    verdicts = Counter(entry.verdict.value for entry in FRAMES.values())
    assert verdicts == {"wrong": 58, "right": 15, "nearly": 21}


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_a_frame_is_right_exactly_if_the_errata_have_nothing_about_it(
    entry: Frame,
) -> None:
    about = [each.id for each in ERRATA.values() if entry.id in each.frames]
    assert (entry.verdict is Verdict.RIGHT) == (about == [])


def test_each_verdict_says_when_a_frame_has_it() -> None:
    assert [Verdict(each.value) for each in Verdict] == list(Verdict)
    meanings = [each.meaning for each in Verdict]
    assert len(set(meanings)) == 3
    assert all(text.endswith(".") for text in meanings)


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_an_entry_is_complete(entry: Frame) -> None:
    assert entry.part == int(entry.id[0])
    assert entry.title
    assert entry.claim.endswith((".", ":"))
    assert re.match(r"PTX ISA: |include/(cute|cutlass)/\S+\.(hpp|inl|h)$", entry.source)
    assert re.match(r"include/(cute|cutlass)/\S+\.(hpp|inl)$", entry.cutlass)
    assert re.match(r"\d\d_[a-z_0-9]+$", entry.notebook)
    if entry.verdict is not Verdict.RIGHT:
        assert entry.truth.endswith(".")
        assert entry.truth != entry.claim
    assert bool(entry.operations) == (entry.kind is FrameKind.EVENT)
    assert all(text == " ".join(text.split()) for text in (entry.claim, entry.truth))


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_the_kernel_twin_exists_and_has_the_same_stem(entry: Frame) -> None:
    module = entry.emulator.split(":")[0]
    if not entry.kernel:
        assert entry.kind is FrameKind.DERIVED  # a summary
        return
    assert (ROOT / entry.kernel).is_file()
    if module != "fp4ref.gemm.nvfp4_gemm":
        assert Path(entry.kernel).stem in module.split(".")


def test_an_unknown_frame_is_refused_with_near_ids() -> None:
    with pytest.raises(InputError, match=r"no frame '6.6.99'; near it: 6\.6\.9"):
        frame("6.6.99")
    with pytest.raises(InputError, match=r"ids run from 1\.1 to 8\.10"):
        frame("no such thing at all")


def test_the_index_is_read_only_when_it_is_used() -> None:
    code = (
        "import sys, fp4ref.frames as f; assert '_frames' not in vars(f.FRAMES);"
        "assert 'fp4ref.frames.warp_frames' not in sys.modules; len(f.FRAMES);"
        "assert '_frames' in vars(f.FRAMES)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_entry_is_json() -> None:
    entry = frame("6.10").to_dict()
    assert entry["kind"] == "event"
    assert entry["verdict"] == "wrong"
    assert entry["operations"] == ["tcgen05.commit"]


# The functions.


def order(id: str) -> list[int]:
    return [int(n) for n in id.split(".")]


def names(text: str, id: str) -> bool:
    """Whether a docstring names a frame, alone, in a list or in a range."""
    for phrase in re.findall(r"Frames? ([\d., andtoc]+x?)", text):
        for part in re.split(r",|\band\b", phrase):
            ends = [end.strip(" .") for end in part.split("to")]
            if id in ends:
                return True
            is_range = len(ends) == 2 and "ctx" not in id
            if is_range and order(ends[0]) <= order(id) <= order(ends[1]):
                return True
    return False


def part_of(module: Any) -> set[int]:
    """Parts that a module's first line names; ``1 to 8`` and ``1, 3 and 4`` too."""
    line = (module.__doc__ or "").splitlines()[0]
    match = re.match(r"Parts? ([\d ,andto]+)\. ", line)
    if not match:
        return set()
    numbers = [int(n) for n in re.findall(r"\d", match[1])]
    if " to " in match[1]:
        return set(range(numbers[0], numbers[-1] + 1))
    return set(numbers)


def test_docstrings_are_read_right() -> None:
    assert names("Fill one stage. Frames 5.4.1 to 5.4.9.", "5.4.3")
    assert not names("Fill one stage. Frames 5.4.1 to 5.4.9.", "5.5")
    assert names("Wait. Frames 8.1 and 8.3.", "8.3")
    assert not names("Wait. Frames 8.1 and 8.3.", "8.2")
    assert names("Load. Frame 5 ctx.", "5 ctx")
    assert not names("Load. Frame 5 ctx.", "6 ctx")


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_a_frame_resolves_to_a_function_that_knows_it(entry: Frame) -> None:
    found = resolve(entry)
    assert callable(found) or isinstance(found, (property, Deduced))
    module = import_module(entry.emulator.split(":")[0])
    doc = found.__doc__ or ""
    assert names(doc, entry.id) or entry.part in part_of(module)


def owner(emulator: str) -> tuple[Any, str]:
    """The module or class in which the frame's name is defined."""
    module, _, path = emulator.partition(":")
    *outer, name = path.split(".")
    found: Any = import_module(module)
    for attribute in outer:
        found = getattr(found, attribute)
    for base in getattr(found, "__mro__", ()):
        if name in vars(base):
            return base, name
    return found, name


@pytest.mark.parametrize("emulator", sorted({f.emulator for f in FRAMES.values()}))
def test_a_function_that_is_removed_is_missed(
    emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [f for f in FRAMES.values() if f.emulator == emulator]
    monkeypatch.delattr(*owner(emulator))
    for entry in mine:
        with pytest.raises(FrameError, match=f"frame {re.escape(entry.id)} is "):
            resolve(entry)


def test_a_module_that_is_removed_is_missed() -> None:
    entry = replace(frame("1.1"), emulator="fp4ref.gemm.nothing:f")
    with pytest.raises(FrameError, match=r"fp4ref\.gemm\.nothing:f, which does not"):
        resolve(entry)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: events_of(t, "3.3"), r"3\.3 .* is of kind constructed; use show"),
        (lambda t: show("6.7"), r"6\.7 .* is of kind event; use events_of"),
        (lambda t: derive("6.3", t), r"6\.3 .* is of kind cond; use show"),
        (lambda t: show("5.8"), r"5\.8 .* is of kind derived; use derive"),
    ],
)
def test_the_wrong_call_names_the_right_one(
    call: Any, message: str, trace: Trace
) -> None:
    with pytest.raises(InputError, match=message):
        call(trace)
