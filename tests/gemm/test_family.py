"""The family of kernels: emulator, compiled kernel and oracle agree in every bit."""

from __future__ import annotations

import itertools

import pytest
from family import FIELDS, cases, cover, is_legal, pairs_of
from gemm_cases import Case
from oracle_problem import Problem

from fp4ref.cuda_kernel.build import nvrtc_version

CASES = list(cases())
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def check(case: Case, seed: int, backend: str) -> None:
    """Every bit of D and SFD, no race, each tile stored once."""
    problem = Problem.of(case)
    run = problem.run(seed, backend=backend, trace=True)
    problem.compare(run)
    assert (run.verdict, run.races) == ("clean", ())


def test_the_cover_has_every_legal_pair_of_values() -> None:
    """A pair that no choice has is one that the rules forbid."""
    covered = set().union(*map(pairs_of, cover()))
    assert len(cover()) >= 150
    base = {name: values[0] for name, values in FIELDS.items()}
    for (x, xs), (y, ys) in itertools.combinations(sorted(FIELDS.items()), 2):
        for one, other in itertools.product(xs, ys):
            if is_legal(base | {x: one, y: other}):
                assert ((x, one), (y, other)) in covered


@needs_nvrtc
@pytest.mark.parametrize("turn", range(6))
def test_both_backends_have_the_oracles_bits(turn: int, rotating_seed: int) -> None:
    """A sample, another one each day."""
    case = CASES[(rotating_seed + 31 * turn) % len(CASES)]
    for backend in ("emulator", "ptx"):
        check(case, rotating_seed, backend)


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_has_the_oracles_bits(case: Case, backend: str) -> None:
    check(case, 5, backend)
