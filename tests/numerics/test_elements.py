"""The table of formats against ml_dtypes, and what follows from one more entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import exact_unscaled
import ml_dtypes
import numpy as np
import pytest
from assert_bits import assert_bits_equal

from fp4ref.errors import InputError
from fp4ref.hardware.instr_descriptor import InstrDescriptor, UnscaledInstrDescriptor
from fp4ref.hardware.tensor_map import DataType
from fp4ref.numerics import (
    ElementFormat,
    ScaleFormat,
    dequantize_blocks,
    elements,
    matmul_unscaled,
    quantize_blocks,
)
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import BLOCKS, ELEMENTS, element, legal_scale_formats

NAN = 0x7FFFFFFF
ML_DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue4m3": ml_dtypes.float8_e4m3fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
"""The oracle of every format with codes of 16 bits or less."""

NEAREST = ["f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]


def all_codes(of: Element) -> np.ndarray:
    return np.arange(1 << of.bits).astype(of.code_dtype)


def oracle_values(name: str, codes: np.ndarray) -> np.ndarray:
    """Values by ml_dtypes; the sign bit of a UE4M3 code is not looked at."""
    codes = codes & 0x7F if name == "ue4m3" else codes
    with np.errstate(invalid="ignore"):
        return codes.astype(codes.dtype).view(ML_DTYPES[name]).astype(np.float32)


# --- the table against ml_dtypes ------------------------------------------------


def test_ml_dtypes_judges_every_format_but_float32():
    assert ML_DTYPES.keys() == ELEMENTS.keys() - {"f32"}


@pytest.mark.parametrize("name", ML_DTYPES)
def test_every_code_has_the_value_that_ml_dtypes_gives_it(name):
    codes = all_codes(element(name))
    want, got = oracle_values(name, codes), element(name).decode(codes)
    nan = np.isnan(want)
    assert_bits_equal(got[~nan], want[~nan])
    if name == "bf16":  # the upper half of a float32, NaN or not
        np.testing.assert_array_equal(got.view(np.uint32) >> 16, codes)
    else:
        assert (got[nan].view(np.uint32) == NAN).all()


@pytest.mark.parametrize("name", ML_DTYPES)
def test_the_fields_alone_give_the_same_values(name):
    codes = all_codes(element(name))
    want, got = oracle_values(name, codes), element(name).values(codes)
    nan = np.isnan(want)
    assert_bits_equal(got[~nan], want[~nan])
    assert (got[nan].view(np.uint32) == NAN).all()


def test_float32_is_its_own_code():
    bits = np.random.default_rng(1).integers(0, 1 << 32, 10_000, np.uint32)
    x = bits.view(np.float32)
    np.testing.assert_array_equal(element("f32").encode(x), bits)
    assert_bits_equal(element("f32").decode(bits), x)
    finite = np.isfinite(x)
    assert_bits_equal(element("f32").values(bits)[finite], x[finite])


@pytest.mark.parametrize("name", ELEMENTS)
def test_limits_are_those_of_ml_dtypes(name):
    dtype = ML_DTYPES.get(name, np.float32)
    assert element(name).largest == float(ml_dtypes.finfo(dtype).max)
    assert element(name).dtype == np.dtype(dtype).name


def ties_and_neighbours(name: str) -> np.ndarray:
    """All values, all midpoints, the float32 on either side of them, and noise."""
    dtype = ML_DTYPES[name]
    values = np.unique(oracle_values(name, all_codes(element(name))))
    values = values[np.isfinite(values)].astype(np.float64)
    ties = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    x = np.concatenate([values.astype(np.float32), ties])
    beside = [np.nextafter(x, np.float32(d)) for d in (-np.inf, np.inf)]
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    noise = np.random.default_rng(2).uniform(-largest, largest, 20_000)
    x = np.concatenate([x, *beside, noise.astype(np.float32)])
    return x[np.abs(x) <= largest]


@pytest.mark.parametrize("name", NEAREST)
def test_encoding_rounds_as_ml_dtypes_does(name):
    x = ties_and_neighbours(name)
    want = x.astype(ML_DTYPES[name]).view(element(name).code_dtype)
    got = element(name).encode(x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", NEAREST)
def test_what_is_too_large_saturates_in_eight_bits_and_becomes_inf_in_sixteen(name):
    of = element(name)
    x = np.array([np.inf, -np.inf, np.nan, -np.nan, 3.4e38], np.float32)
    decoded = of.decode(of.encode(x))
    top = of.largest if of.bits <= 8 else np.inf
    assert decoded[:2].tolist() == [top, -top]
    if of.nan_code is None:
        assert decoded[2:4].tolist() == [top, top]
    else:
        assert of.encode(x)[2:4].tolist() == [of.nan_code] * 2
        assert np.isnan(decoded[2:4]).all()
    assert decoded[4] == top


@pytest.mark.parametrize("name", ELEMENTS)
def test_encoding_undoes_decoding(name):
    of = element(name)
    codes = all_codes(of) if of.bits <= 16 else np.arange(9, dtype=np.uint32) << 28
    if of.scale_code is not None:
        codes = codes[codes <= of.nan_code]
    values = of.decode(codes)
    kept = np.isfinite(values) if of.bits <= 8 else ~np.isnan(values)
    np.testing.assert_array_equal(of.encode(values[kept]), codes[kept])


# --- the table in itself --------------------------------------------------------


def test_the_operand_formats_are_those_of_the_exact_model():
    fields = {
        each.name: (each.exponent_bits, each.mantissa_bits, inf, nan is not None)
        for each in ELEMENTS.values()
        if each.idesc
        for inf, nan in [(exact_unscaled.FORMATS[each.name][2], each.nan_code)]
    }
    assert fields == exact_unscaled.FORMATS


def test_the_enumerations_name_the_table():
    operands = {each.name for each in ELEMENTS.values() if each.idesc}
    scales = {n for n, each in ELEMENTS.items() if each.scale_code is not None}
    assert {each.value for each in ElementFormat} == operands
    assert {each.value for each in ScaleFormat} == scales
    assert all(each.name == each.value.upper() for each in ElementFormat)
    assert all(name == each.name for name, each in ELEMENTS.items())
    with pytest.raises(ValueError, match="ue4m3"):
        ElementFormat("ue4m3")


@pytest.mark.parametrize("kind", ["f16", "f8f6f4", "mxf4nvf4"])
def test_a_code_of_a_kind_stands_for_one_format(kind):
    codes = [each.idesc[kind] for each in ELEMENTS.values() if kind in each.idesc]
    assert len(set(codes)) == len(codes) > 0


def test_tma_copies_each_format_in_its_width():
    copied = {name: DataType[each.tma] for name, each in ELEMENTS.items() if each.tma}
    assert {n: t.bits for n, t in copied.items()} == {
        name: ELEMENTS[name].bits for name in copied
    }
    assert ELEMENTS.keys() - copied.keys() == {"ue4m3", "ue8m0"}


@pytest.mark.parametrize("scale_format", ScaleFormat)
def test_a_block_up_to_the_vanishing_threshold_decodes_to_zero(scale_format):
    largest = np.float32(6 * scale_format.element.vanishing)
    for amax, vanishes in ((largest, True), (largest * np.float32(1.001), False)):
        row = np.full((1, 16), amax, np.float32)
        codes, scales = quantize_blocks(row, norm=1.0, scale_format=scale_format)
        values = dequantize_blocks(codes, scales, scale_format=scale_format)
        assert (values == 0).all() == vanishes


def test_blocks_and_their_scales():
    assert {b.name: b.vec_size for b in BLOCKS.values()} == {"nvfp4": 16, "mxfp4": 32}
    assert element("nvfp4") is element("mxfp4") is element("e2m1")
    assert legal_scale_formats(16) == (ScaleFormat.UE4M3, ScaleFormat.UE8M0)
    assert legal_scale_formats(32) == (ScaleFormat.UE8M0,)
    assert legal_scale_formats(64) == ()


def test_host_types():
    """NumPy's own where it has one: what C and D are in the host's memory."""
    own = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "e2m1": np.uint8}
    assert {n: element(n).host_dtype for n in own} == {
        n: np.dtype(t) for n, t in own.items()
    }


def test_refusals():
    with pytest.raises(InputError, match="format: 'e3m4'; take 'f32', 'f16'"):
        element("e3m4")
    with pytest.raises(InputError, match="encode e5m2 x: dtype float64"):
        element("e5m2").encode(np.zeros(2))
    with pytest.raises(InputError, match="decode e2m3 codes: code 0x40"):
        element("e2m3").decode(np.array([0x40], np.uint8))
    with pytest.raises(InputError, match="dtype uint8; codes are uint16"):
        element("bf16").decode(np.zeros(2, np.uint8))
    with pytest.raises(InputError, match="dtype float16; codes are uint16"):
        element("f16").decode(np.zeros(2, np.float16))


# --- one more entry ---------------------------------------------------------------

E3M4 = Element(
    name="e3m4",
    bits=8,
    exponent_bits=3,
    mantissa_bits=4,
    top="Inf and NaN",
    dtype="float8_e3m4",
    tma="UINT8",
    idesc={"f8f6f4": 2},
)
"""No operand of an MMA, but ml_dtypes knows it."""

E3M0 = replace(
    E3M4,
    name="e3m0",
    bits=4,
    mantissa_bits=0,
    top="numbers",
    dtype=None,
    tma="U4_ALIGN8B",
    idesc={"f8f6f4": 6},
)


@pytest.fixture(autouse=True)
def _forget_made_up_members() -> Iterator[None]:
    known = dict(ElementFormat._value2member_map_)
    yield
    ElementFormat._value2member_map_.clear()
    ElementFormat._value2member_map_.update(known)


@pytest.fixture(params=[E3M4, E3M0], ids=lambda each: each.name)
def made_up(request, monkeypatch) -> Element:
    """A format that is one entry of the table and nothing else."""
    monkeypatch.setitem(elements._TABLE, request.param.name, request.param)
    return element(request.param.name)


def made_up_values(of: Element) -> np.ndarray:
    if of is E3M0:
        positive = np.array([0, 0.25, 0.5, 1, 2, 4, 8, 16], np.float32)
        return np.concatenate([positive, -positive])
    return all_codes(of).view(ml_dtypes.float8_e3m4).astype(np.float32)


def test_its_codes_have_values(made_up):
    want, got = made_up_values(made_up), made_up.decode(all_codes(made_up))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert_bits_equal(got[~np.isnan(got)], want[~np.isnan(want)])


def test_it_rounds_to_nearest_even_and_saturates(made_up):
    values = made_up_values(made_up)[: 1 << made_up.bits - 1]
    values = values[np.isfinite(values)]
    ties = (values[:-1] + values[1:]) / 2
    lower = np.arange(len(ties))
    np.testing.assert_array_equal(made_up.encode(ties), lower + lower % 2)
    below, above = (np.nextafter(ties, np.float32(d)) for d in (-np.inf, np.inf))
    np.testing.assert_array_equal(made_up.encode(below), lower)
    np.testing.assert_array_equal(made_up.encode(-above), lower + 1 | made_up.sign)
    assert made_up.decode(made_up.encode(np.float32([1e9]))) == values.max()
    assert made_up.largest == values.max()


def test_an_mma_multiplies_it(made_up):
    format = ElementFormat(made_up.name)
    assert format is ElementFormat(made_up.name)
    assert (format.name, format.bits) == (made_up.name.upper(), made_up.bits)
    values = made_up_values(made_up)
    codes = np.flatnonzero(np.isfinite(values) & (np.abs(values) <= 2))
    a = np.random.default_rng(3).choice(codes, (5, 2 * format.k_step))
    b = np.random.default_rng(4).integers(0x30, 0x48, (6, 2 * format.k_step))
    e4m3 = oracle_values("e4m3", b.astype(np.uint8)).astype(np.float64)
    d = matmul_unscaled(a, b, a_format=format, b_format=ElementFormat.E4M3)
    # Every product and sum fits in the bits that the MMA keeps.
    assert_bits_equal(d, (values[a].astype(np.float64) @ e4m3.T).astype(np.float32))


def test_an_mma_multiplies_its_nan_and_inf(monkeypatch):
    monkeypatch.setitem(elements._TABLE, "e3m4", E3M4)
    formats = dict.fromkeys(("a_format", "b_format"), ElementFormat("e3m4"))
    a = np.zeros((3, 32), np.uint8)
    a[:, 0] = 0x70, 0x71, 0x30  # Inf, NaN, 1
    d = matmul_unscaled(a, a[2:], **formats)
    assert d.view(np.uint32).ravel().tolist() == [0x7F800000, NAN, 0x3F800000]


def test_tma_and_the_instruction_descriptor_know_it(made_up):
    assert DataType[made_up.tma].bits == made_up.bits
    format = ElementFormat(made_up.name)
    code = made_up.idesc["f8f6f4"]
    word = UnscaledInstrDescriptor("f8f6f4", 128, 64, format, format).encode()
    assert (word >> 7 & 7, word >> 10 & 7) == (code, code)
    found = UnscaledInstrDescriptor.decode(word, "f8f6f4")
    assert found.a_format is found.b_format is format


def test_a_scale_code_of_the_table_is_bit_23_of_the_descriptor():
    for scale_format in ScaleFormat:
        word = InstrDescriptor(128, 64, scale_format).encode()
        assert word >> 23 & 1 == scale_format.element.scale_code
        assert InstrDescriptor.decode(word).scale_format is scale_format
