"""The soft tensor core of a pair, its own PTX on the executor, against the emulator.

The peer's bytes come to the leader's barrier by the relay, B is read in both CTAs, and
each CTA's unit writes its own TMEM.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from narrow_operands import narrow

from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import CompileError, KernelCode, compile_soft, normalised
from fp4ref.cuda_kernel.on_sm import launch_ptx
from fp4ref.errors import ReadWhileInFlight
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.tensors.unscaled import require_operand

sys.path.insert(0, str(Path(__file__).parents[2]))

from probes.kernel.mistakes import PAIR_MISTAKES

PAIR: dict[str, Any] = {"cta_group": 2, "tile_m": 256, "cluster_m": 2, "tile_n": 64}
CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "128 rows in each CTA": (200, "nvfp4", {}),
    "64 rows in each CTA": (100, "f16", {"tile_m": 128}),
    "padded elements": (200, "mxfp6_e3m2", {}),
    "multicast": (200, "nvfp4", {"cluster_n": 2, "d_format": "nvfp4"}),
}
REUSED = "three k-tiles in two stages"
CASES[REUSED] = (200, "f16", {"stages": 2, "scheduler": "static"})
SEED = 3
"""A schedule in which the peer's bytes come late."""
DAILY = ("128 rows in each CTA", "64 rows in each CTA")


def problem_of(name: str, machine: Machine | None = None) -> GemmProblem:
    m, element, more = CASES[name]
    config = GemmConfig.nvfp4(**PAIR | more, operand_format=element)
    k = 192 if name == REUSED else 128 if element == "mxfp6_e3m2" else 64
    a, b = (
        require_operand(narrow(rows, (rows, k), element, specials=False), "a")
        for rows in (m, 100 if "cluster_n" in more else 40)
    )
    return GemmProblem(machine or Machine(4), a, b, None, None, config, 1.0)


def outputs(problem: GemmProblem) -> list[bytes]:
    gmem = problem.machine.gmem
    found = [each for each in gmem.allocations if each.name in ("D", "SFD")]
    return [gmem.contents(o.address, o.nbytes).tobytes() for o in found]


def on_soft_ptx(problem: GemmProblem, changed: dict[str, str] | None = None) -> None:
    try:
        compiled = compile_soft(problem.config, changed=changed)
    except CompileError as error:
        pytest.skip(str(error))
    code = KernelCode(normalised(compiled.ptx), compiled.nvrtc)
    launch_ptx(problem, code=code, soft=True)


def has_the_emulators_bits(name: str) -> bool:
    want, got = problem_of(name), problem_of(name)
    want.launch()
    on_soft_ptx(got)
    return outputs(got) == outputs(want)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", DAILY)
def test_a_pair_on_the_executor_has_the_bits_of_the_emulator(name: str) -> None:
    assert has_the_emulators_bits(name)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in CASES if name not in DAILY])
def test_a_long_pair_on_the_executor_has_the_bits_of_the_emulator(name: str) -> None:
    assert has_the_emulators_bits(name)


@pytest.mark.soak
def test_a_pair_that_reads_its_own_b_alone_is_caught() -> None:
    want, got = problem_of("128 rows in each CTA"), problem_of("128 rows in each CTA")
    want.launch()
    on_soft_ptx(got, PAIR_MISTAKES[0].changed())
    assert outputs(got) != outputs(want)


def under_the_seed(changed: dict[str, str] | None = None) -> GemmProblem:
    got = problem_of(REUSED, Machine(4, make_schedule(SEED)))
    on_soft_ptx(got, changed)
    return got


@pytest.mark.soak
def test_a_pair_whose_bytes_come_late_has_the_emulators_bits() -> None:
    want = problem_of(REUSED)
    want.launch()
    assert outputs(under_the_seed()) == outputs(want)


@pytest.mark.soak
@pytest.mark.parametrize("mistake", PAIR_MISTAKES[1:], ids=lambda each: each.name)
def test_what_does_not_wait_for_late_bytes_is_refused(mistake) -> None:
    with pytest.raises(ReadWhileInFlight):
        under_the_seed(mistake.wrong.changed())
