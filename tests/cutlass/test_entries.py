"""test_entries: kernel parameters, read from PTX declarations."""

from __future__ import annotations

import pytest

from fp4ref.cutlass.entries import Param, parameter_block, read_entries
from fp4ref.errors import InputError

PTX = """
.visible .entry empty()
{ ret; }
.entry mixed(
\t.param .align 8 .b8 mixed_param_0[24],
\t.param .align 1 .b8 mixed_param_1[1],
\t.param .u64 .ptr .global .align 16 mixed_param_2,
\t.param .f32 mixed_param_3,
\t.param .align 128 .b8 mixed_param_4[256],
\t.param .u8 mixed_param_5
)
.maxntid 256, 1, 1
{ ret; }
"""


def test_each_parameter_is_at_its_alignment():
    assert read_entries(PTX) == {
        "empty": (),
        "mixed": (
            Param(0, 24),
            Param(24, 1),
            Param(32, 8),
            Param(40, 4),
            Param(128, 256),
            Param(384, 1),
        ),
    }


def test_functions_that_are_no_entry_are_left_out():
    assert read_entries(".extern .func __assertfail (.param .b64 x);") == {}


def test_the_block_has_gaps_of_zeros():
    params = read_entries(PTX)["mixed"]
    values = bytes(range(1, 25)) + b"\xff" + b"A" * 8 + b"B" * 4 + b"C" * 256 + b"D"
    block = parameter_block(params, values)
    assert len(block) == 385
    assert block[:25] == values[:25]
    assert block[25:32] == bytes(7)
    assert block[32:44] == b"A" * 8 + b"B" * 4
    assert block[44:128] == bytes(84)
    assert block[128:] == b"C" * 256 + b"D"


def test_no_parameters_are_an_empty_block():
    assert parameter_block((), b"") == b""


def test_values_of_another_length_are_refused():
    with pytest.raises(InputError, match=r"3 bytes for parameters of \[4\] bytes"):
        parameter_block((Param(0, 4),), b"abc")


def test_an_unknown_declaration_is_refused():
    with pytest.raises(InputError, match=r"entry k: parameter '\.param \.texref t'"):
        read_entries(".entry k(.param .texref t) {}")
