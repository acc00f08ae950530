"""Every event of the kernel, against an independent table written from formulas."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import expected_events as table
import pytest
from compared_events import (
    SEED,
    assignment,
    check,
    check_run,
    operand,
    run,
    vain_peeks,
)
from expected_events import event_count
from expected_problem import Gemm

import fp4ref
from fp4ref.gemm.config import GemmConfig

CASES: list[tuple[Gemm, int]] = [
    (Gemm(128, 128, 256), 1),
    (Gemm(1, 1, 32), 2),
    (Gemm(127, 129, 96, d="bf16"), 1),
    (Gemm(129, 127, 384, d="f16", raster="n"), 2),
    (Gemm(300, 300, 256, d="nvfp4"), 3),
    (Gemm(129, 300, 1056, clc=False), 2),
    (Gemm(300, 129, 384, d="bf16", c="bf16", loads_c=True), 2),
    (Gemm(128, 300, 1536, c="f32", loads_c=True, c_stages=4, stages=3), 1),
    (Gemm(300, 1, 2048, bias=True), 3),
    (Gemm(129, 300, 96, d="nvfp4", tile_n=64, bias=True), 2),
    (Gemm(128, 129, 1056, tile_n=64, clc=False, d="f16"), 3),
    (Gemm(1, 300, 2048, d="nvfp4", c="f32", c_stages=4), 1),
    (Gemm(127, 300, 384, d="nvfp4", c="f16", loads_c=True, bias=True, clc=False), 1),
    (Gemm(128, 128, 1536, scale_buffers=1, stages=2), 1),
    (Gemm(128, 512, 384, ue8m0=True, accumulator_stages=1, d_stages=1), 1),
    (Gemm(129, 300, 32, batches=2, clc_stages=3, d_stages=3, raster="n"), 3),
    (Gemm(300, 129, 64, batches=3, d="nvfp4", bias=True, clc=False), 2),
    (Gemm(130, 129, 64, d="nvfp4", bias=True, delay=True), 2),
    (Gemm(1, 300, 64, c="bf16", d="bf16", loads_c=True, reuse=True), 1),
    (Gemm(1, 300, 96, c="bf16", loads_c=True, bias=True, reuse=True, d_stages=1), 1),
    (Gemm(1, 300, 32, c="f32", loads_c=True, reuse=True, delay=True, c_stages=3), 1),
]


def name(case: object) -> str:
    if not isinstance(case, Gemm):
        return str(case)
    default = Gemm(0, 0, 0)
    changed = [
        f"{k}={v}"
        for k, v in vars(case).items()
        if k not in "mnk" and v != getattr(default, k)
    ]
    return "-".join([f"{case.m}x{case.n}x{case.k}", *changed])


@pytest.mark.parametrize("schedule", ["eager", "late", "seed"])
@pytest.mark.parametrize(("g", "sms"), CASES, ids=name)
def test_every_agent_does_exactly_what_the_table_says(
    g: Gemm, sms: int, schedule: str
) -> None:
    policy = SEED if schedule == "seed" else schedule
    print(f"schedule {policy}; repeat with FP4REF_SEED={SEED}")
    check_run(g, run(g, policy, sms), sms)


def test_tile_5_0_of_example_72b_and_nothing_else() -> None:
    g = Gemm(2048, 2048, 2048, d="nvfp4", c="f32", c_stages=4, reuse=True, rolled=True)
    a, b = (operand(2048, 2048, 1, False, seed) for seed in (3, 4))
    config = GemmConfig.example_72b()
    trace = fp4ref.run(a, b, config=config, tiles=[(5, 0)]).trace
    assert trace is not None
    tiles = assignment(g, trace, 2, [(5, 0, 0)])
    assert tiles == {(5, 0, 0): [(5, 0, 0)]}
    check(g, trace, tiles)
    alone = replace(g, m=128, n=128)
    assert len(trace) == event_count(alone, [1], vain_peeks(trace)) == 661


def imports_of(path: Path) -> set[str]:
    return {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }


def test_the_table_shares_nothing_with_the_emulator() -> None:
    parts = {p.stem: p for p in Path(table.__file__).parent.glob("expected_*.py")}
    imported = {name for path in parts.values() for name in imports_of(path)}
    # The table imports its parts, so what is left is all that it reaches.
    assert imported - set(parts) == {
        "__future__",
        "collections.abc",
        "dataclasses",
        "typing",
    }
    assert set(parts) - imported == {table.__name__}
