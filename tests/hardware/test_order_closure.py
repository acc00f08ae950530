"""order: random programs against a search in an explicit graph."""

from __future__ import annotations

import pytest
from closure_of_trace import Closure
from racy_programs import Program, engine_pairs


def agree(seed: int) -> bool:
    """Whether a program races; engine and search say the same of every pair."""
    program = Program(seed)
    on, pairs, fault = engine_pairs(program)
    assert fault == "", program.steps
    expected = Closure(on.recorder.trace).races()
    assert pairs == expected, (seed, pairs ^ expected)
    return bool(pairs)


def test_random_programs_agree_pair_by_pair(rotating_seed: int) -> None:
    racy = [agree(rotating_seed * 1000 + i) for i in range(300)]
    assert sum(racy) >= 0.4 * len(racy)
    assert not all(racy)


def test_a_copy_hands_on_what_its_own_thread_fenced() -> None:
    """A store, its fence and a copy by one warp; after the commit another one reads."""
    agree(202611280710)
    agree(500925)


@pytest.mark.soak
def test_two_thousand_random_programs_agree(rotating_seed: int) -> None:
    racy = [agree(rotating_seed * 10_000 + i) for i in range(2000)]
    assert sum(racy) >= 0.4 * len(racy)
