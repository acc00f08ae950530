"""tensor_map: encode rules, the maps of CUTLASS's kernel, and the 128 bytes."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fp4ref.errors import TensorMapError
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

NONE, B32, B64, B128, _ = SwizzleMode
U4 = DataType.U4_ALIGN8B
ADDRESS = 0x7F00_0000_0000

# A of a 512 x 768 x 1024 problem, as CUTLASS encodes it.
A = TensorMap(U4, ADDRESS, (1024, 512, 1), (512, 0), (256, 128, 1), swizzle=B128)
PADDED = TensorMap(
    DataType.U4_ALIGN16B, ADDRESS, (256, 64), (128,), (128, 8), swizzle=B128
)
SIX_BITS = TensorMap(
    DataType.U6_ALIGN16B, ADDRESS, (384, 64, 1), (288, 18432), (128, 8, 1)
)
FLOATS = TensorMap(DataType.FLOAT32, ADDRESS, (64, 8), (256,), (16, 8))


@pytest.mark.parametrize(
    ("data_type", "dims", "strides", "box", "swizzle", "nbytes"),
    [
        (13, (1024, 512, 1), (512, 0), (256, 128, 1), B128, 16384),
        (13, (1024, 768, 1), (512, 0), (256, 128, 1), B128, 16384),
        (1, (256, 16, 4, 1), (512, 8192, 32768), (256, 4, 1, 1), NONE, 2048),
        (1, (256, 16, 6, 1), (512, 8192, 49152), (256, 4, 1, 1), NONE, 2048),
        (9, (768, 512, 1), (1536, 0), (32, 128, 1), B64, 8192),
    ],
    ids=["A", "B", "SFA", "SFB", "D"],
)
def test_maps_of_cutlass(data_type, dims, strides, box, swizzle, nbytes):
    m = TensorMap(DataType(data_type), ADDRESS, dims, strides, box, swizzle=swizzle)
    assert m.box_nbytes == nbytes
    assert m.element_strides == (1,) * len(dims)
    assert TensorMap.from_bytes(m.to_bytes()) == m


@pytest.mark.parametrize(
    ("base", "good", "bad", "rule"),
    [
        (A, {"address": ADDRESS + 16}, {"address": ADDRESS + 8}, "multiple of 16"),
        (
            A,
            {"address": (1 << 64) - 16},
            {"address": 1 << 64},
            "global address",
        ),
        (
            PADDED,
            {"address": ADDRESS + 32},
            {"address": ADDRESS + 16},
            "multiple of 32",
        ),
        (A, {"strides": (528, 0)}, {"strides": (520, 0)}, "stride is a multiple of 16"),
        (A, {"strides": ((1 << 40) - 16, 0)}, {"strides": (1 << 40, 0)}, "below 2^40"),
        (A, {}, {"strides": (-16, 0)}, "stride"),
        (PADDED, {"strides": (160,)}, {"strides": (144,)}, "multiple of 32"),
        (A, {"box": (256, 256, 1)}, {"box": (256, 257, 1)}, "1 to 256 elements"),
        (A, {"box": (32, 1, 1)}, {"box": (0, 1, 1)}, "1 to 256 elements"),
        (
            replace(A, swizzle=NONE),
            {"box": (256, 1, 1)},
            {"box": (512, 1, 1)},
            "1 to 256 elements",
        ),
        # 33 elements of 4 bits are 16.5 bytes.
        (A, {"box": (64, 1, 1)}, {"box": (33, 1, 1)}, "multiple of 16 bytes, not 16.5"),
        (A, {"box": (32, 1, 1)}, {"box": (48, 1, 1)}, "multiple of 16 bytes, not 24"),
        (FLOATS, {"box": (4, 1)}, {"box": (6, 1)}, "multiple of 16 bytes, not 24"),
        (
            replace(FLOATS, swizzle=B64),
            {"swizzle": B64},
            {"swizzle": B32},
            "at most the swizzle span of 32 bytes, not 64",
        ),
        (
            replace(FLOATS, box=(32, 1), swizzle=B128),
            {},
            {"box": (36, 1)},
            "swizzle span of 128",
        ),
        (A, {"dims": (1 << 32, 1, 1)}, {"dims": ((1 << 32) + 2, 1, 1)}, "2^32"),
        (A, {"dims": (2, 1, 1)}, {"dims": (0, 1, 1)}, "every dimension"),
        (A, {"dims": (1022, 512, 1)}, {"dims": (1023, 512, 1)}, "is even"),
        (PADDED, {"dims": (384, 64)}, {"dims": (320, 64)}, "multiple of 128"),
        (PADDED, {}, {"box": (64, 8)}, "box row of 128 elements"),
        (PADDED, {"swizzle": B128}, {"swizzle": B64}, "swizzle span of 64 bytes"),
        (SIX_BITS, {}, {"interleave": 1}, "U6_ALIGN16B has no interleaved layout"),
        (FLOATS, {"oob_nan": True}, {"data_type": DataType.INT32}, None),
        (
            FLOATS,
            {"oob_nan": True},
            {"data_type": DataType.INT32, "oob_nan": True},
            "NaN fill needs a floating-point type, not INT32",
        ),
        (A, {}, {"oob_nan": True}, "NaN fill needs a floating-point type"),
        (PADDED, {}, {"oob_nan": True}, "NaN fill needs a floating-point type"),
        (A, {"element_strides": (1, 8, 1)}, {"element_strides": (1, 9, 1)}, "1 to 8"),
        (A, {"l2_promotion": 3}, {"l2_promotion": 4}, "L2 promotion"),
        (A, {"interleave": 1}, {"interleave": 3}, "interleave is 0, 1 or 2"),
        (FLOATS, {}, {"interleave": 1}, "rank 3 or more"),
        (A, {"box": (256, 256, 7)}, {"box": (256, 256, 8)}, "at most 233472 bytes"),
        (
            A,
            {"interleave": 2, "swizzle": B32},
            {"interleave": 2, "swizzle": B64},
            None,
        ),
    ],
)
def test_encode_rules(base, good, bad, rule):
    replace(base, **good)
    if rule is None:
        replace(base, **bad)
        return
    with pytest.raises(TensorMapError) as caught:
        replace(base, **bad)
    assert "cuTensorMapEncodeTiled" in str(caught.value)
    assert rule in str(caught.value)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(rank):
    m = TensorMap(
        DataType.UINT8,
        ADDRESS,
        (32,) * rank,
        (32,) * (rank - 1),
        (16, *(8,) * (rank - 1)),
    )
    assert (m.rank, m.box_nbytes) == (rank, 16 * 8 ** (rank - 1))


@pytest.mark.parametrize(
    ("dims", "strides", "box"),
    [
        ((), (), ()),
        ((32,) * 6, (32,) * 5, (16,) * 6),
        ((32, 32), (), (16, 16)),
        ((32, 32), (32, 32), (16, 16)),
        ((32, 32), (32,), (16,)),
    ],
)
def test_wrong_numbers_of_extents(dims, strides, box):
    with pytest.raises(TensorMapError, match="rank"):
        TensorMap(DataType.UINT8, ADDRESS, dims, strides, box)


def test_b24_fp4_counts_elements_and_strides_count_bytes():
    packed = TensorMap(U4, ADDRESS, (512, 256), (256,), (256, 128), swizzle=B128)
    as_bytes = TensorMap(
        DataType.UINT8, ADDRESS, (256, 256), (256,), (128, 128), swizzle=B128
    )
    assert packed.box_nbytes == as_bytes.box_nbytes == 16384
    padded = replace(packed, data_type=DataType.U4_ALIGN16B, box=(128, 128))
    # Padding is appended in shared memory; what counts is what is copied.
    assert padded.box_nbytes == 128 * 64
    assert padded.box_smem_nbytes == 128 * 128


@pytest.mark.parametrize(("k", "legal"), [(96, True), (80, False), (464, False)])
def test_b25_k_is_a_multiple_of_32(k, legal):
    def encode():
        return TensorMap(U4, ADDRESS, (k, 256), (k // 2,), (256, 128), swizzle=B128)

    if legal:
        encode()
    else:
        with pytest.raises(TensorMapError, match="needs K a multiple of 32"):
            encode()


def test_b26_the_object_has_128_bytes_and_one_stride_less_than_dimensions():
    assert len(A.to_bytes()) == 128
    assert len(A.strides) == A.rank - 1


def words_of(m):
    return dict(enumerate(struct.unpack("<32I", m.to_bytes())))


def test_golden_words_of_a_float16_map():
    """A map dumped from driver 580.65: float16 16x16, stride 32, box 16x8."""
    m = TensorMap(DataType.FLOAT16, ADDRESS, (16, 16), (32,), (16, 8), l2_promotion=0)
    plain = {2: 0x310, 3: 2, 8: 15, 9: 15, 13: 0x0F000000, 14: 7, 16: 0x100, 18: 0x10}
    address = {0: ADDRESS & 0xFFFFFFFF, 1: ADDRESS >> 32}
    empty = dict.fromkeys(range(32), 0)
    assert words_of(m) == empty | address | plain
    swizzled = {2: 0x6310, 18: 0x400}
    assert words_of(replace(m, swizzle=B128)) == empty | address | plain | swizzled


def test_golden_words_measured_on_an_h200():
    """256x128 UINT8, box 128x128, 128B swizzle."""
    m = TensorMap(
        DataType.UINT8,
        ADDRESS,
        (256, 128),
        (256,),
        (128, 128),
        swizzle=B128,
        l2_promotion=0,
    )
    want = {2: 0x6010, 8: 0xFF, 9: 0x7F, 13: 0x7F000000, 14: 0x7F, 16: 0x4000}
    want |= {18: 0x400, 3: 256 >> 4, 0: ADDRESS & 0xFFFFFFFF, 1: ADDRESS >> 32}
    assert words_of(m) == dict.fromkeys(range(32), 0) | want


def test_align8b_of_rank_2_starts_from_0x590():
    m = TensorMap(U4, ADDRESS, (32, 2), (16,), (32, 2), l2_promotion=0)
    assert words_of(m)[2] == 0x590


BITS = dict(
    zip(DataType, (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4), strict=False)
)


@st.composite
def maps(draw):
    data_type = draw(st.sampled_from(list(BITS)))
    swizzle = draw(st.sampled_from(SwizzleMode))
    rank = draw(st.integers(1, 5))
    unit = 128 // BITS[data_type]
    most = 256 // unit if swizzle is NONE else swizzle.span // 16
    first = unit * draw(st.integers(1, max(1, min(most, 256 // unit))))
    rest = draw(st.permutations([1, 2, 3, draw(st.integers(1, 129))]))[: rank - 1]
    dims = draw(st.tuples(*[st.integers(1, 1 << 31)] * rank))
    # A box larger than shared memory is refused; element strides make it no larger.
    assume(first * math.prod(rest) * BITS[data_type] // 8 <= 233_472)
    return TensorMap(
        data_type,
        16 * draw(st.integers(0, (1 << 60) - 1)),
        (2 * dims[0], *dims[1:]),
        tuple(
            16 * s
            for s in draw(st.tuples(*[st.integers(0, (1 << 36) - 1)] * (rank - 1)))
        ),
        (first, *rest),
        draw(st.tuples(*[st.integers(1, 8)] * rank)),
        0,
        swizzle,
        draw(st.integers(0, 3)),
        data_type.is_float and draw(st.booleans()),
    )


def test_an_atom_of_32_bytes_is_a_field_beside_the_swizzle():
    """The field is that of ``tensormap.replace``'s swizzle_atomicity, value 1."""
    pairs = replace(FLOATS, swizzle=SwizzleMode.B128_ATOM_32B)
    words, chunks = (
        struct.unpack("<32I", m.to_bytes())
        for m in (pairs, replace(FLOATS, swizzle=B128))
    )
    assert words[2] == chunks[2] | 1 << 19
    assert words[3:] == chunks[3:]
    assert TensorMap.from_bytes(pairs.to_bytes()) == pairs
    without = bytearray(pairs.to_bytes())
    without[9] &= ~0x60  # the swizzle, in bits 13 and 14 of word 2
    with pytest.raises(TensorMapError, match="a swizzle atom other than 16 bytes"):
        TensorMap.from_bytes(bytes(without))


@given(maps())
def test_bytes_round_trip(m):
    assert TensorMap.from_bytes(m.to_bytes()) == m


@pytest.mark.parametrize(
    ("word", "bits"),
    [(2, 1), (2, 3 << 19), (2, 1 << 20), (2, 14 << 7), (2, 7 << 4)],
    ids=["im2col", "atom", "atom", "element code", "rank"],
)
def test_foreign_bytes_are_refused(word, bits):
    data = bytearray(A.to_bytes())
    data[4 * word : 4 * word + 4] = (
        int.from_bytes(data[4 * word : 4 * word + 4], "little") | bits
    ).to_bytes(4, "little")
    shown = int.from_bytes(data[8:12], "little")
    with pytest.raises(TensorMapError, match=f"word 2 is {shown:#010x}"):
        TensorMap.from_bytes(bytes(data))


def test_wrong_length():
    with pytest.raises(TensorMapError, match="128 bytes, not 64"):
        TensorMap.from_bytes(bytes(64))
