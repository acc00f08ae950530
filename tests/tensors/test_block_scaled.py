"""block_scaled: the container, packing, the global scale, swizzled scales."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from small_blocks import codes_and_scales, row

from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import SwizzledScales, sf_nbytes
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.tensors.block_scaled import BlockScaled, GlobalScaleWarning
from fp4ref.tensors.losses import NonFiniteWarning
from fp4ref.tensors.quantize import quantize

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def decoded(q: BlockScaled) -> Iterator[float]:
    """Decode element by element, from the definition of the formats."""
    for code_row, scale_row in zip(q.codes, q.scales, strict=True):
        for k, code in enumerate(code_row):
            byte = int(scale_row[k // q.vec_size])
            if q.scale_format is ScaleFormat.UE8M0:
                scale = 2.0 ** (byte - 127)
            else:
                exponent, mantissa = byte >> 3, byte & 7
                scale = (mantissa / 8 + (exponent > 0)) * 2.0 ** (max(exponent, 1) - 7)
            sign = -1.0 if code & 8 else 1.0
            yield sign * E2M1[code & 7] * scale


# The container


@pytest.mark.parametrize(
    ("format", "scale_format", "vec"),
    [("nvfp4", "ue4m3", 16), ("nvfp4", "ue8m0", 16), ("mxfp4", "ue8m0", 32)],
)
def test_dequantize_is_code_times_scale(
    format: str, scale_format: str, vec: int
) -> None:
    codes, scales = codes_and_scales(vec=vec)
    q = BlockScaled(codes, scales, format, scale_format)
    values = q.dequantize(np.float64)
    assert values.dtype == np.float64
    assert values.shape == q.shape
    assert values.ravel().tolist() == list(decoded(q))
    assert (q.dequantize() == values.astype(np.float32)).all()


def test_dequantize_divides_by_the_global_scale_once_rounded() -> None:
    codes, scales = codes_and_scales()
    q = BlockScaled(codes, scales, global_scale=3.0)
    plain = np.array(list(decoded(q)), dtype=np.float32).reshape(q.shape)
    assert (q.dequantize() == plain / np.float32(3)).all()


def test_a_global_scale_is_kept_as_float32() -> None:
    q = BlockScaled(*codes_and_scales(), global_scale=0.1)
    assert q.global_scale == float(np.float32(0.1))


def test_the_extreme_ue8m0_scales_decode() -> None:
    codes = np.full((1, 96), 7, dtype=np.uint8)
    scales = np.array([[0x00, 0xFE, 0xFF]], dtype=np.uint8)
    q = BlockScaled(codes, scales, "mxfp4")
    exact = q.dequantize(np.float64)[0, ::32]
    assert exact[:2].tolist() == [6 * 2.0**-127, 6 * 2.0**127]
    assert np.isnan(exact[2])
    with pytest.warns(
        NonFiniteWarning, match=r"32 values .*, 1.02085e\+39, at \[0, 32"
    ):
        assert np.isinf(q.dequantize()[0, 32])


def test_a_float32_or_float64_result_only() -> None:
    with pytest.raises(InputError, match=r"need numpy\.float32 or numpy\.float64"):
        quantize(row(1.0)).dequantize(np.float16)  # type: ignore[type-var]


def test_the_same_byte_is_another_scale_in_another_format() -> None:
    codes = np.full((1, 48), 2, dtype=np.uint8)
    scales = np.array([[0x38, 0x7F, 0x01]], dtype=np.uint8)
    ue4m3 = BlockScaled(codes, scales, scale_format="ue4m3").dequantize()[0, ::16]
    ue8m0 = BlockScaled(codes, scales, scale_format="ue8m0").dequantize()[0, ::16]
    assert ue4m3[[0, 2]].tolist() == [1.0, 2.0**-9]
    assert np.isnan(ue4m3[1])
    assert ue8m0.tolist() == [2.0**-71, 1.0, 2.0**-126]


def test_scales_without_a_format_are_refused() -> None:
    codes, scales = codes_and_scales()
    with pytest.raises(InputError, match=r"0x38 is 1\.0 as UE4M3 and 2\^-71 as UE8M0"):
        BlockScaled(codes, scales, format=None)
    with pytest.raises(InputError, match="no format given"):
        BlockScaled.from_packed(codes[:, ::2], scales, format=None)


def test_typed_scales_say_their_format_themselves() -> None:
    codes, scales = codes_and_scales()
    e8m0 = scales.view(ml_dtypes.float8_e8m0fnu)
    e4m3 = scales.view(ml_dtypes.float8_e4m3fn)
    assert BlockScaled(codes, e8m0).scale_format is ScaleFormat.UE8M0
    assert BlockScaled(codes, e4m3).scale_format is ScaleFormat.UE4M3
    with pytest.raises(InputError, match="array of another type"):
        BlockScaled(codes, e8m0, scale_format="ue4m3")
    with pytest.raises(InputError, match="takes 'ue8m0'"):
        BlockScaled(codes, e4m3, "mxfp4")
    with pytest.raises(InputError, match="sign set"):
        BlockScaled(codes, (scales | 0x80).view(ml_dtypes.float8_e4m3fn))


def test_the_arrays_are_read_only_copies() -> None:
    codes, scales = codes_and_scales()
    q = BlockScaled(codes, scales)
    first = int(q.codes[0, 0])
    codes[0, 0] ^= 1
    assert q.codes[0, 0] == first
    for array in (q.codes, q.scales):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0
    with pytest.raises(AttributeError):
        q.global_scale = 2.0  # type: ignore[misc]


def test_its_repr_names_shape_and_formats() -> None:
    assert repr(quantize(row(1.0))) == (
        "BlockScaled(shape=(1, 16), format='nvfp4', scale_format=UE4M3, "
        "global_scale=None)"
    )


@pytest.mark.parametrize(
    ("codes_shape", "scales_shape", "why"),
    [
        ((3, 64), (3, 2), "The shape is that of format='mxfp4'"),
        ((3, 64), (3, 8), r"need \(3, 4\), one scale per 16"),
        ((3, 64), (4, 4), r"need \(3, 4\)"),
        ((3, 63), (3, 4), "K a multiple of 16"),
        ((64,), (4,), "K a multiple of 16"),
        ((2, 3, 64), (3, 4), r"need \(2, 3, 4\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    codes_shape: tuple[int, ...], scales_shape: tuple[int, ...], why: str
) -> None:
    codes = np.zeros(codes_shape, dtype=np.uint8)
    with pytest.raises(InputError, match=why):
        BlockScaled(codes, np.zeros(scales_shape, dtype=np.uint8))


def test_values_and_packed_bytes_are_not_taken_for_codes() -> None:
    codes, scales = codes_and_scales()
    with pytest.raises(InputError, match="codes: dtype float32; codes are uint8"):
        BlockScaled(codes.astype(np.float32), scales)
    with pytest.raises(InputError, match="scales: dtype float32"):
        BlockScaled(codes, scales.astype(np.float32))
    with pytest.raises(InputError, match="Split packed bytes with unpack_e2m1"):
        BlockScaled(codes | 0x10, scales)


# Packing


def test_the_even_element_is_in_the_low_nibble() -> None:
    q = quantize(row(1.0, -6.0, 0.5, 3.0))
    assert q.scales.tolist() == [[0x38]]
    assert q.packed()[0, :2].tolist() == [0xF2, 0x51]


def test_packed_rows_are_k_over_2_bytes_apart() -> None:
    codes, scales = codes_and_scales(2, 512)
    packed = BlockScaled(codes, scales).packed()
    assert (packed.shape, packed.strides) == ((2, 256), (256, 1))
    assert packed.tobytes()[256] == codes[1, 0] | codes[1, 1] << 4


def test_unpacking_undoes_packing_for_every_byte() -> None:
    packed = np.arange(256, dtype=np.uint8).reshape(1, 256)
    scales = np.full((1, 32), 0x38, dtype=np.uint8)
    q = BlockScaled.from_packed(packed, scales, format="nvfp4")
    assert (q.packed() == packed).all()
    assert q.shape == (1, 512)


def test_only_the_values_show_a_wrong_nibble_order() -> None:
    q = quantize(row(1.0, -6.0, 0.5, 3.0))
    high_first = (q.packed() >> 4) | (q.packed() << 4)
    assert high_first[0, :2].tolist() == [0x2F, 0x15]
    right = BlockScaled.from_packed(
        high_first, q.scales, format="nvfp4", nibble_order="high_first"
    )
    wrong = BlockScaled.from_packed(high_first, q.scales, format="nvfp4")
    assert (right.codes == q.codes).all()
    assert (wrong.scales == right.scales).all()
    assert wrong.dequantize()[0, :4].tolist() == [-6.0, 1.0, 3.0, 0.5]
    with pytest.raises(InputError, match="take 'low_first'"):
        BlockScaled.from_packed(
            high_first,
            q.scales,
            format="nvfp4",
            nibble_order="big",  # type: ignore[arg-type]
        )


def test_a_block_scaled_matrix_cannot_be_transposed() -> None:
    q = quantize(row(1.0))
    with pytest.raises(LayoutError, match=r"nibbles pair up .* quantize them again"):
        q.transpose()
    with pytest.raises(LayoutError, match="cannot be transposed"):
        _ = q.T


def test_an_odd_k_cannot_be_packed() -> None:
    with pytest.raises(InputError, match="K a multiple of 16"):
        BlockScaled(np.zeros((1, 15), np.uint8), np.zeros((1, 1), np.uint8))


# The global scale


def import_075(
    global_scale: float, convention: str | None, scale: int = 0x7E
) -> BlockScaled:
    return BlockScaled.from_packed(
        np.full((1, 8), 0x77, dtype=np.uint8),
        np.full((1, 1), scale, dtype=np.uint8),
        format="nvfp4",
        global_scale=global_scale,
        global_scale_convention=convention,  # type: ignore[arg-type]
    )


def test_amax_three_quarters_has_global_scale_3584() -> None:
    q = quantize(row(0.75), global_scale="auto")
    assert (q.global_scale, q.scales[0, 0], q.codes[0, 0]) == (3584.0, 0x7E, 0x7)
    assert q.dequantize()[0, 0] == 0.75


def test_both_conventions_of_the_global_scale_are_read() -> None:
    """The inverse of float32(0.75 / 2688) is one step of float32 below 3584."""
    below = float(np.nextafter(np.float32(3584), np.float32(0)))
    for number, convention, scale in [
        (3584.0, "encode", 3584.0),
        (0.75 / 2688, "decode", below),
    ]:
        q = import_075(number, convention)
        assert q.global_scale == scale
        assert q.dequantize()[0, 0] == np.float32(2688 / scale)


def test_a_global_scale_without_its_convention_is_refused() -> None:
    with pytest.raises(InputError, match=r"'encode' is 448\*6/amax"):
        import_075(3584.0, None)


def test_an_inverted_global_scale_is_flagged() -> None:
    with pytest.warns(GlobalScaleWarning, match=r"largest value 9\.63379e\+06"):
        q = import_075(3584.0, "decode")
    assert q.dequantize()[0, 0] == 9_633_792
    with pytest.warns(GlobalScaleWarning):
        import_075(0.75 / 2688, "encode")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_075(3584.0, "decode", scale=0x38)


def test_the_global_scale_belongs_in_alpha() -> None:
    codes = np.full((1, 64), 2, dtype=np.uint8)
    scales = np.full((1, 4), 0x38, dtype=np.uint8)
    a = BlockScaled(codes, scales, global_scale=2.0)
    b = BlockScaled(codes, scales, global_scale=4.0)
    plain = BlockScaled(codes, scales).dequantize(np.float64)
    alpha = 1 / (2.0 * 4.0)
    assert (plain @ plain.T).item() == 64.0
    assert alpha * (plain @ plain.T) == a.dequantize() @ b.dequantize().T == 8.0
    # Folded into the scale byte, 1/3 becomes 0.34375.
    folded = quantize(row(*[6 / 3] * 16))
    assert folded.scales.tolist() == [[0x2B]]
    assert folded.dequantize()[0, 0] == 6 * 0.34375


# Scales in the 128x4 layout


def test_swizzled_scales_know_their_layout_and_pad_with_zeros() -> None:
    codes, scales = codes_and_scales(20, 64)
    swizzled = BlockScaled(codes, scales).swizzled_scales()
    assert swizzled.nbytes == sf_nbytes(20, 4) == 512
    assert np.count_nonzero(swizzled.data) == 80
    assert (swizzled.unswizzle() == scales).all()
    with pytest.raises(LayoutError, match="already in the 128x4 layout"):
        swizzled.swizzle()


def test_row_major_scales_have_no_padding() -> None:
    q = quantize(np.ones((1025, 512), dtype=np.float32))
    assert q.scales.nbytes == 1025 * 32
    assert q.swizzled_scales().nbytes == 1152 * 32


def test_swizzled_scales_are_read_back_and_plain_swizzled_bytes_refused() -> None:
    codes, scales = codes_and_scales(100, 96)
    q = BlockScaled(codes, scales)
    swizzled = q.swizzled_scales()
    again = BlockScaled.from_packed(q.packed(), swizzled, format="nvfp4")
    assert (again.scales == scales).all()
    flat = np.array(swizzled.data)
    with pytest.raises(LayoutError, match=r"SwizzledScales\(flat, rows=100, cols=6\)"):
        BlockScaled(codes, flat.reshape(128, 8))
    with pytest.raises(LayoutError, match="look like the 128x4 layout"):
        BlockScaled(codes, flat)
    assert (BlockScaled(codes, SwizzledScales(flat, 100, 6)).scales == scales).all()


def test_a_batch_is_swizzled_matrix_by_matrix() -> None:
    q = quantize(np.random.default_rng(4).normal(size=(2, 130, 80)).astype(np.float32))
    swizzled = q.swizzled_scales()
    assert swizzled.data.shape == (2, sf_nbytes(130, 5))
    one = BlockScaled(q.codes[1], q.scales[1]).swizzled_scales()
    assert (swizzled.data[1] == one.data).all()
