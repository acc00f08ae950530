"""Subtiles of 16 to 128 columns, D in rows of N or M: the same bits in both codes."""

from __future__ import annotations

from typing import Any

import pytest
from test_trees import bits, launch, needs_nvrtc
from tree_cases import TREES, TreeCase

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.errors import ConfigError, HardwareFault
from fp4ref.evidence import oracle
from fp4ref.evidence.faults.change import Change, changed_emulator, changed_kernel

SHAPE = 70, 150, 64
"""Neither is a multiple of a subtile; two tiles of 128 columns."""
MODES: tuple[dict[str, Any], ...] = (
    {"subtile_n": 16},
    {"subtile_n": 64},
    {"subtile_n": 128, "c_stages": 1, "d_stages": 1},
    {
        "subtile_n": 64,
        "tile_n": 192,
        "c_stages": 1,
        "reuse_smem_c": True,
        "d_stages": 1,
    },
    {"subtile_n": 16, "element_wise": "smem", "delay_tma_store": True},
    {"subtile_n": 64, "element_wise": "smem", "c_stages": 1},
    {"subtile_n": 128, "tile_n": 256, "c_stages": 1, "d_stages": 1},
    {"subtile_n": 16, "tile_n": 64, "splits": 2},
    {"subtile_n": 32, "store": "transposed", "element_wise": "smem"},
    {"subtile_n": 16, "store": "transposed", "swap_ab": True, "c_stages": 1},
    {"subtile_n": 64, "store": "transposed", "swap_ab": True, "splits": 2},
    {"subtile_n": 32, "swap_ab": True, "element_wise": "smem"},
)


def choice_of(case: TreeCase, mode: dict[str, Any]) -> GemmConfig:
    """The mode, as far as the tree allows: E2M1 has no narrow rows."""
    mode = dict(mode)
    if case.d == "nvfp4" and mode["subtile_n"] == 16:
        mode["subtile_n"] = 32
    if case.config().epilogue.c_format is None:
        mode.pop("reuse_smem_c", None)
    return case.config(**mode)


def check(case: TreeCase, mode: dict[str, Any], backend: Any, schedule: Any) -> None:
    """Everything that a run leaves is the oracle's, which knows no subtile."""
    given, config = launch(case, seed=6, shape=SHAPE), choice_of(case, mode)
    run = fp4ref.run(
        **given, config=config, backend=backend, schedule=schedule, trace=False
    )
    assert bits(run) == bits(oracle.expected(**given, config=config))


every_mode = pytest.mark.parametrize(
    "mode", MODES, ids=lambda mode: " ".join(f"{k}={v}" for k, v in mode.items())
)


@pytest.mark.rotating(3)
@every_mode
@pytest.mark.parametrize("case", TREES, ids=str)
def test_the_emulator_has_the_oracles_bits(
    case: TreeCase, mode: dict[str, Any]
) -> None:
    check(case, mode, "emulator", "late")


@pytest.mark.soak
@pytest.mark.parametrize("schedule", ["eager", 3])
@every_mode
@pytest.mark.parametrize("case", TREES, ids=str)
def test_no_schedule_changes_a_bit(
    case: TreeCase, mode: dict[str, Any], schedule: Any
) -> None:
    check(case, mode, "emulator", schedule)


@needs_nvrtc
@pytest.mark.rotating(1)
@every_mode
@pytest.mark.parametrize("case", TREES, ids=str)
def test_the_compiled_kernel_has_the_oracles_bits(
    case: TreeCase, mode: dict[str, Any]
) -> None:
    check(case, mode, "ptx", 3)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"subtile_n": 48}, "subtile_n=48: this kernel takes one of 16, 32, 64, 128"),
        ({"subtile_n": 128, "tile_n": 64}, "Divisibility Condition.*Use subtile_n=64"),
        ({"subtile_n": 128, "tile_n": 192}, "64"),
        ({"subtile_n": 16, "d_format": "nvfp4"}, "rows of at least 16 bytes.*n=32"),
        (
            {
                **{"subtile_n": 16, "d_format": "nvfp4", "c_format": "f32"},
                **{"reuse_smem_c": True, "beta": 1.0},
            },
            "rows of at least 16 bytes",
        ),
        (
            {"subtile_n": 64, "store": "transposed", "element_wise": "smem"},
            "each thread gets a row of D.*Use subtile_n=32",
        ),
        (
            {"subtile_n": 16, "tmem_load": "16x256b", "d_format": "bf16"},
            "stmatrix stores two loads of 16 lanes.*Use subtile_n=32",
        ),
        (
            {"subtile_n": 128, "c_format": "f32", "beta": 1.0, "d_format": "f32"},
            "leaves room for 0 mainloop stages",
        ),
    ],
)
def test_a_subtile_that_cannot_be_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(GemmConfig.nvfp4(**asked))


