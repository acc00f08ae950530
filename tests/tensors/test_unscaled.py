"""Arrays of an operand type are taken as they are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref.errors import InputError
from fp4ref.numerics.kinds import OPERAND_FORMATS, kind_of
from fp4ref.tensors.unscaled import Unscaled, require_operand

TYPES = {
    "f16": (np.float16, 2.0),
    "bf16": (ml_dtypes.bfloat16, 2.0),
    "e4m3": (ml_dtypes.float8_e4m3fn, 1.0),
    "e5m2": (ml_dtypes.float8_e5m2, 1.0),
    "e2m3": (ml_dtypes.float6_e2m3fn, 0.75),
    "e3m2": (ml_dtypes.float6_e3m2fn, 0.75),
    "e2m1": (ml_dtypes.float4_e2m1fn, 0.5),
}
"""Type and bytes of an element in global memory."""


@pytest.mark.parametrize("format", TYPES)
def test_an_array_says_its_format(format: str) -> None:
    dtype, nbytes = TYPES[format]
    x = np.arange(-8, 8, dtype=np.float32).reshape(1, 16) / 4
    q = require_operand(x.astype(dtype), "a")
    assert isinstance(q, Unscaled)
    assert (q.format, q.shape, q.packed().shape) == (format, (1, 16), (1, 16 * nbytes))
    assert_bits_equal(q.dequantize(), x.astype(dtype).astype(np.float32))


def test_six_bits_lie_without_gaps_lowest_first() -> None:
    codes = np.array([[1, 0, 0, 0x20, 0x3F, 0, 0, 0]], np.uint8)
    q = require_operand(codes.view(ml_dtypes.float6_e3m2fn), "a")
    assert q.packed().tolist() == [[0x01, 0x00, 0x80, 0x3F, 0x00, 0x00]]


def test_bits_above_an_element_are_no_part_of_it() -> None:
    q = require_operand(np.array([[0xF7]], np.uint8).view(TYPES["e2m1"][0]), "a")
    assert q.codes.tolist() == [[7]]


@pytest.mark.parametrize("format", TYPES)
def test_matmul_pads_k_to_whole_instructions(format: str) -> None:
    ones = np.ones((2, 24), TYPES[format][0])
    assert fp4ref.matmul(ones, ones).tolist() == [[24.0, 24.0]] * 2


def test_which_formats_go_together() -> None:
    of_32 = {"mxfp4", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2"}
    narrow = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}
    for a in OPERAND_FORMATS:
        for b in OPERAND_FORMATS:
            kind = kind_of(a, b)
            if a == b and a in ("nvfp4", "mxfp4"):
                wanted = "mxf4nvf4"
            elif {a, b} <= of_32:
                wanted = "mxf8f6f4"
            elif {a, b} <= narrow:
                wanted = "f8f6f4"
            else:
                wanted = "f16" if a == b in ("f16", "bf16") else None
            assert (kind.name if kind else None) == wanted


def test_a_format_with_scales_does_not_go_with_one_without() -> None:
    x = np.zeros((2, 32), np.float32)
    with pytest.raises(InputError, match="A is e4m3 without scales, B is mxfp8_e4m3"):
        fp4ref.matmul(x.astype(TYPES["e4m3"][0]), fp4ref.quantize(x, "mxfp8_e4m3"))


@pytest.mark.parametrize("value", [np.zeros((2, 2)), [[1.0]], None])
def test_other_arrays_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"need a BlockScaled. Make one with"):
        require_operand(value, "a")
