"""The MMA warp with its rounds written out: the same bits by fewer instructions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_cases import needs_nvrtc

import fp4ref
from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.cuda_kernel.choices import constants, pieces
from fp4ref.cuda_kernel.mma_loop import compiled_figures
from fp4ref.cuda_kernel.sass import mandatory
from fp4ref.device.compile import CompileError
from fp4ref.evidence.faults.operands import operands
from fp4ref.gemm.plan import plan
from fp4ref.lab.mma_loop_steps import NVRTC, Step, steps

ROLLED = {"mma_loop": "rolled"}
PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
CASES: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    # A round of four; the second tile begins in the middle of the ring.
    "two tiles": ((256, 32, 7 * 256), {"stages": 2}),
    # Eight k-tiles of 128, all in rounds.
    "without scales": ((128, 32, 8 * 128), {"stages": 2, "operand_format": "e4m3"}),
    "a pair": ((256, 32, 5 * 256), {"stages": 2, **PAIR}),
    "an odd ring": ((128, 32, 8 * 256 + 64), {"stages": 3}),
    "no round": ((128, 32, 3 * 256), {"stages": 3}),
    "cp.async": ((128, 32, 5 * 256 - 16), {"stages": 2, "loader": "cp_async"}),
    "C and scales of D": (
        (130, 64, 5 * 256),
        {"stages": 2, "c_format": "bf16", "beta": 0.5, "d_format": "nvfp4"},
    ),
}


def bits(run: fp4ref.Run) -> bytes:
    return np.ascontiguousarray(run.d).tobytes()


@needs_nvrtc
@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", CASES)
def test_both_forms_give_the_bits_of_the_rolled_loop(name: str) -> None:
    """Under PTX's ordering, which faults where an operation comes too early."""
    shape, asked = CASES[name]
    config = GemmConfig.nvfp4(**asked)
    (a, b), c = operands(shape, config.operands), None
    if config.epilogue.c_format:
        c = np.ones(shape[:2], ml_dtypes.bfloat16)
    sms = config.cluster.cta_group

    def run(config: GemmConfig, backend: Any, schedule: str) -> fp4ref.Run:
        return fp4ref.run(
            *(a, b, c), config=config, backend=backend, schedule=schedule, sms=sms
        )

    rolled = run(config.replace(**ROLLED), "emulator", "late")
    emulator = run(config, "emulator", "late")
    compiled = run(config, "ptx", "late")
    eager = run(config, "ptx", "eager")
    assert bits(emulator) == bits(rolled)
    assert bits(compiled) == bits(eager) == bits(rolled)
    outcome = fp4ref.compare(emulator, compiled)
    assert outcome.ok, outcome.report()


def test_both_forms_are_one_text() -> None:
    """They differ in the numbers of the plan alone."""
    rolled = GemmConfig.nvfp4(**ROLLED)
    assert pieces(rolled) == pieces(GemmConfig())
    differing = set(constants(rolled)) ^ set(constants(GemmConfig()))
    assert differing == {
        f"constexpr u32 {name} = {count};"
        for name in ("ROUND_STAGES", "ROUND_K_TILES")
        for count in (0, 10)
    }


def test_a_round_begins_where_the_ring_begins() -> None:
    """In a ring of two, two tiles of seven k-tiles: at k-tiles 0 and 8 of the fourteen.

    A round asks for nothing ahead. So each tile has three peeks: before its first
    k-tile, and after two of its three single ones, of which the last asks no more.
    """
    config = GemmConfig.nvfp4(stages=2)
    a, b = operands((256, 32, 7 * 256), config.operands)
    for asked, peeks in ((config, 3), (config.replace(**ROLLED), 7)):
        run = fp4ref.run(a, b, config=asked, sms=1)
        mine = [e for e in run.trace.events if e.agent == "warp0"]
        assert sum("test_wait" in e.operation for e in mine) == 2 * peeks


@needs_nvrtc
@pytest.mark.parametrize("name", ["plain", "example 72b"])
def test_a_k_tile_takes_fewer_instructions(name: str) -> None:
    of_72b = GemmConfig.example_72b(mma_loop="unrolled")
    config = GemmConfig() if name == "plain" else of_72b
    try:
        found = compiled_figures(config)
    except CompileError as error:
        pytest.skip(str(error))
    assert found.k_tiles == 2 * plan(config).mainloop_stages
    for word, count in mandatory(plan(config)).items():
        assert found.loop_counts[word] == count * found.k_tiles
    assert found.per_k_tile <= {"plain": 33.7, "example 72b": 34}[name]
    assert found.registers <= 128
    assert found.spill_instructions == 0


@needs_nvrtc
@pytest.mark.rotating(2)
@pytest.mark.parametrize("step", [s for s in steps() if s.is_made], ids=lambda s: s.id)
def test_a_recorded_step_is_what_the_compiler_makes_again(step: Step) -> None:
    if nvrtc_version() != NVRTC:
        pytest.skip(f"NVRTC {nvrtc_version()}; the steps were made by {NVRTC}")
    try:
        found = step.make()
    except CompileError as error:
        pytest.skip(str(error))
    assert (found.per_k_tile, found.registers) == (step.after, step.registers)
    assert found.spill_instructions == 0
