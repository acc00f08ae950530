"""The sentences of kernels that are not ours: no plan says what their warps do."""

from __future__ import annotations

import pytest
from check_kernels import PAIRS, VARIANTS
from sentence_wording import check_wording

from fp4ref.evidence.check import check

KERNELS = PAIRS | VARIANTS


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_written_by_hand_have_sentences(name: str) -> None:
    case = KERNELS[name]
    found = check(case.text(), case.launch(), schedules=("late",), trace=True)
    assert found.trace is not None
    check_wording(found.trace)
