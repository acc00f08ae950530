"""A in TMEM gives what A in shared memory gives; TF32 takes the upper 19 bits."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import launch, machine
from test_mma_unscaled import (
    A_AT,
    B_AT,
    commit_and_wait,
    descriptor,
    idesc,
    put_memory,
    tile,
    with_tmem,
)

from fp4ref.errors import DescriptorFault, NotModelled, TmemAllocationFault
from fp4ref.hardware import mma_unscaled
from fp4ref.numerics import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat

A_COLUMN, N = 256, 32
KINDS = {"tf32": (ElementFormat.F32, 2), "f16": (ElementFormat.F16, 0),
         "f8f6f4": (ElementFormat.E4M3, 0)}  # fmt: skip


def multiply(kind, *, in_tmem, negate=0, taddr=A_COLUMN, m=128):
    """Bits of D of one MMA, and its operands in codes."""
    element, code = KINDS[kind]
    cells = tile(128, A_AT)
    got = []

    def steps(warp):
        for lane in range(128):
            warp.tmem.poke(lane * 2048 + 4 * A_COLUMN, cells[lane])
        word = idesc(N, a=code, b=code, negate_a=negate, m=m)
        mma_unscaled.mma(
            warp,
            0,
            taddr if in_tmem else descriptor(A_AT),
            descriptor(B_AT),
            word,
            False,
            kind=kind,
            a_in_tmem=in_tmem,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :N].copy())

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    dtype = element.element.code_dtype
    a, b = (np.ascontiguousarray(x).view(dtype) for x in (cells, tile(N, B_AT)))
    return got[0], a ^ dtype.type(negate << element.bits - 1), b, element


@pytest.mark.parametrize("negate", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_in_tmem_is_row_by_row_in_eight_columns(kind, negate):
    found, a, b, element = multiply(kind, in_tmem=True, negate=negate)
    want = matmul_unscaled(a, b, a_format=element, b_format=element)
    np.testing.assert_array_equal(found, want.view(np.uint32))
    same, *_ = multiply(kind, in_tmem=False, negate=negate)
    np.testing.assert_array_equal(found, same)


def test_tf32_ignores_the_low_13_bits():
    found, a, b, element = multiply("tf32", in_tmem=False)
    upper = np.uint32(0xFFFFE000)
    assert (a != a & upper).any()
    rounded = matmul_unscaled(a & upper, b & upper, a_format=element, b_format=element)
    np.testing.assert_array_equal(found, rounded.view(np.uint32))
    finite = np.isfinite(rounded)
    with np.errstate(all="ignore"):
        x, y = ((codes & upper).view(np.float32).astype(float) for codes in (a, b))
        exact, size = x @ y.T, np.abs(x) @ np.abs(y).T
    near = np.abs(rounded - exact) <= size * 2.0**-20 + 2.0**-126
    assert finite.sum() > N
    assert near[finite].all()


def test_where_a_may_not_be():
    with pytest.raises(DescriptorFault, match="A at lane 32"):
        multiply("f16", in_tmem=True, taddr=32 << 16 | A_COLUMN)
    with pytest.raises(TmemAllocationFault):
        multiply("f16", in_tmem=True, taddr=508)
    with pytest.raises(NotModelled, match="A from TMEM with data path layout"):
        multiply("f16", in_tmem=True, m=64)
