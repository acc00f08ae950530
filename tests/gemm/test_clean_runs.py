"""Clean kernels say nothing under any schedule: no fault, no race, no advisory.

The long run is split: ``-k "ptx and seeds50"`` is a quarter of one of its halves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from gemm_cases import CONFIGS, Case, asked
from oracle_problem import Problem

from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.hardware.schedule import make_schedule

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)

SHAPES = [
    (1, 1, 32, None),
    (33, 40, 544, None),
    (128, 65, 256, None),
    (129, 31, 96, None),
    (64, 64, 64, 2),
    (5, 130, 288, None),
    (40, 17, 800, None),
]
"""(M, N, K, batches): one tile and several, part of a k-tile and four of them."""
SCHEDULES = 200
BLOCK = 50


def clean_cases(wanted: int) -> list[Case]:
    """Every configuration that keeps to the PTX text, on one shape after another."""
    configs = [each for each in CONFIGS if each.get("scale_buffers") != 1]
    shapes, machines = itertools.cycle(SHAPES), itertools.cycle((1, 2, 3))
    turns = itertools.islice(itertools.cycle(configs), wanted)
    return [Case(*next(shapes), sms=next(machines), config=config) for config in turns]


EMULATOR = clean_cases(60)
PTX = clean_cases(40)


def blocks(cases: list[Case], backend: str) -> Iterator[Any]:
    """Each case with each block of seeds."""
    marks = [needs_nvrtc] if backend == "ptx" else []
    for first, case in itertools.product(range(0, SCHEDULES, BLOCK), cases):
        name = f"{backend}-seeds{first}-{case}"
        yield pytest.param(case, backend, first, id=name, marks=marks)


def check(case: Case, backend: str, schedules: Iterable[str | int]) -> None:
    """Every run has the oracle's bits, and says nothing."""
    problem = Problem.of(case)
    for schedule in schedules:
        run = problem.run(0, schedule=schedule, backend=backend, trace=True)
        said = run.verdict, run.races, dict(run.advisories)
        assert said == ("clean", (), {}), (str(case), schedule)
        assert run.meta["schedule"] == make_schedule(schedule).name
        problem.compare(run)


def test_the_cases_differ_and_have_several_tiles_and_k_tiles() -> None:
    assert len({str(each) for each in EMULATOR}) == 60
    assert len({str(each) for each in PTX}) == 40
    for cases in (EMULATOR, PTX):
        assert {each.k for each in cases} >= {32, 544, 800}
        assert any(each.m > 128 for each in cases)
        assert any(each.n > asked(each.config)[0].tile.n for each in cases)


@pytest.mark.parametrize(
    "backend", ["emulator", pytest.param("ptx", marks=needs_nvrtc)]
)
def test_a_clean_run_says_nothing(backend: str, rotating_seed: int) -> None:
    """A sample, another one each day."""
    cases = EMULATOR if backend == "emulator" else PTX
    for turn in range(3):
        case = cases[(rotating_seed + 7 * turn) % len(cases)]
        check(case, backend, ("late", rotating_seed + turn))


def test_what_shipped_kernels_rely_on_is_said() -> None:
    """The check can fail: one buffer of scales is an advisory."""
    case = Case(128, 64, 512, ordering="shipped", config={"scale_buffers": 1})
    with pytest.raises(AssertionError, match="cp over columns"):
        check(replace(case, sms=1), "emulator", ("late",))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("case", "backend", "first"), [*blocks(EMULATOR, "emulator"), *blocks(PTX, "ptx")]
)
def test_a_clean_run_says_nothing_under_200_seeds(
    case: Case, backend: str, first: int
) -> None:
    check(case, backend, range(first, first + BLOCK))
