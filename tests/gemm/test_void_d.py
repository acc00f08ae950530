"""No D: what a tree's nodes leave is all, and nothing of D takes memory or time."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_trees import bits, launch, needs_nvrtc
from tree_cases import TREES, TreeCase

import fp4ref
from fp4ref import GemmConfig, compare, plan
from fp4ref.cuda_kernel.parameters import block_layout, parameter_block
from fp4ref.errors import ConfigError, InputError
from fp4ref.evidence import oracle
from fp4ref.execution.runs import _reporter
from fp4ref.fusion import acc, alpha, amax, aux, beta, build, c, operation, relu
from fp4ref.gemm.fusion.node import EpilogueWarp, Region, Steps, Unary, Visit
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine

STORING = tuple(
    case
    for case in TREES
    if any(node.stores for node in case.config().epilogue.fusion.walk())
)
MODES: tuple[dict[str, Any], ...] = (
    {},
    {"store": "transposed", "element_wise": "smem"},
    {"subtile_n": 64, "scheduler": "static", "tile_n": 64},
    {"splits": 2, "swap_ab": True, "element_wise": "smem"},
    {"cta_group": 2, "tile_m": 256, "cluster_m": 2},
)
VALUE = relu(alpha * acc + beta * c)
LEFT = build(VALUE | aux("y") | amax("d"), c="f32", d=None)


def check(case: TreeCase, mode: dict[str, Any], backend: Any) -> None:
    """All but D is the oracle's, and what the same tree leaves beside a D."""
    given = launch(case, seed=4, shape=(150, 90, 192))
    config = case.config(**mode, d_format=None)
    run = fp4ref.run(**given, config=config, backend=backend, schedule="late")
    wanted = bits(oracle.expected(**given, config=case.config(**mode)))
    wanted.pop("-sfd", None)
    assert bits(run) | {"-d": wanted["-d"]} == wanted
    assert run.verdict == "clean"
    assert not run.written.any()


@pytest.mark.rotating(4)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: " ".join(mode) or "default")
@pytest.mark.parametrize("case", STORING, ids=str)
def test_what_the_nodes_leave_is_as_beside_a_d(
    case: TreeCase, mode: dict[str, Any]
) -> None:
    check(case, mode, "emulator")


@needs_nvrtc
@pytest.mark.rotating(2)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: " ".join(mode) or "default")
@pytest.mark.parametrize("case", STORING, ids=str)
def test_the_compiled_kernel_leaves_the_same(
    case: TreeCase, mode: dict[str, Any]
) -> None:
    check(case, mode, "ptx")


def problem_of(config: GemmConfig) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    a, b = (fp4ref.quantize(rng.standard_normal((n, 64), np.float32)) for n in (40, 50))
    source = rng.standard_normal((40, 50), np.float32)
    return {"a": a, "b": b, "c": source, "config": config}


def test_d_says_that_there_is_none_and_cannot_be_used() -> None:
    given = problem_of(GemmConfig(epilogue=LEFT))
    for d in (fp4ref.run(**given).d, oracle.expected(**given).d):
        assert "d_format=None" in repr(d)
        assert repr(copy.copy(d)) == repr(d)
        for use in (np.asarray, len, bool, lambda x: x[0], lambda x: x == 0):
            with pytest.raises(InputError, match="this run has no D, because"):
                use(d)
        with pytest.raises(InputError, match="Ask for a D by its format"):
            _ = d.shape
    assert fp4ref.run(**given, trace=False).written.shape == (40, 50)


def test_d_takes_neither_memory_nor_a_store() -> None:
    """Its stages are the mainloop's, and no epilogue warp waits for another."""
    void = GemmConfig(epilogue=LEFT)
    beside = void.replace(d_format="f32")
    one, other = plan(void), plan(beside)
    assert one.buffer("d_subtile").nbytes == one.d_subtile_nbytes == 0
    assert one.epilogue_nbytes == other.epilogue_nbytes - 2 * 128 * 32 * 4
    assert (one.mainloop_stages, other.mainloop_stages) == (5, 4)
    without, with_d = (
        Counter(e.operation for e in fp4ref.run(**problem_of(each)).trace)
        for each in (void, beside)
    )
    of_d = {"st.shared", "cp.async.bulk.tensor.3d.store"}
    of_d |= {f"cp.async.bulk.{word}_group" for word in ("commit", "wait")}
    found = {name for name in with_d if with_d[name] and not without[name]}
    assert {name.removesuffix(".read") for name in found} == of_d
    assert without["bar.sync"] < with_d["bar.sync"]
    params = GemmProblem(Machine(1), **problem_of(void), bias=None).params
    assert params.d is None
    at = block_layout()[0]["d"]
    assert not any(parameter_block(params)[at : at + 128])


