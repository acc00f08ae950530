"""The family of kernels: emulator, compiled kernel and oracle agree in every bit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from family import FIELDS, SCHEDULES, cases, cover, is_legal, pairs_of
from gemm_cases import Case
from oracle_problem import Problem

from fp4ref.cuda_kernel.build import nvrtc_version

CASES = list(cases())
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def check(case: Case, seed: int, backend: str, *, trace: bool = True) -> None:
    """Every bit of D and SFD; if it is traced, no race."""
    problem = Problem.of(case)
    run = problem.run(seed, backend=backend, trace=trace)
    problem.compare(run)
    assert run.races == ()
    assert run.verdict == ("clean" if trace else "incomplete")


def test_the_cover_has_every_legal_pair_of_values() -> None:
    """A pair that no choice has is one that the rules forbid."""
    assert len(cover()) >= 150
    assert all(map(is_legal, cover()))
    covered = set().union(*map(pairs_of, cover()))
    base = {name: values[0] for name, values in FIELDS.items()}
    for (x, xs), (y, ys) in itertools.combinations(sorted(FIELDS.items()), 2):
        for one, other in itertools.product(xs, ys):
            if ((x, one), (y, other)) not in covered:
                assert not is_legal(base | {x: one, y: other}), (x, one, y, other)


def sample(day: int, size: int = 12) -> list[Case]:
    """Cases of a day, evenly from the cover, under schedules that take turns."""
    step = len(CASES) // size
    return [
        replace(CASES[(day + step * i) % len(CASES)], schedule=SCHEDULES[(day + i) % 3])
        for i in range(size)
    ]


@needs_nvrtc
@pytest.mark.parametrize("turn", range(12))
def test_a_case_of_today_has_the_oracles_bits(turn: int, rotating_seed: int) -> None:
    """Both backends; the soak looks for races of the compiled kernel too."""
    case = sample(rotating_seed)[turn]
    check(case, rotating_seed, "emulator")
    check(case, rotating_seed, "ptx", trace=False)


def test_every_case_has_its_day_under_each_schedule() -> None:
    """Within as many days as there are cases."""
    found = {str(case) for day in range(len(CASES)) for case in sample(day)}
    wanted = itertools.product(CASES, SCHEDULES)
    assert found == {str(replace(case, schedule=each)) for case, each in wanted}


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_every_case_has_the_oracles_bits(
    backend: str, schedule: str, number: int
) -> None:
    """Races are looked for under one of the schedules, another one for each case."""
    case = CASES[number]
    trace = schedule == case.schedule
    check(replace(case, schedule=schedule), 5, backend, trace=trace)
