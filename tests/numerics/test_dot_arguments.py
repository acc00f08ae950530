"""dot: any number of threads, any arrays; wrong ones are refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from assert_bits import assert_bits_equal
from dot_operands import LEGAL, UE4M3, random_operands

from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import decode_a, decode_b
from fp4ref.numerics.dot import matmul_block_scaled, mma_block_scaled, mma_decoded


@pytest.mark.parametrize(("scale_format", "vec_size"), LEGAL)
def test_the_body_gives_the_same_bits_without_the_compiler(
    monkeypatch, scale_format, vec_size
):
    from fp4ref.numerics import dot_jit

    rng = np.random.default_rng(6)
    operands = random_operands(rng, 6, 7, 128, scale_format, vec_size, raw_scales=True)
    c = rng.integers(0, 1 << 32, (6, 7), dtype=np.uint32)
    kwargs = {"scale_format": scale_format, "vec_size": vec_size}
    a = decode_a(operands[0], operands[2], **kwargs)
    b = decode_b(operands[1], operands[3], **kwargs)
    compiled = mma_decoded(a, b, c.view(np.float32))
    for name, function in vars(dot_jit).copy().items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(dot_jit, name, function.py_func)
    interpreted = c.copy()
    dot_jit.chain_rows(0, len(interpreted), a, b, interpreted)
    assert_bits_equal(interpreted, compiled)


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    pytest.importorskip("numba")
    from fp4ref.numerics import compiled, dot_jit

    rng = np.random.default_rng(8)
    operands = random_operands(rng, 67, 45, 256, UE4M3, 16)
    a = decode_a(operands[0], operands[2], scale_format=UE4M3, vec_size=16)
    b = decode_b(operands[1], operands[3], scale_format=UE4M3, vec_size=16)
    serial = np.zeros((67, 45), np.uint32)
    dot_jit.chain_rows(0, 67, a, b, serial)
    for threads in (1, 2, 3):
        monkeypatch.setattr(compiled, "THREADS", threads)
        d = np.zeros((67, 45), np.uint32)
        compiled.in_pieces(dot_jit.chain_rows, 67, 4, a, b, d)
        assert_bits_equal(d, serial)


def test_a_large_product_equals_its_blocks():
    rng = np.random.default_rng(9)
    a, b, sfa, sfb = random_operands(rng, 160, 144, 256, UE4M3, 16)  # goes to threads
    kwargs = {"scale_format": UE4M3, "vec_size": 16}
    whole = matmul_block_scaled(a, b, sfa, sfb, **kwargs)
    for rows in (slice(0, 64), slice(64, 160)):
        for columns in (slice(0, 100), slice(100, 144)):
            part = matmul_block_scaled(
                a[rows], b[columns], sfa[rows], sfb[columns], **kwargs
            )
            assert_bits_equal(part, whole[rows, columns])


def test_importing_the_package_does_not_import_numba():
    code = "import sys, fp4ref.numerics; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_inputs_are_left_alone_and_may_be_strided_or_read_only():
    rng = np.random.default_rng(10)
    a, b, sfa, sfb = random_operands(rng, 8, 8, 128, UE4M3, 16)
    c = rng.standard_normal((8, 8)).astype(np.float32)
    kwargs = {"scale_format": UE4M3, "vec_size": 16}
    expected = matmul_block_scaled(a, b, sfa, sfb, c, **kwargs)
    kept = c.copy()
    for array in (a, b, sfa, sfb, c):
        array.flags.writeable = False
    assert_bits_equal(matmul_block_scaled(a, b, sfa, sfb, c, **kwargs), expected)
    assert_bits_equal(c, kept)
    strided = [np.asfortranarray(x) for x in (a, b, sfa, sfb, c)]
    assert_bits_equal(matmul_block_scaled(*strided, **kwargs), expected)


def test_an_empty_output_is_returned_empty():
    empty = np.zeros((0, 64), np.uint8)
    full = np.zeros((8, 64), np.uint8)
    d = mma_block_scaled(
        empty, full, empty[:, :4], full[:, :4], scale_format=UE4M3, vec_size=16
    )
    assert d.shape == (0, 8)


# --- bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vec_size": 32}, "vec_size: 32 with UE4M3 .*UE8M0 with 16 or 32"),
        ({"vec_size": 8}, "vec_size: 8"),
        ({"scale_format": "ue4m3"}, "does not say what it means"),
        ({"a": np.zeros((8, 128), np.uint8)}, r"\(8, 128\).*matmul_block_scaled"),
        ({"a": np.zeros(64, np.uint8)}, r"shape \(64,\)"),
        ({"a": np.full((8, 64), 16, np.uint8)}, "mma a: code 0x10"),
        ({"a": np.zeros((8, 64), np.float32)}, "mma a: dtype float32"),
        ({"b": np.zeros((8, 128), np.uint8)}, r"sfb: shape \(8, 4\); need \(8, 8\)"),
        ({"sfa": np.zeros((8, 8), np.uint8)}, r"sfa: shape \(8, 8\); need \(8, 4\)"),
        ({"sfa": np.zeros((8, 4))}, "mma sfa: dtype float64"),
        ({"c": np.zeros((8, 9), np.float32)}, r"C has shape \(8, 9\); need \(8, 8\)"),
        ({"c": np.zeros((8, 8))}, "mma c: dtype float64"),
    ],
)
def test_bad_arguments_are_refused_by_name(change, message):
    arguments = {
        "a": np.zeros((8, 64), np.uint8),
        "b": np.zeros((8, 64), np.uint8),
        "sfa": np.zeros((8, 4), np.uint8),
        "sfb": np.zeros((8, 4), np.uint8),
        "scale_format": UE4M3,
        "vec_size": 16,
        **change,
    }
    with pytest.raises(InputError, match=message):
        mma_block_scaled(**arguments)


def test_operands_with_different_k_are_refused():
    codes = np.zeros((8, 128), np.uint8)
    with pytest.raises(InputError, match="K is 64 in A and 128 in B"):
        matmul_block_scaled(
            codes[:, :64],
            codes,
            codes[:, :4],
            codes[:, :8],
            scale_format=UE4M3,
            vec_size=16,
        )


def test_a_k_that_is_not_whole_scale_blocks_is_refused():
    codes = np.zeros((8, 72), np.uint8)
    with pytest.raises(InputError, match="multiple of vec_size 16"):
        matmul_block_scaled(
            codes,
            codes,
            codes[:, :4],
            codes[:, :4],
            scale_format=UE4M3,
            vec_size=16,
        )
