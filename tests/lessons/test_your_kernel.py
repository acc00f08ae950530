"""your_kernel: what lesson 22 shows is so, live or recorded."""

from __future__ import annotations

import re
from importlib.util import find_spec

import numpy as np
import pytest

from fp4ref import check, triage
from fp4ref.errors import InputError
from fp4ref.lessons import your_kernel


def test_the_record_is_of_the_kernel_that_is_shown() -> None:
    found = your_kernel.record()
    assert found["source"] == your_kernel.source_digest()
    assert set(found["reports"]) == set(your_kernel.EDITS)
    statuses = [status for _, status, _ in found["reports"].values()]
    assert statuses == ["clean", "fault", "fault", "fault"]


def test_a_recorded_line_is_one_of_the_kernel_or_of_its_inline_assembly() -> None:
    shown = your_kernel.kernel_source().splitlines()
    last = int(shown[-1].split()[0])
    for _, _, text in your_kernel.record()["reports"].values():
        lines = [int(n) for n in re.findall(r"triton_kernel\.py:(\d+)", text)]
        assert lines
        assert all(10 <= n <= last + 4 for n in lines)


def test_the_source_has_its_own_line_numbers() -> None:
    shown = your_kernel.kernel_source().splitlines()
    assert shown[0].split() == ["9", "@triton.jit"]
    dot = next(line for line in shown if "dot_scaled" in line)
    assert dot.split()[0] == "35"


def test_one_barrier_less_is_the_only_difference() -> None:
    right, wrong = your_kernel.reverse(), your_kernel.reverse(barrier=False)
    gone = [line for line in right.splitlines() if line.strip() == "bar.sync 0;"]
    left = [line for line in wrong.splitlines() if line.strip() == "bar.sync 0;"]
    assert (len(gone), len(left)) == (2, 1)
    assert check(right, your_kernel.reverse_launch(right)).ok
    assert not check(wrong, your_kernel.reverse_launch(wrong)).ok


def test_the_wrong_d_has_one_name() -> None:
    a, b = your_kernel.operands()
    right = your_kernel.meaning(a, b)
    assert triage(a, b, right).ok
    _, d = your_kernel.wrong_d()
    assert (d != right).all()
    assert triage(a, b, d).names == ("nibbles swapped",)
    packed = b.packed()
    assert (your_kernel.swapped(your_kernel.swapped(packed)) == packed).all()
    assert (your_kernel.swapped(packed) & 15 == packed >> np.uint8(4)).all()


def test_an_unknown_edit_is_refused() -> None:
    with pytest.raises(InputError, match="edit: 'all of it'; take 'as compiled'"):
        your_kernel.report("all of it")


@pytest.mark.outside
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton 3.9")
@pytest.mark.parametrize("edit", your_kernel.EDITS)
def test_what_was_recorded_is_what_triton_gives_now(edit: str) -> None:
    origin, status, text = your_kernel.report(edit)
    assert origin.startswith("now, triton")
    assert [status, text] == your_kernel.record()["reports"][edit][1:]
