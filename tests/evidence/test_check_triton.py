"""check on another author's text: Triton's, as it compiles it and with one edit.

The text is compiled when the test runs and never stored. Needs triton.
"""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import triton_case
from triton_edits import EDITS

import fp4ref
from fp4ref import check
from fp4ref.evidence.check import Check, launch_triton

pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@cache
def compiled() -> SimpleNamespace:
    """The text without lines of the source, so that lines of PTX are named."""
    found = triton_case.compiled()
    text = re.sub(r"^\s*\.loc[^\n]*$", "", found.asm["ptx"], flags=re.MULTILINE)
    return SimpleNamespace(asm={"ptx": text}, metadata=found.metadata)


def ran(text: str, **more: object) -> Check:
    kernel = SimpleNamespace(asm={"ptx": text}, metadata=compiled().metadata)
    arguments, want = triton_case.arguments()
    launch = launch_triton(kernel, (1, 1), arguments, expected={2: want})
    return check(kernel, launch, **more)  # type: ignore[arg-type]


def test_as_compiled_it_is_clean_and_relies_on_known_things_only() -> None:
    found = ran(compiled().asm["ptx"])
    assert found.status == "clean", found.report()
    assert all(each.evidence for each in found.advisories)


def test_the_lines_are_those_of_the_python_source() -> None:
    original = triton_case.compiled()
    arguments, want = triton_case.arguments()
    launch = launch_triton(original, (1, 1), arguments, expected={2: want})
    found = check(original, launch, schedules=("eager",))
    places = [place.source for each in found.advisories for place in each.places]
    assert places
    assert all(each.startswith("triton_kernels.py:") for each in places)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_named_at_its_line(name: str) -> None:
    edit = EDITS[name]
    text, count = re.subn(edit.old, edit.new, compiled().asm["ptx"])
    assert count, "the pattern fits no line"
    found = ran(text, schedules=("eager", "late"), steps=200_000)
    assert found.status == "fault"
    fitting = [f for f in found.errors if re.search(edit.finding, f.name)]
    assert fitting, found.report()
    texts = [place.text for each in fitting for place in each.places]
    assert any(re.search(edit.at, each) for each in texts), found.report()


def test_a_wrong_result_is_a_mismatch() -> None:
    arguments, want = triton_case.arguments()
    launch = launch_triton(
        compiled(), (1, 1), arguments, expected={2: want + np.float32(1)}
    )
    found = check(compiled(), launch, schedules=("eager",))
    assert found.status == "mismatch"
    assert "8,192 of 8,192 elements differ" in found.errors[0].what
    assert fp4ref.__version__
