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
from fp4ref.cuda_kernel.choices import one_file, pieces
from fp4ref.cuda_kernel.mma_loop import compiled_figures
from fp4ref.cuda_kernel.sass import mandatory
from fp4ref.device.compile import CompileError
from fp4ref.errors import InputError
from fp4ref.evidence.faults.operands import operands
from fp4ref.gemm.plan import plan
from fp4ref.lab.mma_loop_steps import NVRTC, Step, steps

UNROLLED = {"mma_loop": "unrolled"}
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

    rolled = run(config, "emulator", "late")
    unrolled = config.replace(**UNROLLED)
    emulator = run(unrolled, "emulator", "late")
    compiled = run(unrolled, "ptx", "late")
    eager = run(unrolled, "ptx", "eager")
    assert bits(emulator) == bits(rolled)
    assert bits(compiled) == bits(eager) == bits(rolled)
    outcome = fp4ref.compare(emulator, compiled)
    assert outcome.ok, outcome.report()


def test_the_default_has_no_unrolled_text() -> None:
    """A choice of the role's body: nothing else of the kernel's text differs."""
    file = "kernel/gemm/unrolled_mma_warp.cuh"
    assert file not in pieces(GemmConfig())
    unrolled = GemmConfig.nvfp4(**UNROLLED)
    assert {file} == set(pieces(unrolled)) - set(pieces(GemmConfig()))
    assert "unrolled_mma_warp(storage)" in one_file(unrolled)
    assert "unrolled" not in one_file(GemmConfig())


def test_rounds_of_k_groups_are_refused() -> None:
    with pytest.raises(InputError, match="Use k_group=1 or mma_loop='rolled'"):
        plan(GemmConfig.nvfp4(k_group=2, **UNROLLED))


@needs_nvrtc
@pytest.mark.parametrize("name", ["plain", "example 72b"])
def test_a_k_tile_takes_fewer_instructions(name: str) -> None:
    base = GemmConfig() if name == "plain" else GemmConfig.example_72b()
    config = base.replace(**UNROLLED)
    try:
        found = compiled_figures(config)
    except CompileError as error:
        pytest.skip(str(error))
    assert found.k_tiles == 2 * plan(config).mainloop_stages
    for word, count in mandatory(plan(config)).items():
        assert found.loop_counts[word] == count * found.k_tiles
    assert found.per_k_tile <= {"plain": 33, "example 72b": 35}[name]
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
