"""Subtiles of 16 to 128 columns: the same bits, in both codes, and what cannot be."""

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
)


def choice_of(case: TreeCase, mode: dict[str, Any]) -> GemmConfig:
    """The mode, as far as the tree allows: D in E2M1 has no narrow subtile."""
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


def is_wrong(change: Change, backend: Any) -> bool:
    """Whether a line changed gives other bits than the oracle's, or a fault."""
    case = TREES[0]
    given = launch(case, seed=5, shape=SHAPE)
    config = case.config(subtile_n=64)
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


@pytest.mark.parametrize("change", [of_emulator for of_emulator, _ in MISTAKES])
def test_a_panel_in_the_wrong_place_is_seen(change: Change) -> None:
    assert is_wrong(change, "emulator")


@needs_nvrtc
@pytest.mark.soak
@pytest.mark.parametrize("change", [of_kernel for _, of_kernel in MISTAKES])
def test_a_panel_in_the_wrong_place_is_seen_in_the_kernel(change: Change) -> None:
    assert is_wrong(change, "ptx")
