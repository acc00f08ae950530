"""callback_order: our nodes are called in the order that CUTLASS's kernels printed.

The record is of CUTLASS's own kernels, with a node that prints its callbacks;
tests/cutlass/test_installed_callbacks.py runs them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from printing_node import Row, Rows, compiled, configured, emulated

from fp4ref import plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.evidence.faults.change import Change, changed_kernel, read
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.trace import Trace

RECORD = Path(__file__).parents[1] / "data/callback_order.json"
RUNS: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))["runs"]
OVERLAPPED = "overlapped accumulators"
SAME_TILES = [name for name in RUNS if name != OVERLAPPED]
"""Runs whose subtiles are ours, 128 x 32; CUTLASS cannot overlap accumulators then."""
LOAD, FIRST = WarpRole.EPILOGUE_LOAD.value, WarpRole.EPILOGUE.value
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
TILES, NODES = 2, 3
PER_SUBTILE = 7
"""Callbacks of a subtile: begin_loop to end_loop."""


def told(run: dict[str, Any], part: str) -> Iterator[tuple[str, list[int], list[int]]]:
    """Callback, what it was told, and the nodes, of each line."""
    for line in run[part]:
        said, _, nodes = line.partition(": ")
        callback, *numbers = said.split()
        yield callback, list(map(int, numbers)), list(map(int, nodes.split()))


def rows(run: dict[str, Any], part: str) -> list[Row]:
    """A warp's callbacks, with what ours are told too: the first fragment's visit."""
    policy, found = run["policy"], []
    stages = {
        "load_step": policy["stages_c"],
        "postreduce": policy["store_stages"],
        "tma_store": policy["store_stages"],
    }
    for callback, (m, n, iteration, flag), nodes in told(run, part):
        assert m in (-1, 0), "a subtile has all 128 rows"
        if callback == "visit" and iteration > 0:
            continue
        stage = iteration % stages[callback] if callback in stages else -1
        issues = flag if callback == "tma_store" else -1
        found += [(callback, node, n, stage, issues) for node in nodes]
    return found


def same_order(found: Rows, run: dict[str, Any]) -> None:
    """Every warp's callbacks are those of CUTLASS's warp."""
    load, store = rows(run, "load"), rows(run, "store")
    assert found.get(LOAD, []) == load
    assert set(found) - {LOAD} == set(range(FIRST, FIRST + 4))
    for warp in range(FIRST, FIRST + 4):
        of_warp = [
            (*row[:4], int(warp == FIRST)) if row[0] == "tma_store" else row
            for row in store
        ]
        assert found[warp] == of_warp


def test_the_runs_have_c_and_none_reuse_delay_a_branch_and_reversed_subtiles() -> None:
    policies = [run["policy"] for run in RUNS.values()]
    modes = {(p["reuse_smem_c"], p["delay_tma_store"]) for p in policies}
    assert modes == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert {bool(run["load"]) for run in RUNS.values()} == {False, True}
    assert {p["tile_n"] for p in policies} == {128, 256}
    assert {p["fragment_size"] for p in policies} == {16, 32, 64}
    assert {"a branch", OVERLAPPED} < set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_cutlass_said_all_of_it(name: str) -> None:
    """Each callback of each subtile once, the last one known, fragments in turn."""
    run = RUNS[name]
    policy = run["policy"]
    subtiles = policy["tile_n"] // policy["subtile_n"]
    for part, each, around in (("load", 1, 2), ("store", PER_SUBTILE, 2)):
        count = NODES * TILES * (subtiles * each + around)
        assert len(rows(run, part)) == (count if run[part] else 0)
    lasts = [numbers[3] for name, numbers, _ in told(run, "store") if name == "reduce"]
    assert lasts == ([0] * (subtiles - 1) + [1]) * TILES
    visits = [numbers for name, numbers, _ in told(run, "store") if name == "visit"]
    fragments = policy["subtile_n"] // policy["fragment_size"]
    assert [v[2] for v in visits] == list(range(fragments)) * subtiles * TILES
    assert all(nodes == [0, 1, 2] for _, _, nodes in told(run, "store"))


@pytest.mark.parametrize("name", SAME_TILES)
def test_the_emulator_calls_its_nodes_in_cutlasss_order(name: str) -> None:
    run = RUNS[name]
    config = configured(name, run)
    assert plan(config).store_stages == run["policy"]["store_stages"]
    found, trace = emulated(config)
    same_order(found, run)
    for warp in found:
        wanted = [row[0] for row in found[warp] if row[0] not in ("previsit", "visit")]
        assert list(noted(trace, warp)) == wanted


def test_overlapped_accumulators_begin_at_the_columns_that_they_share() -> None:
    """CUTLASS's subtiles of 64 columns, and ours of 32: backwards, then forwards."""
    run = RUNS[OVERLAPPED]
    found, _ = emulated(configured(OVERLAPPED, run))
    theirs = begun(rows(run, "store"))
    assert theirs == [3, 2, 1, 0, 0, 1, 2, 3]
    assert begun(found[FIRST]) == [*range(7, -1, -1), *range(8)]


