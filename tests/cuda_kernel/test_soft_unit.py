"""The unit of the soft tensor core, its own PTX on the executor, against the model.

Two MMAs of 128 x 8 x 64 with their copies of scales. What is in shared memory is laid
out here, byte by byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fp4ref import ScaleFormat
from fp4ref.cuda_kernel.sources import expand
from fp4ref.device.compile import CompileError, compile_cuda
from fp4ref.device.launch import Call, Pointer
from fp4ref.numerics import matmul_block_scaled

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from probes.kernel.mistakes import MISTAKES  # noqa: E402
from probes.probe import Case, blank, run_on_ptx  # noqa: E402

MAIN = "probes/soft_mma.cu"
BASE, B_AT, SFA_AT, SFB_AT = 0x400, 0x4000, 0x5000, 0x6000
M, N, K = 128, 8, 128
COPY, MULTIPLY = 1, 2
SFA, SFB = 16, 20
OPERATION = np.dtype(
    [(n, "<u4") for n in ("what", "d", "idesc", "sfa", "sfb", "accumulate")]
    + [("a", "<u8"), ("b", "<u8"), ("scales", "<u4"), ("pad", "<u4")]
)
RNG = np.random.default_rng(7)
A, B = (RNG.integers(0, 16, (rows, K), np.uint8) for rows in (M, N))


def descriptor(address: int, swizzle: int = 2, stride: int = 1024) -> int:
    return (BASE + address) >> 4 | stride >> 4 << 32 | 1 << 46 | swizzle << 61


def image(scales_a: NDArray[np.uint8], scales_b: NDArray[np.uint8]) -> NDArray:
    found = np.zeros(0x7000, np.uint8)
    for codes, at in ((A, 0), (B, B_AT)):
        packed = codes[:, ::2] | codes[:, 1::2] << 4
        for (row, byte), value in np.ndenumerate(packed):
            chunk = (byte // 16 ^ row % 8) * 16
            found[at + row * 128 + chunk + byte % 16] = value
    for words, at in ((scales_a, SFA_AT), (scales_b, SFB_AT)):
        for (row, k), value in np.ndenumerate(words):
            within = row % 32 * 16 + row // 32 * 4 + k % 4
            found[at + k // 4 * 512 + within] = value
    return found


def operations(scale_vec: int, sf_id: int) -> NDArray:
    made = np.zeros(6, OPERATION)
    scale_type = int(scale_vec == 2)
    for k in range(2):
        for i, (to, at) in enumerate(((SFA, SFA_AT), (SFB, SFB_AT))):
            copy = made[3 * k + i]
            copy["what"], copy["d"] = COPY, to
            copy["a"] = descriptor(at + 512 * k, 0, 128)
        multiply = made[3 * k + 2]
        multiply["what"], multiply["accumulate"] = MULTIPLY, k
        multiply["idesc"] = (
            sf_id << 4 | 1 << 7 | 1 << 10 | N >> 3 << 17 | scale_type << 23
        ) | (1 << 27 | sf_id << 29)
        multiply["sfa"], multiply["sfb"], multiply["scales"] = SFA, SFB, scale_vec
        multiply["a"], multiply["b"] = descriptor(32 * k), descriptor(B_AT + 32 * k)
    return made


def run(
    scale_vec: int, sf_id: int, changed: dict[str, str] | None = None
) -> tuple[NDArray, NDArray]:
    """Return D as the executor has it, and as the model has it."""
    wide = [RNG.integers(0x30, 0x40, (rows, 8), np.uint8) for rows in (M, N)]
    used = [w.reshape(-1, 2, 4)[:, :, sf_id : sf_id + scale_vec] for w in wide]
    scale_format = ScaleFormat.UE8M0 if scale_vec == 2 else ScaleFormat.UE4M3
    want = matmul_block_scaled(
        *(A, B, *(u.reshape(len(u), -1) for u in used)),
        scale_format=scale_format,
        vec_size=64 // scale_vec,
    )
    try:
        source = expand(changed or {}, ROOT, soft=True, main=MAIN)
        ptx = compile_cuda(source, "sm_90a", name=MAIN).ptx
    except CompileError as error:
        pytest.skip(str(error))
    call = Call(
        "soft_mma",
        {
            "image": image(*wide),
            "operations": operations(scale_vec, sf_id).view(np.uint8),
            "out": blank(4 * M * N),
        },
        (
            *(Pointer("image"), np.uint32(0x7000 // 4)),
            *(Pointer("operations"), np.uint32(6)),
            *(Pointer("out"), np.uint32(N)),
        ),
        smem_nbytes=0x7000,
    )
    out = run_on_ptx(ptx, Case("soft_mma", call, ("out",)))["out"]
    return out.view(np.float32).reshape(N, M).T, want


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("scale_vec", "sf_id"), [(4, 0), (2, 0), (2, 2)])
def test_the_unit_on_the_executor_has_the_bits_of_the_model(scale_vec, sf_id) -> None:
    got, want = run(scale_vec, sf_id)
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_a_unit_that_decodes_wrongly_is_caught(mistake) -> None:
    got, want = run(4, 0, mistake.changed())
    assert (got.view(np.uint32) != want.view(np.uint32)).any()
