"""mma_mxf8f6f4: its descriptor, its scales, and its MMAs on a machine."""

from __future__ import annotations

import numpy as np
import pytest
from element_tiles import (
    B64,
    B128,
    BITS,
    NONE,
    PAIRS,
    TYPES,
    element_codes,
    element_descriptor,
)
from mma_tiles import (
    A_AT,
    B_AT,
    SFA,
    SFB,
    commit_and_wait,
    put_memory,
    put_scales,
    with_tmem,
)
from on_machine import launch, machine

from fp4ref.errors import DescriptorFault, NotModelled, ScaleFactorFault
from fp4ref.hardware import mma_mxf8f6f4
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.numerics import ElementFormat, matmul_mxf8f6f4

SW128 = (B128, 1024, 16)


def idesc(
    n=32, names=("e4m3", "e4m3"), ids=(0, 0), negate=(0, 0), mn_major=(0, 0), m=128
):
    """The 32 bits, from PTX's table."""
    word = ids[1] << 4 | TYPES[names[0]] << 7 | TYPES[names[1]] << 10
    word |= negate[0] << 13 | negate[1] << 14 | mn_major[0] << 15 | mn_major[1] << 16
    return word | n >> 3 << 17 | 1 << 23 | m >> 7 << 27 | ids[0] << 29


def scales(rows, seed):
    """UE8M0 codes (rows, 1), a NaN among them."""
    codes = np.random.default_rng(seed).integers(110, 144, (rows, 1))
    codes[5] = 255
    return codes.astype(np.uint8)


def run_mma(
    names,
    *,
    n=32,
    ids=(0, 0),
    layouts=(SW128, SW128),
    mn_major=(0, 0),
    negate=(0, 0),
    scale_vec="1X",
):
    """Run one MMA; compare D's bits with the arithmetic of `numerics`."""
    c = np.random.default_rng(4).standard_normal((128, n)).astype(np.float32)
    sfa, sfb = scales(128, 1), scales(n, 2)
    got = []

    def steps(warp):
        for lane in range(128):
            warp.tmem.poke(lane * 2048, c[lane].view(np.uint8))
        put_scales(warp, SFA, sfa, ids[0], 3)
        put_scales(warp, SFB, sfb, ids[1], 4)
        mma_mxf8f6f4.mma(
            warp,
            0,
            element_descriptor(A_AT, layouts[0]),
            element_descriptor(B_AT, layouts[1]),
            idesc(n, names, ids, negate, mn_major),
            SFA | ids[0] << 30,
            SFB | ids[1] << 30,
            True,
            scale_vec=scale_vec,
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
    formats = {"a_format": ElementFormat(names[0]), "b_format": ElementFormat(names[1])}
    want = matmul_mxf8f6f4(a, b, sfa, sfb, c, **formats)
    np.testing.assert_array_equal(got[0], want.view(np.uint32))


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_every_pair_of_formats(names):
    run_mma(names)


@pytest.mark.parametrize("b_id", range(4))
@pytest.mark.parametrize("a_id", range(4))
def test_the_scale_factor_id_names_the_byte_of_a_word(a_id, b_id):
    run_mma(("e2m1", "e4m3"), ids=(a_id, b_id))


@pytest.mark.parametrize("n", [8, 16, 40, 128, 256])
def test_every_kind_of_n(n):
    run_mma(("e3m2", "e2m1"), n=n)


@pytest.mark.parametrize("scale_vec", ["1X", "block32", ""])
def test_the_names_of_one_scale_for_32_elements(scale_vec):
    run_mma(("e5m2", "e4m3"), scale_vec=scale_vec)


@pytest.mark.parametrize("negate", [(1, 0), (0, 1), (1, 1)])
def test_negate(negate):
    run_mma(("e2m1", "e3m2"), negate=negate)


@pytest.mark.parametrize("mn_major", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("names", [("e4m3", "e5m2"), ("e2m1", "e2m3")], ids="-".join)
def test_mn_major_operands(names, mn_major):
    for other in ((B128, 4096, 1024), (B64, 512, 2048), (NONE, 1024, 128)):
        layouts = [other if major else SW128 for major in mn_major]
        run_mma(names, layouts=layouts, mn_major=mn_major)


# -- refusals


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_descriptor_round_trip(names):
    for ids, negate, mn_major in (((3, 1), (1, 0), (0, 1)), ((0, 2), (0, 1), (1, 0))):
        word = idesc(48, names, ids, negate, mn_major)
        formats = (ElementFormat(name) for name in names)
        flags = (bool(flag) for flag in (*negate, *mn_major))
        wanted = Mxf8f6f4InstrDescriptor(128, 48, *formats, *ids, *flags)
        assert Mxf8f6f4InstrDescriptor.decode(word) == wanted
        assert wanted.encode() == word


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        (idesc() | 2 << 7, DescriptorFault, "element types 2 and 0"),
        (idesc() | 7 << 10, DescriptorFault, "element types 0 and 7"),
        (idesc() & ~(1 << 23), DescriptorFault, "scale type is UE4M3"),
        (idesc() | 1 << 2, NotModelled, "sparsity"),
        (idesc(m=256), DescriptorFault, "M is 256"),
        (idesc(m=0), DescriptorFault, "M is 0"),
        (idesc(n=0), DescriptorFault, "N is 0"),
        (idesc(n=264), DescriptorFault, "N is 264"),
        *(
            (idesc() | 1 << bit, DescriptorFault, "reserved bits")
            for bit in (0, 1, 3, 6, 24, 25, 26, 31)
        ),
    ],
)
def test_refused_descriptors(word, error, says):
    with pytest.raises(error, match=says):
        Mxf8f6f4InstrDescriptor.decode(word)


def one_mma(sfa=SFA, sfb=SFB, scale_vec="1X", put=True):
    def steps(warp):
        if put:
            put_scales(warp, SFA, scales(128, 1))
            put_scales(warp, SFB, scales(32, 1))
        warp.tmem.poke(100 * 2048 + 4 * SFB, np.array([1, 2, 3, 4], np.uint8))
        tiles = (element_descriptor(at, SW128) for at in (A_AT, B_AT))
        mma_mxf8f6f4.mma(warp, 0, *tiles, idesc(), sfa, sfb, False, scale_vec=scale_vec)
        yield from commit_and_wait(warp)

    launch(machine(), with_tmem(steps), setup=put_memory)


def test_refused_scales():
    with pytest.raises(DescriptorFault, match="scale_vec 2X"):
        one_mma(scale_vec="2X")
    with pytest.raises(ScaleFactorFault, match="SFA lies in the columns"):
        one_mma(sfa=16)
    with pytest.raises(DescriptorFault, match="SFB at lane 32"):
        one_mma(sfb=32 << 16 | SFB)
    with pytest.raises(ScaleFactorFault, match="in lane 100"):
        one_mma()
