"""Triton's block-scaled kernels give the bits of the integer model.

Another author's code, which knows nothing of this machine: accumulator and scales reach
TMEM by ``tcgen05.st``, operands reach shared memory by ordinary stores. Needs triton.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import machine

from fp4ref.errors import Fp4refError
from fp4ref.hardware import mbarrier, smem, tcgen05, tmem_access
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat, matmul_block_scaled, pack_e2m1
from fp4ref.ptx import Program, UndefinedRegister, launch, parse

pytest.importorskip("triton", reason="needs triton 3.9: pip install triton")
from triton_kernels import compile_scaled_gemm

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
    found, want = run("nvfp4", (128, 64, 128), (128, 64, 256), trace=True)
    np.testing.assert_array_equal(found, want)


# -- a wrong rule of the machine shows ---------------------------------------------


def _odd_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give A the upper nibble first; in both operands it would cancel out."""
    right, calls = tcgen05.unpack_e2m1, [0]

    def wrong(packed: U8) -> U8:
        calls[0] += 1
        codes = right(packed)
        if calls[0] % 2:
            swapped = codes.reshape(*codes.shape[:-1], -1, 2)[..., ::-1]
            return swapped.reshape(codes.shape)
        return codes

    monkeypatch.setattr(tcgen05, "unpack_e2m1", wrong)


def _scales(change: Callable[[U8], U8]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = tcgen05.read_scales

        def wrong(*args: Any, **kwargs: Any) -> U8:
            return change(right(*args, **kwargs))

        monkeypatch.setattr(tcgen05, "read_scales", wrong)

    return patch


def _decode(**change: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Read a field of the instruction descriptor wrongly."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        right = tcgen05.InstrDescriptor.decode
        monkeypatch.setattr(
            tcgen05.InstrDescriptor,
            "decode",
            staticmethod(lambda word, *more: replace(right(word, *more), **change)),
        )

    return patch


def _smem(**change: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Read a field of the shared-memory descriptor wrongly."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        right = smem.SmemDescriptor.decode
        monkeypatch.setattr(
            tcgen05.SmemDescriptor,
            "decode",
            staticmethod(lambda word, *more: replace(right(word, *more), **change)),
        )

    return patch


def _fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tcgen05.ld and st name the lane next to the right one."""
    right = tmem_access.fragment

    def wrong(*args: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lane, column = right(*args)
        return lane ^ 1, column

    monkeypatch.setattr(tmem_access, "fragment", wrong)
    tmem_access._cells.cache_clear()


def _quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tmem_access.lane_column
    monkeypatch.setattr(
        tmem_access, "lane_column", lambda t: (right(t)[0] ^ 32, right(t)[1])
    )
    tmem_access._cells.cache_clear()


def _parity(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mbarrier.MbarrierUnit.has_completed
    monkeypatch.setattr(
        mbarrier.MbarrierUnit,
        "has_completed",
        lambda unit, address, parity: not right(unit, address, parity),
    )


def _input_d(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tcgen05.mma_block_scaled
    monkeypatch.setattr(
        tcgen05,
        "mma_block_scaled",
        lambda a, b, sfa, sfb, c, **kw: right(a, b, sfa, sfb, None, **kw),
    )


RULES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "nibble order": _odd_calls,
    "scale column of a row": _scales(lambda s: np.roll(s, 32, axis=0)),
    "scale lane of a row": _scales(lambda s: np.roll(s, 1, axis=0)),
    "scale byte of a block": _scales(lambda s: np.ascontiguousarray(s[:, ::-1])),
    "idesc scale type": _decode(scale_format=ScaleFormat.UE8M0),
    "idesc negate": _decode(negate_a=True),
    "idesc N": _decode(n=32),
    "smem swizzle code": _smem(swizzle=SwizzleMode.NONE),
    "smem stride": _smem(stride_nbytes=1024),
    "lane of tcgen05.ld and st": _fragment,
    "lane quarter of tcgen05.ld and st": _quarter,
    "phase parity": _parity,
    "enable-input-d": _input_d,
}


@pytest.mark.parametrize("rule", RULES)
def test_one_wrong_rule_shows(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    try:
        found, want = run(
            "nvfp4", (128, 64, 128), (128, 64, 256), schedule="late", seed=3
        )
    except UndefinedRegister:
        raise
    except Fp4refError:
        return
    finally:
        tmem_access._cells.cache_clear()
    assert (found != want).any()
