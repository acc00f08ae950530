"""72a: clusters of eight CTAs, four pairs, from CUTLASS's own text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from raw_bits import assert_bits_equal
from typer.testing import CliRunner
from wide_operands import wide_pair

from fp4ref import BlockScaled, GemmConfig, oracle
from fp4ref.commands import app
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.cutlass.toolchain import Toolchain
from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import hardware_events
from fp4ref.numerics import matmul_block_scaled

STAGE_NBYTES = 77_824
"""Of both CTAs: A and B 32,768 each, SFA 4,096, and SFB 4,096 for each of the two."""


@pytest.fixture(scope="module")
def traced(tools: Toolchain) -> CutlassRun:
    """Two clusters of work on eight SMs: the second one comes by CLC."""
    found = execute_example("72a", 512, 1024, 512)
    assert found.result.passed, found.result.problems
    return found


@pytest.mark.parametrize("schedule", ["late", 7])
def test_72a_passes_its_own_check(tools: Toolchain, schedule: str | int):
    found = execute_example("72a", 256, 1024, 256, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems


def first_columns(operand: BlockScaled, k: int) -> BlockScaled:
    scales = operand.scales[:, : k // operand.vec_size]
    return replace(operand, codes=operand.codes[:, :k], scales=scales)


def integer_model(a: BlockScaled, b: BlockScaled) -> np.ndarray:
    formats = {"scale_format": a.scale_format, "vec_size": a.vec_size}
    return matmul_block_scaled(a.codes, b.codes, a.scales, b.scales, **formats)


def test_wide_inputs_give_the_bits_of_the_integer_model(tools: Toolchain):
    """Every accumulator of both CTAs of a pair, after each MMA, and every D."""
    m, n, k = 200, 520, 320
    a, b = wide_pair(3, m, n, k)
    found = execute_example("72a", m, n, k, operands=(a, b), schedule="late")
    assert found.result.fault is None
    want = oracle.expected(a, b, config=GemmConfig.nvfp4(d_format="bf16"))
    assert_bits_equal(
        found.allocation("D").view(np.uint16).reshape(m, n), want.d.view(np.uint16)
    )
    sums = {
        depth: integer_model(first_columns(a, depth), first_columns(b, depth))
        for depth in range(64, k + 1, 64)
    }
    changed = {
        key: event
        for key, event in hardware_events(found.trace).items()
        if key.tensor == "accumulator"
    }
    # Four pairs side by side in N, two CTAs with 128 rows each, two k-tiles of 256.
    assert Counter((key.rank, key.m, key.n) for key in changed) == {
        (2 * pair + half, 128 * half, 256 * pair): 8
        for pair in range(4)
        for half in range(2)
    }
    for key, event in changed.items():
        depth = min(key.k + 64 * (key.block + 1), k)
        expected = sums[depth][key.m : key.m + 128, key.n : key.n + 256]
        rows, columns = expected.shape
        words = event.data.view(np.uint32).reshape(128, 256)
        assert_bits_equal(words[:rows, :columns], expected.view(np.uint32))


def events(run: CutlassRun, operation: str):
    assert run.trace is not None
    return [e for e in run.trace.events if e.operation == operation]


def test_leaders_alone_expect_the_bytes_of_a_stage(traced: CutlassRun):
    expecting = [
        e
        for e in events(traced, "mbarrier.arrive.expect_tx")
        if e.operands["tx_bytes"] == STAGE_NBYTES
    ]
    # Four pairs, two tiles of two k-tiles each; ranks run along x first.
    assert Counter(e.cta for e in expecting) == {(0, y, 0): 4 for y in range(4)}
    assert len({b.address for e in expecting for b in e.barrier}) == 3


def test_boxes_land_where_they_are_used(traced: CutlassRun):
    """A in the four CTAs of its row of the cluster, B in one."""
    loads = [e for e in traced.trace.events if e.operation.endswith(".load")]
    issues = {e.step: e for e in loads if e.kind == "issue"}
    landings = Counter(e.issued for e in loads if e.kind == "land")
    spread = Counter(
        (tuple(issues[step].operands["box"]), count) for step, count in landings.items()
    )
    # 8 CTAs, 2 tiles, 2 k-tiles: A by quarters, B whole, SFA by one of 4, SFB by 2.
    assert spread == {
        ((256, 32, 1), 4): 32,
        ((256, 128, 1), 1): 32,
        ((256, 1, 1, 1), 4): 32,
        ((256, 2, 2, 1), 2): 32,
    }


def test_every_byte_of_a_pair_is_counted_by_its_leader(traced: CutlassRun):
    landed = [
        e
        for e in traced.trace.events
        if e.operation.endswith(".load") and e.kind == "land"
    ]
    receivers = {b.space for e in landed for b in e.barrier}
    assert receivers == {f"smem{rank}" for rank in (0, 2, 4, 6)}
    tiles = {w.space for e in landed for w in e.writes if w.nbytes > 8}
    assert tiles == {f"smem{rank}" for rank in range(8)}


def test_one_request_answers_eight_ctas(traced: CutlassRun):
    requests = events(traced, "clusterlaunchcontrol.try_cancel")
    assert Counter(e.kind for e in requests) == {"issue": 2, "land": 16}
    spaces = Counter(b.space for e in requests for b in e.barrier)
    assert spaces == {f"smem{sm}": 2 for sm in range(8)}
    machine = traced.result.machine
    assert machine.stats["clc.canceled"] == 1
    assert machine.stats["cta"] == 8


def test_keys_carry_the_receiving_cta(traced: CutlassRun):
    assert traced.trace is not None
    counts: dict[str, Counter[int]] = {}
    columns: dict[int, set[int]] = {}
    for key in hardware_events(traced.trace):
        counts.setdefault(key.tensor, Counter())[key.rank] += 1
        if key.tensor == "SFB":
            columns.setdefault(key.rank, set()).add(key.n)
    # In each CTA, of 2 tiles with 2 k-tiles of 4 K-blocks: A by quarters, B by one box,
    # SFA by 4 along K, SFB by 2 along N.
    each = {"A": 16, "B": 4, "SFA": 16, "SFB": 8, "accumulator": 16}
    each |= {"SFA in TMEM": 16, "SFB in TMEM": 32}
    for tensor, count in each.items():
        assert counts[tensor] == dict.fromkeys(range(8), count), tensor
    # The scales of B are whole in both CTAs of a pair.
    for rank in range(8):
        assert columns[rank] == {rank // 2 * 256, rank // 2 * 256 + 128}


def test_the_command_leaves_a_player_of_the_cluster(tools: Toolchain, tmp_path: Path):
    page = tmp_path / "72a.html"
    size = ["--m", "256", "--n", "1024", "--k", "256"]
    result = CliRunner().invoke(app, ["cutlass", "72a", *size, "--player", str(page)])
    assert result.exit_code == 0, result.output
    assert "launched a grid of 2 x 4 x 1 CTAs in clusters of 2 x 4 x 1" in result.output
    assert "passed its own check" in result.output
    assert "CUTLASS 72a, 256 x 1024 x 256" in page.read_text()


def test_a_machine_smaller_than_the_cluster_is_refused(tools: Toolchain):
    with pytest.raises(InputError, match="72a on 4 SMs; its clusters need 8"):
        execute_example("72a", 256, 1024, 256, sms=4, trace=False)