def test_a_long_row_lies_in_boxes_side_by_side() -> None:
    """128 float32 are four panels of 128 bytes, the longest row that TMA swizzles."""
    p = plan(GemmConfig.nvfp4(subtile_n=128, d_stages=1, d_format="f32"))
    assert (p.d_boxes, p.d_box_n, p.d_box_row_nbytes) == (4, 32, 128)
    assert p.d_subtile_nbytes == 128 * 128 * 4
    p = plan(GemmConfig.nvfp4(subtile_n=128, d_format="nvfp4"))
    assert (p.d_boxes, p.d_box_n, p.d_box_row_nbytes) == (1, 128, 64)


def test_rows_of_m_cost_no_bit() -> None:
    """One tree, with sums, in both ways: the runs leave the same, whatever it is."""
    case = next(each for each in TREES if each.name == "sums")
    given = launch(case, seed=7, shape=SHAPE)
    found = [
        bits(fp4ref.run(**given, config=case.config(**mode), trace=False))
        for mode in ({}, {"store": "transposed", "element_wise": "smem"})
    ]
    assert found[0] == found[1]


MISTAKES = (
    (
        Change(
            "fp4ref/gemm/partition.py",
            "column + panel * box_n",
            "column",
        ),
        Change(
            "kernel/gemm/partition.cuh",
            "column + box / SUBTILE_BOXES * box_n",
            "column",
        ),
    ),
    (
        Change(
            "fp4ref/gemm/epilogue/epilogue_state.py",
            "address += block.size * plan.lanes // WARP_THREADS",
            "address += block.size",
        ),
        Change(
            "kernel/layout/swizzle.cuh",
            "(ROWS * PANEL_NBYTES)",
            "(32 * PANEL_NBYTES)",
        ),
    ),
)
"""All panels to the first one's columns; a warp's panels behind each other."""
OF_M = (
    Change(
        "fp4ref/gemm/fusion/scalar_sum.py",
        "sum_of_columns(sum_of_lanes(block))",
        "sum_of_lanes(sum_of_columns(block))",
    ),
    Change(
        "kernel/gemm/fusion/scalar_sum.cuh",
        "if constexpr (!M_MAJOR)",
        "if constexpr (true)",
    ),
)
"""A sum of all where D lies in rows of M, added in the order of rows of N."""


def is_wrong(change: Change, backend: Any) -> bool:
    """Whether a line changed gives other bits than the oracle's, or a fault."""
    case, mode = TREES[0], {"subtile_n": 64}
    if change in OF_M:
        case = next(each for each in TREES if each.name == "sums")
        mode = {"store": "transposed", "element_wise": "smem"}
    given, config = launch(case, seed=6, shape=SHAPE), case.config(**mode)
    wanted = bits(oracle.expected(**given, config=config))
    changed = (
        changed_kernel(change, config) if backend == "ptx" else changed_emulator(change)
    )
    try:
        with changed:
            run = fp4ref.run(**given, config=config, backend=backend, trace=False)
    except HardwareFault:
        return True
    return bits(run) != wanted


@pytest.mark.parametrize("change", [each for each, _ in (*MISTAKES, OF_M)])
def test_a_mistake_is_seen(change: Change) -> None:
    assert is_wrong(change, "emulator")


@needs_nvrtc
@pytest.mark.soak
@pytest.mark.parametrize("change", [each for _, each in (*MISTAKES, OF_M)])
def test_a_mistake_of_the_kernel_is_seen(change: Change) -> None:
    assert is_wrong(change, "ptx")
