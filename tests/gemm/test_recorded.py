"""Sixty recorded runs are as they were, event by event."""

from __future__ import annotations

import json

import pytest
from recorded import CASES, FILE, PTX_EVERY, REFUSED, Case, digest, message

from fp4ref.cuda_kernel.build import nvrtc_version

RECORDED = json.loads(FILE.read_text()) if FILE.is_file() else {}
other_compiler = pytest.mark.skipif(
    nvrtc_version() != RECORDED.get("nvrtc"),
    reason=f"recorded with NVRTC {RECORDED.get('nvrtc')}; another one orders "
    "instructions otherwise",
)


def test_there_are_sixty_cases_that_differ() -> None:
    assert len(CASES) == len(set(RECORDED["emulator"].values())) == 60


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_emulator_runs_as_recorded(case: Case) -> None:
    assert digest(case.run("emulator")) == RECORDED["emulator"][str(case)]


@other_compiler
@pytest.mark.parametrize("case", CASES[::PTX_EVERY], ids=str)
def test_the_kernels_ptx_runs_as_recorded(case: Case) -> None:
    assert digest(case.run("ptx")) == RECORDED["ptx"][str(case)]


@pytest.mark.parametrize("config", REFUSED, ids=str)
def test_a_refusal_says_what_it_said(config: dict[str, object]) -> None:
    assert message(config) == RECORDED["refused"][repr(config)] != ""
