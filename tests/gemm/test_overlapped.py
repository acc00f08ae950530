"""Overlapped accumulators: one barrier whose phase is the number, shared columns."""

from __future__ import annotations

from typing import Any

import pytest
from family import FamilyCase
from oracle_problem import Problem

from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError, DeadlockError, HardwareFault, ReadWhileInFlight
from fp4ref.gemm.epilogue import accumulator_tail, collective
from fp4ref.gemm.plan.values import Plan

WIDE = {"tile_n": 256, "c_stages": 1}
PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
CASES: list[dict[str, Any]] = [
    {},
    {"c_format": "f32", "beta": 0.5, "d_format": "nvfp4", "scheduler": "static"},
    {**PAIR, "d_format": "bf16"},
]
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def case_of(config: dict[str, Any], schedule: str) -> FamilyCase:
    """Six tiles or more on one cluster: every accumulator is used again."""
    size = config.get("cluster_m", 1)
    return FamilyCase(300, 520, 288, sms=size, schedule=schedule, config=WIDE | config)


def run(config: dict[str, Any], schedule: str, backend: str = "emulator") -> Any:
    problem = Problem.of(case_of(config, schedule))
    found = problem.run(5, backend=backend, trace=True)
    problem.compare(found)
    assert (found.verdict, found.races) == ("clean", ())
    return found


@pytest.mark.parametrize("schedule", ["eager", "late", "seed"])
@pytest.mark.parametrize("config", CASES, ids=range(len(CASES)))
def test_the_emulator_has_the_oracles_bits(
    config: dict[str, Any], schedule: str
) -> None:
    run(config, schedule)


@needs_nvrtc
@pytest.mark.parametrize("config", CASES[:2], ids=range(2))
def test_the_kernel_has_them_too(config: dict[str, Any]) -> None:
    run(config, "seed", "ptx")


def test_accumulators_take_turns_and_shared_columns_come_first() -> None:
    """Columns in the order in which a warp of the epilogue reads them."""
    trace = run({}, "eager").trace
    reads = [
        e.operands["taddr"] & 0xFFFF
        for e in trace
        if e.operation == "tcgen05.ld" and e.kind == "issue" and e.agent == "warp4"
    ]
    backward = [224, 192, 160, 128, 96, 64, 32, 0]
    forward = [128, 160, 192, 224, 256, 288, 320, 352]
    tiles = len(reads) // 8
    assert tiles == 9
    assert reads == [*backward, *forward] * (tiles // 2) + backward


def test_the_second_accumulator_is_begun_before_the_first_is_read() -> None:
    """What overlap is for: four of eight subtiles are enough."""
    assert plan(GemmConfig.nvfp4(**WIDE)).subtiles_to_release == 4
    assert plan(GemmConfig.nvfp4(tile_n=256, accumulator_stages=1)).tmem.end == 352


def test_a_column_given_back_too_early_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One subtile less, and the MMAs of the next tile race with its load."""
    monkeypatch.setattr(Plan, "subtiles_to_release", 3)
    with pytest.raises(ReadWhileInFlight, match=r"lane .* column 0x80"):
        Problem.of(case_of({}, "late")).run(5, trace=True)


def test_the_wrong_phase_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epilogue with the producer's phase reads what the MMAs are not done with."""
    monkeypatch.setattr(collective, "consumed_accumulator", lambda p, s: s.phase ^ 1)
    problem = Problem.of(case_of({}, "eager"))
    try:
        found = problem.run(5, trace=True, races="collect")
    except HardwareFault:
        return
    with pytest.raises(AssertionError):
        problem.compare(found)


def test_tmem_waits_for_the_epilogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its arrival nobody frees TMEM."""
    monkeypatch.setattr(accumulator_tail, "mbarrier", _Silent)
    with pytest.raises(DeadlockError, match="tmem_dealloc"):
        Problem.of(case_of({}, "eager")).run(5)


class _Silent:
    """An mbarrier on which nobody arrives."""

    @staticmethod
    def arrive(*_: object) -> None:
        pass


def test_scales_of_a_group_of_four_find_no_room() -> None:
    with pytest.raises(ConfigError, match="TMEM columns of 512"):
        plan(GemmConfig.nvfp4(tile_n=256, k_group=4))