@needs_nvrtc
def test_both_codes_are_compared_by_what_the_nodes_left() -> None:
    given = problem_of(GemmConfig(epilogue=LEFT))
    found = compare(fp4ref.run(**given), fp4ref.run(**given, backend="ptx"))
    assert found.ok
    assert found.counts["aux y"] == found.counts["amax d"] == 1
    assert "D" not in found.counts


def test_progress_counts_its_tiles_too() -> None:
    rng = np.random.default_rng(5)
    a, b = (
        fp4ref.quantize(rng.standard_normal((n, 512), np.float32)) for n in (200, 9)
    )
    tree = build(alpha * acc | aux("y"), d=None)
    across = {"store": "transposed", "element_wise": "smem"}
    for asked in ({}, {"splits": 2}, {"splits": 3}, {"d_format": "f32", **across}):
        seen: list[tuple[int, int]] = []
        config = GemmConfig(epilogue=tree).replace(**asked)
        fp4ref.run(a, b, config=config, trace=False, progress=seen_by(seen))
        assert seen == sorted(seen)
        assert seen[-1] == (2, 2)


def seen_by(seen: list[tuple[int, int]]) -> Callable[[int, int], None]:
    return lambda done, total: seen.append((done, total))


@pytest.mark.parametrize(
    ("asked", "operation", "of_tile"),
    [
        ({}, "cp.async.bulk.tensor.3d.store", 4),
        (
            {"store": "transposed", "element_wise": "smem"},
            "cp.async.bulk.tensor.3d.store",
            16,
        ),
        ({"d_format": None}, "tcgen05.ld", 16),
    ],
)
def test_a_tile_is_finished_with_its_last_store(
    asked: dict[str, Any], operation: str, of_tile: int
) -> None:
    """Of each subtile, and of each warp's box of it; without D with its last load."""
    config = GemmConfig(epilogue=LEFT).replace(**{"d_format": "f32"} | asked)
    problem = GemmProblem(Machine(1), **problem_of(config), bias=None)
    seen: list[tuple[int, int]] = []
    report = _reporter(seen_by(seen), 2, problem)
    for count in (of_tile - 1, of_tile, 2 * of_tile - 1, 2 * of_tile):
        machine: Any = SimpleNamespace(stats={operation: count})
        report(machine)
    assert seen == [(0, 2), (1, 2), (2, 2)]


@dataclass(frozen=True, repr=False)
class Sent(Unary):
    """A node that would start a store of its own."""

    stores = True

    def visit(self, v: Visit, *inputs: Any) -> Any:
        return inputs[0]

    def tma_store(self, e: EpilogueWarp, at: Region) -> Steps:
        yield from ()


REFUSED: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (None, {}, "d_format=None without a tree: nothing .* Use d_format='f32'"),
    (VALUE, {}, "with a tree that stores nothing: nothing would be left"),
    (VALUE | aux("y"), {"reuse_smem_c": True}, "there is no D. Use reuse_smem_c=False"),
    (VALUE | aux("y"), {"delay_tma_store": True}, "Use delay_tma_store=False"),
    (VALUE | aux("y"), {"tmem_load": "16x256b"}, "d_format=None: .*tmem_load=32x32b"),
    (operation(Sent)(VALUE), {}, "Sent: its tma_store is committed with the store of"),
)


@pytest.mark.parametrize(("tree", "more", "said"), REFUSED)
def test_what_cannot_be_is_refused(tree: Any, more: Any, said: str) -> None:
    config = GemmConfig()
    if tree is not None:
        config = GemmConfig(epilogue=build(tree, c="f32"))
    with pytest.raises(ConfigError, match=said):
        plan(config.replace(d_format=None, **more))
