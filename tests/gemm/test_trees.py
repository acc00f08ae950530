"""A tree of nodes: emulator, compiled kernel and oracle have the same bits."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from tree_cases import TREES, TreeCase

import fp4ref
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.evidence import oracle
from fp4ref.execution.runs import Run
from fp4ref.gemm.void_d import is_void

SHAPE = 70, 90, 64
"""Neither M nor N is a multiple of what a warp or a chunk has."""

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def launch(case: TreeCase, seed: int = 0, shape: Any = SHAPE) -> dict[str, Any]:
    """Operands and arguments of a launch."""
    *lead, m, n, k = shape
    rng = np.random.default_rng(seed)
    a = fp4ref.quantize(rng.standard_normal((*lead, m, k), np.float32))
    b = fp4ref.quantize(rng.standard_normal((*lead, n, k), np.float32))
    config = case.config()
    source = None
    if config.epilogue.c_format is not None:
        named = fp4ref.numerics.elements.ELEMENTS[config.epilogue.c_format]
        dtype = np.dtype(named.dtype)
        source = rng.standard_normal((*lead, m, n), np.float32).astype(dtype)
    passed = case.arguments(rng, (*lead, m, n))
    return {"a": a, "b": b, "c": source, "arguments": passed, "alpha": 0.625}


def bits(found: Run | oracle.Expected) -> dict[str, bytes]:
    """D, SFD and all that the tree left, by name; a node's is an identifier."""
    d = b"" if is_void(found.d) else found.d
    parts = {"-d": d, **found.aux, **found.reductions}
    if found.sfd is not None:
        parts["-sfd"] = found.sfd
    return {name: np.ascontiguousarray(x).tobytes() for name, x in parts.items()}


def of_the_day(cases: tuple[TreeCase, ...], count: int) -> list[TreeCase]:
    """Some cases, others each day."""
    first = date.today().toordinal() * count
    return [cases[(first + i) % len(cases)] for i in range(count)]


@pytest.mark.parametrize("case", TREES, ids=str)
def test_the_emulator_has_the_bits_of_the_oracle(case: TreeCase) -> None:
    given = launch(case)
    run = fp4ref.run(**given, config=case.config(), schedule="late")
    assert bits(run) == bits(oracle.expected(**given, config=case.config()))
    assert run.verdict == "clean"


@needs_nvrtc
@pytest.mark.parametrize("case", of_the_day(TREES, 2), ids=str)
def test_the_compiled_kernel_has_the_bits_of_the_oracle(case: TreeCase) -> None:
    given = launch(case, seed=1)
    run = fp4ref.run(**given, config=case.config(), backend="ptx", trace=False)
    assert bits(run) == bits(oracle.expected(**given, config=case.config()))


def spoilt(given: object, rng: np.random.Generator) -> Any:
    """Many NaN and infinities in an array of numbers."""
    if not isinstance(given, np.ndarray) or given.dtype == np.bool_:
        return given
    found = given.copy()
    for special in (np.nan, np.inf, -np.inf):
        at = rng.integers(0, found.size, max(1, found.size // 9))
        with np.errstate(invalid="ignore"):
            found.reshape(-1)[at] = np.array(special).astype(found.dtype)
    return found


@needs_nvrtc
@pytest.mark.rotating(2)
@pytest.mark.parametrize("case", TREES, ids=str)
def test_nan_and_infinity_are_as_the_nodes_say(case: TreeCase) -> None:
    """In C and in all that is passed, on both machines."""
    given, rng = launch(case, seed=5, shape=(40, 48, 64)), np.random.default_rng(1)
    passed = {name: spoilt(each, rng) for name, each in given["arguments"].items()}
    given |= {"c": spoilt(given["c"], rng), "arguments": passed}
    wanted = bits(oracle.expected(**given, config=case.config()))
    for backend in ("emulator", "ptx"):
        run = fp4ref.run(**given, config=case.config(), backend=backend, trace=False)
        assert bits(run) == wanted, backend


@needs_nvrtc
@pytest.mark.soak
@pytest.mark.parametrize("schedule", ["eager", "late", 3])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tile_n": 64, "splits": 2},
        {"element_wise": "smem", "swap_ab": True},
        {"tile_n": 256, "scheduler": "static", "raster": "n"},
        {"cta_group": 2, "tile_m": 256, "cluster_m": 2},
        {"cluster_n": 2, "d_stages": 1, "accumulator_stages": 1},
    ],
    ids=lambda changes: " ".join(changes) or "default",
)
@pytest.mark.parametrize("case", TREES, ids=str)
def test_no_choice_of_the_kernel_changes_a_bit(
    case: TreeCase, changes: dict[str, Any], schedule: Any
) -> None:
    """60 trees and modes, each with three schedules, on both machines."""
    given = launch(case, seed=2, shape=(2, 150, 140, 192))
    config = case.config(**changes)
    wanted = bits(oracle.expected(**given, config=config))
    for backend in ("emulator", "ptx"):
        run = fp4ref.run(
            **given, config=config, backend=backend, schedule=schedule, trace=False
        )
        assert bits(run) == wanted, backend
