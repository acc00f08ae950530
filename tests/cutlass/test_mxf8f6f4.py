"""72c: CUTLASS's kernel of E4M3 and E2M1 with one scale for 32 elements."""

from __future__ import annotations

import numpy as np

from fp4ref.cutlass import build_example, run_example
from fp4ref.cutlass.cudart import Copy, Launch
from fp4ref.cutlass.execute import execute_example
from fp4ref.hardware.machine import Machine
from fp4ref.layout import unswizzle_scales
from fp4ref.numerics import (
    ElementFormat,
    encode_bf16,
    matmul_mxf8f6f4,
    unpack_e2m1,
)
from fp4ref.ptx import Program, launch, parse

SMS = 8
"""One cluster of 2 x 4."""


def test_72c_passes_its_own_check(tools):
    found = execute_example("72c", 256, 256, 256, trace=False)
    assert found.result.passed, found.result.problems or "its own check fails"


def test_72c_passes_under_another_schedule(tools):
    found = execute_example("72c", 256, 264, 384, schedule="late", trace=False)
    assert found.result.passed, found.result.problems or "its own check fails"


def test_wide_operands_give_the_bits_of_the_model(tools):
    """The example's small integers cannot tell a right accumulator from a wrong one."""
    m, n, k = 256, 384, 512
    rng = np.random.default_rng(8)
    sizes = {0: m * k, 1: n * k // 2, 5: m * k // 32, 6: n * k // 32}
    put = {i: rng.integers(0, 256, size, np.uint8) for i, size in sizes.items()}
    put[0][rng.random(m * k) < 0.9999] &= 0xF7  # few NaN, so that most results count
    for i in (5, 6):
        put[i] = rng.integers(115, 140, sizes[i]).astype(np.uint8)
    put[5][7] = 255
    module = parse(build_example("72c", print).ptx.read_text())

    def run_kernel(machine: Machine, found: Launch) -> None:
        program = Program.of(module, found.name)
        launch(
            machine,
            program,
            found.grid,
            found.block,
            found.params,
            cluster=found.cluster,
            smem_nbytes=found.smem_nbytes,
        )

    def on_copy(copy: Copy, data: bytes) -> bytes | None:
        return put[copy.allocation].tobytes() if copy.allocation in put else None

    machine = Machine(SMS, ordering="shipped")
    result = run_example(
        "72c", m, n, k, launch=run_kernel, machine=machine, on_copy=on_copy
    )
    assert not result.fault
    (at,) = {c.address for c in result.copies if c.direction == "to host"}
    got = machine.gmem.contents(at, m * n * 2).view(np.uint16).reshape(m, n)
    want = matmul_mxf8f6f4(
        put[0].reshape(m, k),
        unpack_e2m1(put[1]).reshape(n, k),
        unswizzle_scales(put[5], m, k // 32),
        unswizzle_scales(put[6], n, k // 32),
        a_format=ElementFormat.E4M3,
        b_format=ElementFormat.E2M1,
    )
    np.testing.assert_array_equal(got, encode_bf16(want))
    assert np.isfinite(want).mean() > 0.5
    assert np.isnan(want).any()
