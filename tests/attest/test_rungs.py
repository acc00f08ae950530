"""Each rung's kernel gives, on the emulated machine, the words that are predicted."""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref.attest.catalogue import QUESTIONS, question
from fp4ref.attest.on_ptx import OnPtx
from fp4ref.device.compile import nvrtc_version
from fp4ref.evidence.attested import facts
from fp4ref.evidence.fidelity import RULES

RUNGS = [each.name for each in facts().values() if not each.seeded]
SOFT = [each.name for each in facts().values() if each.on_hopper == "soft"]
DEAR = [each for each in SOFT if each.startswith(("mma", "order", "gemm"))]
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def check(name: str, *, soft: bool = False) -> None:
    asked = question(name)
    buffers = OnPtx(asked, soft=soft).run()
    for part in asked.parts:
        assert part.predict is not None
        np.testing.assert_array_equal(part.of(buffers), part.predict(), part.name)


@needs_nvrtc
@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_has_the_words_that_are_predicted(name: str) -> None:
    check(name)


@needs_nvrtc
@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", [each for each in SOFT if each not in DEAR])
def test_what_a_hopper_card_runs_has_them_too(name: str) -> None:
    """With the soft tensor core."""
    check(name, soft=True)


@needs_nvrtc
@pytest.mark.soak
@pytest.mark.parametrize("name", [each for each in SOFT if each in DEAR])
def test_soft_mmas_and_kernels_have_them_too(name: str) -> None:
    check(name, soft=True)


def test_the_table_and_the_questions_have_the_same_rungs_and_parts() -> None:
    assert list(facts()) == list(QUESTIONS)
    for each in facts().values():
        parts = [part.name for part in question(each.name).parts]
        assert sorted(each.parts) == sorted(parts), each.name


def test_each_row_that_a_part_shows_is_in_the_fidelity_table() -> None:
    known = {rule.id for rule in RULES}
    named = {row for each in facts().values() for rows in each.parts.values()
             for row in rows}  # fmt: skip
    assert named <= known
    assert len(named) > 50


def test_what_a_hopper_card_cannot_has_its_reason() -> None:
    for each in facts().values():
        assert bool(each.why) == (each.on_hopper == "cannot"), each.name
