"""A pair with 64 rows in each CTA: the halves of N are in different TMEM lanes."""

from __future__ import annotations

from typing import Any

import pytest
from family import FamilyCase
from oracle_problem import Problem

from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.plan.rules import broken

HALF = {"tile_m": 128, "cta_group": 2, "cluster_m": 2, "c_stages": 1}
CASES: list[dict[str, Any]] = [
    {"operand_format": "bf16"},
    {"operand_format": "e4m3", "tile_n": 256, "c_format": "f32", "beta": 0.5}
    | {"d_format": "nvfp4", "bias": True, "cluster_n": 2},
    {"operand_format": "f16", "tile_n": 64, "d_format": "bf16", "scheduler": "static"},
]
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def case_of(config: dict[str, Any], schedule: str, m: int = 200) -> FamilyCase:
    size = 2 * config.get("cluster_n", 1)
    return FamilyCase(m, 300, 192, sms=size, schedule=schedule, config=HALF | config)


def check(case: FamilyCase, backend: str) -> None:
    problem = Problem.of(case)
    found = problem.run(5, backend=backend, trace=True)
    problem.compare(found)
    assert (found.verdict, found.races) == ("clean", ())


@pytest.mark.parametrize("schedule", ["eager", "late", "seed"])
@pytest.mark.parametrize("config", CASES, ids=range(len(CASES)))
def test_the_emulator_has_the_oracles_bits(
    config: dict[str, Any], schedule: str
) -> None:
    check(case_of(config, schedule), "emulator")


@needs_nvrtc
@pytest.mark.parametrize("config", CASES, ids=range(len(CASES)))
def test_the_kernel_has_them_too(config: dict[str, Any]) -> None:
    check(case_of(config, "seed"), "ptx")


@pytest.mark.parametrize("m", [1, 64, 65])
def test_padding_of_a_scale_atom_is_written_by_the_peer(m: int) -> None:
    """SFD's atoms have 128 rows, of which each CTA writes half."""
    check(case_of(CASES[1], "eager", m), "emulator")


def test_the_plan_has_two_parts_of_n() -> None:
    p = plan(GemmConfig.nvfp4(**HALF, operand_format="bf16"))
    assert (p.tile_m, p.column_parts, p.part_n, p.subtiles) == (64, 2, 64, 2)
    assert (p.tmem.accumulators, p.tmem.end) == ((0, 64), 128)
    assert p.d_subtile_nbytes == 128 * 32 * 4


def test_the_wrong_half_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the parts exchanged columns change places."""
    right = Epilogue.columns
    half = plan(GemmConfig.nvfp4(**HALF, operand_format="bf16")).part_n

    def wrong(e: Epilogue, work: Any, subtile: int) -> range:
        columns = right(e, work, subtile)
        step = half if e.lane < 64 else -half
        return range(columns.start + step, columns.stop + step)

    monkeypatch.setattr(Epilogue, "columns", wrong)
    problem = Problem.of(case_of(CASES[0] | {"bias": True}, "eager"))
    with pytest.raises(AssertionError):
        problem.compare(problem.run(5, trace=True))


@pytest.mark.parametrize(
    ("asked", "rule", "says"),
    [
        ({"tile_m": 64}, "scaled MMAs of one SM have 128 rows", "Use tile_m=128"),
        (HALF, "64 rows of a pair's SM have no scales", "Use tile_m=256"),
        (
            {"tile_m": 64, "operand_format": "bf16"},
            "the epilogue reads every lane",
            "16 lanes of each quarter",
        ),
        (
            {"tile_m": 64, "cta_group": 2, "cluster_m": 2},
            "the tile has the rows of its SMs",
            "Use tile_m=256",
        ),
    ],
)
def test_what_is_not_built_is_refused(
    asked: dict[str, Any], rule: str, says: str
) -> None:
    config = GemmConfig.nvfp4(**asked)
    assert rule in [each.name for each, _ in broken(config)]
    with pytest.raises(ConfigError, match=says):
        plan(config)
