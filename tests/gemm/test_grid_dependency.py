"""griddepcontrol: nothing is read or written before the grid before is done.

The load warp alone executes ``griddepcontrol.wait``. If that never returns, the other
roles go as far as they can: what they touch meanwhile is not ordered behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from gemm_cases import Case
from oracle_problem import Problem

from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import DeadlockError
from fp4ref.gemm.load.load_order import LoadOrder
from fp4ref.hardware import clc
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Warp

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
BACKENDS = ["emulator", pytest.param("ptx", marks=needs_nvrtc)]


class Earlier:
    """A grid that is never done."""

    def ready(self) -> bool:
        return False

    def describe(self) -> str:
        return "the grid before"

    def released_by(self) -> str:
        return "nobody"


@contextlib.contextmanager
def touched(wait: Any) -> Iterator[list[str]]:
    """Who reads or writes global memory with `wait` for ``griddepcontrol.wait``."""
    found: list[str] = []
    stepping: list[Machine] = []
    real = {name: getattr(GlobalMemory, name) for name in ("read", "write")}
    real_step = Machine._step

    def spied(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            found.extend(machine.agent for machine in stepping)
            return real[name](*arguments)

        return call

    def step(machine: Machine) -> bool:
        stepping[:] = [machine]
        try:
            return real_step(machine)
        finally:
            stepping.clear()

    with (
        patch.object(clc, "griddepcontrol_wait", wait),
        patch.object(Machine, "_step", step),
        patch.object(GlobalMemory, "read", spied("read")),
        patch.object(GlobalMemory, "write", spied("write")),
    ):
        yield found


def waits_for_ever(warp: Warp) -> Iterator[Blocked]:
    """Wait for a grid that is never done."""
    yield Earlier()


def passes(warp: Warp) -> Iterator[Blocked]:
    """Wait for nothing."""
    yield from ()


WHOLE = {"c_format": "bf16", "beta": 0.5, "bias": True, "d_format": "nvfp4"}
CASES = [
    Case(130, 70, 288, sms=2, config={"tile_n": 64, **WHOLE}),
    Case(130, 70, 288, sms=2, config={"tile_n": 64, "scheduler": "static", **WHOLE}),
    Case(130, 70, 288, sms=2, config={"tile_n": 64, "splits": 3, **WHOLE}),
    Case(130, 70, 272, sms=1, config={"tile_n": 64, "loader": "cp_async", **WHOLE}),
]


NEVER = pytest.raises(DeadlockError, match="the grid before")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=["clc", "static", "splits", "cp.async"])
def test_nothing_is_touched_before_the_grid_before_is_done(
    case: Case, backend: str
) -> None:
    problem = Problem.of(case)
    with touched(waits_for_ever) as found, NEVER:
        problem.run(0, backend=backend)
    assert found == []


def test_c_would_be_without_the_order_of_loads() -> None:
    """Where nobody asks for tiles, it alone keeps C behind the load warp's wait."""
    problem = Problem.of(CASES[1])
    with (
        patch.object(LoadOrder, "wait", lambda order: iter(())),
        touched(waits_for_ever) as found,
        NEVER,
    ):
        problem.run(0)
    assert {who.rpartition(" ")[2] for who in found} == {"warp3"}


def test_a_run_touches_global_memory() -> None:
    problem = Problem.of(CASES[0])
    with touched(passes) as found:
        problem.run(0)
    assert len(set(found)) > 4
