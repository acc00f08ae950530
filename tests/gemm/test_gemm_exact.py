"""Sampled elements of the whole kernel against exact rationals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny_road
from gemm_cases import Case
from oracle_problem import Problem
from raw_bits import raw
from wide_operands import UE4M3, UE8M0

from fp4ref import ScaleFormat

TINY = [
    Case(3, 5, 96),
    Case(20, 30, 64, config={"bias": True, "alpha": 0.000137}),
    Case(20, 30, 64, config={"alpha": 0.0137, "c_format": "f32", "beta": 1.3}),
    Case(130, 66, 320, scale_format=UE8M0, config={"tile_n": 64}),
    Case(5, 40, 192, config={"d_format": "bf16", "c_format": "f32", "beta": -0.75}),
    Case(
        9,
        33,
        288,
        config={
            "d_format": "f16",
            "alpha": 0.001,
            "bias": True,
            "activation": "relu",
            "c_format": "f16",
            "beta": 0.5,
        },
    ),
]


@pytest.mark.parametrize("case", TINY, ids=str)
def test_sampled_elements_equal_exact_rationals(case: Case, rotating_seed: int) -> None:
    problem = Problem.of(case, rotating_seed)
    run = problem.run(rotating_seed)
    rng = np.random.default_rng(rotating_seed)
    corners = [(0, 0), (case.m - 1, case.n - 1), (case.m - 1, 0)]
    drawn = zip(
        rng.integers(case.m, size=40), rng.integers(case.n, size=40), strict=True
    )
    for i, j in [*corners, *((int(x), int(y)) for x, y in drawn)]:
        z = tiny_element(problem, i, j)
        if problem.config.epilogue.d_format == "bf16":
            z = tiny_road.narrow(z, 8, 7)
        elif problem.config.epilogue.d_format == "f16":
            z = tiny_road.narrow(z, 5, 10)
        assert int(raw(run.d)[i, j]) == z, f"D[{i}, {j}] is {raw(run.d)[i, j]:#x}"


@pytest.mark.parametrize("sfd_format", [UE4M3, UE8M0])
@pytest.mark.parametrize("norm", [1.0, 2.0, 0.3])
def test_sampled_blocks_of_nvfp4_equal_exact_rationals(
    sfd_format: ScaleFormat, norm: float, rotating_seed: int
) -> None:
    config = {
        "d_format": "nvfp4",
        "sfd_format": sfd_format,
        "norm_constant": norm,
        "c_format": "f32",
        "beta": 1.0,
        "alpha": 2.0**-9,
    }
    case = Case(20, 90, 160, config=config)
    problem = Problem.of(case, rotating_seed)
    run = problem.run(rotating_seed)
    assert run.sfd is not None
    rows = np.random.default_rng(rotating_seed).choice(case.m - 1, 4, replace=False)
    for i, block in itertools.product(map(int, [*rows, case.m - 1]), (0, 2, 5)):
        columns = range(16 * block, min(16 * block + 16, case.n))
        z = [tiny_element(problem, i, j) for j in columns]
        codes, scale = tiny_road.quantise(
            [*z, *[0] * (16 - len(z))], bits(norm), sfd_format is UE8M0
        )
        assert int(run.sfd[i, block]) == scale, f"SFD[{i}, {block}]"
        assert run.d[i, columns.start : columns.stop].tolist() == codes[: len(z)]


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def tiny_element(p: Problem, i: int, j: int) -> int:
    """Bits of D[i, j] before it is narrowed."""
    config = p.config
    acc = tiny_road.accumulate(
        p.a.codes[i].tolist(),
        p.b.codes[j].tolist(),
        p.a.scales[i].tolist(),
        p.b.scales[j].tolist(),
        p.a.scale_format is UE8M0,
    )
    return tiny_road.finish(
        acc,
        bits(1.0 if p.alpha is None else p.alpha),
        0 if p.c is None else bits(float(p.c[i, j])),
        bits(config.epilogue.beta),
        None if p.bias is None else bits(float(p.bias[j])),
        config.epilogue.activation == "relu",
    )
