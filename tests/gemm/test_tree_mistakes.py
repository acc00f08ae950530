"""Mistakes of nodes: each makes the result wrong that it is about, in both codes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from test_trees import bits, launch, needs_nvrtc
from tree_cases import TREES

import fp4ref
from fp4ref.errors import HardwareFault
from fp4ref.evidence import oracle
from fp4ref.evidence.faults.change import Change, changed_emulator, changed_kernel

CASES = {case.name: case for case in TREES}
SHAPE = 70, 150, 64
"""Two tiles along N, none of them whole."""


@dataclass(frozen=True)
class Mistake:
    """A line of both codes, and which results of a tree it makes wrong."""

    name: str
    tree: str
    wrong: tuple[str, ...]
    emulator: tuple[str, str, str]
    kernel: tuple[str, str, str]

    def __str__(self) -> str:
        return self.name


MISTAKES = (
    Mistake(
        "the second column of a block is skipped",
        "sums",
        ("columns", "all"),
        ("partial_sums", "in range(1, value", "in range(2, value"),
        ("partial_sums", "u32 j = 1; j < SUBTILE_N", "u32 j = 2; j < SUBTILE_N"),
    ),
    Mistake(
        "the butterfly leaves out half of the lanes",
        "sums",
        ("rows", "all"),
        ("partial_sums", "(16, 8, 4, 2, 1)", "(8, 4, 2, 1)"),
        ("partial_sums", "mask = SUM_BLOCK / 2", "mask = SUM_BLOCK / 4"),
    ),
    Mistake(
        "the sign is part of a magnitude",
        "relu, mask and maxima",
        (),
        ("scalar_maximum", "np.uint32(0x7FFFFFFF)", "np.uint32(0xFFFFFFFF)"),
        ("scalar_maximum", "__float_as_uint(fabsf(x))", "__float_as_uint(x)"),
    ),
    Mistake(
        "the sign is part of a row's magnitude",
        "maxima by row and column",
        ("m",),
        ("col_maximum", "np.uint32(0x7FFFFFFF)", "np.uint32(0xFFFFFFFF)"),
        ("col_maximum", "__float_as_uint(fabsf(x))", "__float_as_uint(x)"),
    ),
    Mistake(
        "a row of an aux tensor is not padded",
        "maxima by row and column",
        ("y",),
        (
            "aux_tensor",
            "row_nbytes(element, e.params.d_columns)",
            "e.params.d_columns * bits // 8",
        ),
        (
            "aux_tensor",
            "(params.d_columns() * bits + 127) / 128 * 16",
            "params.d_columns() * bits / 8",
        ),
    ),
    Mistake(
        "an aux tensor's column is that of the tile",
        "relu, mask and maxima",
        ("y", "positive"),
        ("aux_tensor", "at.columns.start * bits", "32 * at.subtile * bits"),
        (
            "aux_tensor",
            "e.d_column(work, subtile) * bits",
            "subtile * SUBTILE_N * bits",
        ),
    ),
    Mistake(
        "a mask that takes zeros and NaN for negative",
        "relu, mask and maxima",
        ("positive",),
        ("relu_mask", "~(v.values[self] < 0)", "(v.values[self] > 0)"),
        ("relu_mask", "!(x < 0.0f)", "(x > 0.0f)"),
    ),
    Mistake(
        "a branch that takes the accumulator",
        "gated",
        ("z",),
        ("split_tree", "shared=shared))", "shared=v.acc))"),
        ("split_tree", "v.inside, shared}", "v.inside, v.acc}"),
    ),
    Mistake(
        "a row's numbers begin anew in each tile",
        "maxima by row and column",
        ("-d", "n", "m", "y"),
        ("row_broadcast", "first + 4 * at.columns.start", "first + 128 * at.subtile"),
        (
            "row_broadcast",
            "first = e.d_column(work, subtile);",
            "first = subtile * SUBTILE_N;",
        ),
    ),
)
"""The third one changes nothing: after ReLU no value has a sign, so it is a twin."""


def wrong_results(mistake: Mistake, backend: Any) -> set[str]:
    """Names of the results that are not the oracle's; a fault makes all wrong."""
    case = CASES[mistake.tree]
    given = launch(case, seed=5, shape=SHAPE)
    config = case.config()
    wanted = bits(oracle.expected(**given, config=config))
    stem, right, wrong = getattr(mistake, "kernel" if backend == "ptx" else backend)
    folder = "kernel" if backend == "ptx" else "fp4ref"
    suffix = "cuh" if backend == "ptx" else "py"
    change = Change(f"{folder}/gemm/fusion/{stem}.{suffix}", right, wrong)
    changed: AbstractContextManager[None] = (
        changed_kernel(change, config) if backend == "ptx" else changed_emulator(change)
    )
    try:
        with changed:
            run = fp4ref.run(**given, config=config, backend=backend, trace=False)
    except HardwareFault:
        return set(mistake.wrong)
    found = bits(run)
    return {name for name in wanted if found[name] != wanted[name]}


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_the_emulator_makes_it_wrong(mistake: Mistake) -> None:
    assert wrong_results(mistake, "emulator") == set(mistake.wrong)


TODAY = MISTAKES[date.today().toordinal() % len(MISTAKES)]


@needs_nvrtc
@pytest.mark.parametrize("mistake", [TODAY], ids=str)
def test_the_compiled_kernel_makes_it_wrong(mistake: Mistake) -> None:
    assert wrong_results(mistake, "ptx") == set(mistake.wrong)


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_every_mistake_of_the_compiled_kernel(mistake: Mistake) -> None:
    assert wrong_results(mistake, "ptx") == set(mistake.wrong)
