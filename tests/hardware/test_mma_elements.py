"""mma_elements: narrow and MN-major operands of the MMAs without scales."""

from __future__ import annotations

import numpy as np
import pytest
from element_tiles import (
    B64,
    B128,
    BITS,
    K_MAJOR,
    MN_MAJOR,
    PAIRS,
    TYPES,
    element_codes,
    element_descriptor,
)
from mma_tiles import A_AT, B_AT, commit_and_wait, put_memory, with_tmem
from on_machine import launch, machine

from fp4ref.errors import (
    DescriptorFault,
    NotModelled,
    OutOfBounds,
    UninitialisedRead,
)
from fp4ref.hardware import mma_unscaled
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.numerics import ElementFormat, matmul_unscaled

SW128 = (B128, 1024, 16)


def idesc(n, names, negate=(0, 0), mn_major=(0, 0)):
    """The 32 bits, from PTX's table."""
    word = 1 << 4 | TYPES[names[0]] << 7 | TYPES[names[1]] << 10 | n >> 3 << 17
    word |= 128 >> 4 << 24 | negate[0] << 13 | negate[1] << 14
    return word | mn_major[0] << 15 | mn_major[1] << 16


def run_mma(names, n=32, layouts=(SW128, SW128), mn_major=(0, 0), negate=(0, 0)):
    """Run one MMA; compare D's bits with the arithmetic of `numerics`."""
    c = np.random.default_rng(4).standard_normal((128, n)).astype(np.float32)
    got = []

    def steps(warp):
        for lane in range(128):
            warp.tmem.poke(lane * 2048, c[lane].view(np.uint8))
        mma_unscaled.mma(
            warp,
            0,
            element_descriptor(A_AT, layouts[0]),
            element_descriptor(B_AT, layouts[1]),
            idesc(n, names, negate, mn_major),
            True,
            kind="f16" if BITS[names[0]] == 16 else "f8f6f4",
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :n].copy())

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    a, b = (
        element_codes(rows, name, at, layout, major) ^ flip << BITS[name] - 1
        for rows, name, at, layout, major, flip in zip(
            (128, n), names, (A_AT, B_AT), layouts, mn_major, negate, strict=True
        )
    )
    formats = [ElementFormat(name) for name in names]
    want = matmul_unscaled(a, b, c, a_format=formats[0], b_format=formats[1])
    np.testing.assert_array_equal(got[0], want.view(np.uint32))


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_every_pair_of_narrow_formats(names):
    run_mma(names)


@pytest.mark.parametrize("layout", K_MAJOR, ids=str)
@pytest.mark.parametrize("names", [("e2m1", "e3m2"), ("e2m3", "e4m3")], ids="-".join)
def test_narrow_elements_in_every_k_major_layout(names, layout):
    run_mma(names, layouts=(layout, layout))


@pytest.mark.parametrize("negate", [(1, 0), (0, 1), (1, 1)])
def test_negate_narrow_elements(negate):
    run_mma(("e2m1", "e3m2"), negate=negate)


@pytest.mark.parametrize("mn_major", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("layout", MN_MAJOR, ids=str)
@pytest.mark.parametrize(
    "names",
    [("f16", "f16"), ("bf16", "bf16"), ("e4m3", "e5m2"), ("e2m1", "e2m3")],
    ids="-".join,
)
def test_mn_major_operands(names, layout, mn_major):
    layouts = [layout if major else SW128 for major in mn_major]
    run_mma(names, layouts=layouts, mn_major=mn_major)


@pytest.mark.parametrize("n", [16, 48, 256])
def test_mn_major_operands_for_several_n(n):
    run_mma(("f16", "f16"), n, ((B128, 4096, 1024),) * 2, (1, 1))


def test_mn_major_bits_of_the_descriptor():
    d = UnscaledInstrDescriptor.decode(
        idesc(64, ("e2m1", "e3m2"), (1, 0), (0, 1)), "f8f6f4"
    )
    assert (d.negate_a, d.negate_b, d.a_mn_major, d.b_mn_major) == (1, 0, 0, 1)
    assert d.encode() == idesc(64, ("e2m1", "e3m2"), (1, 0), (0, 1))


def one_mma(setup=put_memory, n=32, names=("e2m1", "e2m1"), a=A_AT, layout=SW128):
    def steps(warp):
        mma_unscaled.mma(
            warp,
            0,
            element_descriptor(a, layout),
            element_descriptor(B_AT, SW128),
            idesc(n, names, mn_major=(layout is not SW128, 0)),
            False,
            kind="f8f6f4",
        )
        yield from commit_and_wait(warp)

    launch(machine(), with_tmem(steps), setup=setup)


def test_an_mma_reads_no_padding():
    def data_only(cta):
        cta.smem.poke(A_AT, np.zeros(0x10000, np.uint8))
        cta.smem.written[:] &= (np.arange(cta.smem.written.size) & 15) < 8

    one_mma(data_only)
    with pytest.raises(UninitialisedRead):
        one_mma(data_only, names=("e2m3", "e2m1"))


def test_an_mn_major_tile_starts_on_its_pattern_and_stays_in_memory():
    with pytest.raises(NotModelled, match="MN-major B128 tile at"):
        one_mma(a=A_AT + 128, layout=(B128, 4096, 1024))
    with pytest.raises(NotModelled, match="MN-major B64 tile at"):
        one_mma(a=A_AT + 64, layout=(B64, 4096, 1024))
    with pytest.raises(OutOfBounds):
        one_mma(layout=(B128, 0x3FFF0, 1024))


@pytest.mark.parametrize("b", ["e5m2", "e3m2", "e2m1"])
def test_an_mn_major_b_of_bytes_has_sixteen_columns_together(b):
    layouts = SW128, (B128, 4096, 1024)
    run_mma(("e4m3", b), 32, layouts, (0, 1))
    run_mma(("e4m3", b), 24, (SW128, SW128), (0, 0))
    with pytest.raises(DescriptorFault, match="N is 24 with B MN-major"):
        run_mma(("e4m3", b), 24, layouts, (0, 1))
    word = idesc(48, ("e4m3", b), mn_major=(0, 1))
    UnscaledInstrDescriptor.decode(word, "f8f6f4")
    with pytest.raises(DescriptorFault, match="32 to 256 in steps of 32"):
        UnscaledInstrDescriptor.decode(word, "f8f6f4", 2)
    scaled = 1 << 23 | 24 >> 3 << 17 | 1 << 27 | 1 << 16
    with pytest.raises(DescriptorFault, match="N is 24 with B MN-major"):
        Mxf8f6f4InstrDescriptor.decode(scaled)