def begun(of_warp: list[Row]) -> list[int]:
    """Subtiles in the order in which the last node begins them."""
    return [row[2] for row in of_warp if row[:2] == ("begin_loop", NODES - 1)]


def noted(trace: Trace, warp: int) -> Iterator[str]:
    """Callbacks of the printing nodes of a warp, by the events of the trace."""
    for event in trace.events:
        room, _, callback = event.operation.partition(".")
        if room == "fusion" and callback and event.agent == f"warp{warp}":
            assert hasattr(Node, callback)
            assert event.operands["node"] == "Printing"
            yield callback


@needs_nvrtc
@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", SAME_TILES)
def test_the_kernel_calls_its_nodes_in_cutlasss_order(name: str) -> None:
    run = RUNS[name]
    same_order(compiled(configured(name, run)), run)


def moved(file: str, first: str, last: str, up: bool = False) -> Change:
    """The line that has `first` comes after the one with `last`; or that one `up`."""
    lines = read(f"kernel/gemm/{file}").splitlines()
    ((start,), (end,)) = (
        [i for i, line in enumerate(lines) if text in line] for text in (first, last)
    )
    right = lines[start : end + 1]
    wrong = right[-1:] + right[:-1] if up else right[1:] + right[:1]
    return Change(f"kernel/gemm/{file}", "\n".join(right), "\n".join(wrong))


_COLLECTIVE = "epilogue/collective.cuh"
_DELAYED, _PROMPT = "if (DELAY_TMA_STORE && i > 0)", "if constexpr (!DELAY_TMA_STORE)"
SWAPS = {
    "reduce before the delayed store": (
        "no C",
        (_COLLECTIVE, _DELAYED, "node.reduce("),
    ),
    "end_loop before the store": (
        "a branch",
        (_COLLECTIVE, "if constexpr (STAGES_D)", "node.end_loop(", True),
    ),
    "postreduce after the store": (
        "a branch",
        ("epilogue/tile_writer.cuh", "node.postreduce(", _PROMPT),
    ),
    "a node before its inputs": (
        "no C",
        ("fusion/node.cuh", "node.walk_inputs(call);", "call(node);"),
    ),
    "load_begin after the loads": (
        "C",
        ("epilogue_load_warp.cuh", "node.load_begin(", "load_subtile(storage, fusion"),
    ),
}
"""Where each is seen, and the line that changes its place."""


@needs_nvrtc
@pytest.mark.rotating(1)
@pytest.mark.parametrize("mistake", SWAPS)
def test_two_callbacks_that_change_places_are_seen(mistake: str) -> None:
    name, places = SWAPS[mistake]
    run = RUNS[name]
    config = configured(name, run)
    with changed_kernel(moved(*places), config), pytest.raises(AssertionError):
        same_order(compiled(config), run)
