"""Triton's block-scaled kernels give the bits of the integer model.

Another author's code, which knows nothing of this machine: accumulator and scales reach
TMEM by ``tcgen05.st``, operands reach shared memory by ordinary stores. Needs triton.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import machine

from fp4ref.errors import Fp4refError
from fp4ref.hardware import tmem_access
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.numerics import ScaleFormat, matmul_block_scaled, pack_e2m1
from fp4ref.ptx import Program, UndefinedRegister, launch, parse

pytest.importorskip("triton", reason="needs triton 3.9: pip install triton")
from triton_kernels import compile_scaled_gemm
from wrong_rules import RULES

pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

U8 = NDArray[np.uint8]
FORMATS = {
    "nvfp4": (ScaleFormat.UE4M3, 16, "*fp8e4nv"),
    "mxfp4": (ScaleFormat.UE8M0, 32, "*u8"),
}


def operands(rng: np.random.Generator, rows: int, k: int, name: str) -> tuple[U8, U8]:
    """Codes and scales over the whole range: zero blocks, cancellation, extremes."""
    scale_format, vec_size, _ = FORMATS[name]
    codes = rng.integers(0, 16, (rows, k), np.uint8)
    blocks = codes.reshape(rows, -1, vec_size)
    blocks[rng.random(blocks.shape[:2]) < 0.06] = 8
    if scale_format is ScaleFormat.UE4M3:
        scales = rng.integers(0, 0x7F, (rows, k // vec_size), np.uint8)
        scales |= (rng.random(scales.shape) < 0.1).astype(np.uint8) << 7
    else:
        scales = rng.integers(110, 145, (rows, k // vec_size), np.uint8)
        rare = rng.random(scales.shape) < 0.02
        scales[rare] = rng.choice([0, 1, 253, 254], int(rare.sum()))
    # Neighbouring blocks that cancel in part show where bits are cut off.
    scales[:, 1::2] = np.where(rng.random(scales[:, 1::2].shape) < 0.3,
                               scales[:, ::2], scales[:, 1::2])  # fmt: skip
    scales[rng.integers(rows), rng.integers(k // vec_size)] = scale_format.nan_code
    return codes, scales


def run(
    name: str,
    block: tuple[int, int, int],
    shape: tuple[int, int, int],
    *,
    schedule: str | int = "eager",
    ordering: Ordering = "ptx",
    seed: int = 0,
    trace: bool = False,
    on: Machine | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Bits of D from the kernel, and from the integer model.

    Without a machine `on`, the schedule and the ordering make one.
    """
    scale_format, vec_size, scale_type = FORMATS[name]
    kernel = compile_scaled_gemm(scale_type, vec_size, block)
    m, n, k = shape
    rng = np.random.default_rng([seed, m, n, k])
    (a, sfa), (b, sfb) = (operands(rng, rows, k, name) for rows in (m, n))
    b[: n // 2, : k // 2] = a[: n // 2, : k // 2] if n // 2 <= m else 0
    on = on or machine(schedule, ordering, sms=2, trace=trace)
    upload = on.gmem.upload
    pointers = [upload("A", pack_e2m1(a)), upload("B", pack_e2m1(b))]
    d = on.gmem.allocate("D", 4 * m * n)
    pointers += [d, upload("SFA", sfa), upload("SFB", sfb)]
    program = Program.of(parse(kernel.ptx))
    params = struct.pack("<5Q3i", *pointers, m, n, k).ljust(program.param_nbytes, b"\0")
    grid = (m // block[0], n // block[1], 1)
    threads = (kernel.threads, 1, 1)
    launch(on, program, grid, threads, params, smem_nbytes=kernel.smem_nbytes)
    found = on.gmem.contents(d, 4 * m * n).view(np.uint32).reshape(m, n)
    want = matmul_block_scaled(
        a, b, sfa, sfb, scale_format=scale_format, vec_size=vec_size
    )
    return found, want.view(np.uint32)


@pytest.mark.parametrize("shape", [(128, 128, 256), (256, 128, 512), (128, 256, 768)])
@pytest.mark.parametrize("block", [(128, 128, 256), (128, 64, 128), (128, 256, 128)])
@pytest.mark.parametrize("name", FORMATS)
def test_every_bit_equals_the_model(
    name: str, block: tuple[int, int, int], shape: tuple[int, int, int]
) -> None:
    if shape[1] % block[1]:
        shape = (shape[0], 256, shape[2])
    found, want = run(name, block, shape)
    np.testing.assert_array_equal(found, want)
    values = want.view(np.float32)
    assert np.isnan(values).any()
    assert np.unique(values[np.isfinite(values)]).size > 1000


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2, 3])
@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
@pytest.mark.parametrize("name", FORMATS)
def test_no_schedule_and_no_ordering_changes_a_bit(
    name: str, ordering: Ordering, schedule: str | int
) -> None:
    found, want = run(
        name, (128, 64, 128), (128, 128, 512), schedule=schedule, ordering=ordering
    )
    np.testing.assert_array_equal(found, want)


def test_a_trace_changes_no_bit() -> None:
    """With a trace accesses are judged; Triton leaves out fences of the PTX text."""
    found, want = run(
        "nvfp4", (128, 64, 128), (128, 64, 256), ordering="shipped", trace=True
    )
    np.testing.assert_array_equal(found, want)


# -- a wrong rule of the machine shows ---------------------------------------------


def observed() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Bits of D and of the model from the one run that has to show a wrong rule."""
    return run("nvfp4", (128, 64, 128), (128, 64, 256), schedule="late", seed=3)


def test_without_a_wrong_rule_nothing_shows() -> None:
    found, want = observed()
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("rule", RULES)
def test_one_wrong_rule_shows(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    try:
        found, want = observed()
    except UndefinedRegister:
        raise
    except Fp4refError:
        return
    finally:
        tmem_access._cells.cache_clear()
    assert (found != want).any()
