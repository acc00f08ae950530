"""Numba absent: NumPy gives the same bits, and the suites of numbers pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from assert_bits import assert_bits_equal
from dot_operands import LEGAL, random_operands

from fp4ref.numerics import dot_arrays, dot_jit, dot_unscaled_jit
from fp4ref.numerics.decoded_operands import decode_a, decode_b, decode_terms
from fp4ref.numerics.elements import ElementFormat, ScaleFormat

TESTS = Path(__file__).parents[1]
SUITES = sorted(
    str(path.relative_to(TESTS))
    for room in ("numerics", "tensors", "gemm")
    for path in (TESTS / room).glob("test_*.py")
    if path.name != Path(__file__).name
)
SMALL = [
    "numerics/test_dot_arguments.py",
    "numerics/test_formats.py",
    "numerics/test_arithmetic.py",
    "tensors/test_unscaled.py",
    "tensors/test_block_scaled_ends.py",
]


def test_c_is_a_significand_and_an_exponent_subnormal_or_not():
    rng = np.random.default_rng(4)
    fields, fractions = rng.integers(0, 3, 300), rng.integers(0, 1 << 23, 300)
    bits = np.append(fields << 23 | fractions, [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF])
    bits = np.concatenate([bits, bits | 1 << 31])
    significand, exponent = dot_arrays.split_c(bits, -200)
    values = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    assert (np.ldexp(significand.astype(np.float64), exponent - 23) == values).all()
    assert (exponent[values == 0] == -200).all()
    assert (np.abs(significand) < 1 << 24).all()


@pytest.mark.parametrize("start", ["raw", "zero"])
@pytest.mark.parametrize(("scale_format", "vec_size"), LEGAL)
def test_block_scaled_chains_are_the_compiled_ones(scale_format, vec_size, start):
    rng = np.random.default_rng([vec_size, len(start)])
    raw = start == "raw"
    operands = random_operands(rng, 30, 40, 256, scale_format, vec_size, raw_scales=raw)
    kwargs = {"scale_format": scale_format, "vec_size": vec_size}
    a = decode_a(operands[0], operands[2], **kwargs)
    b = decode_b(operands[1], operands[3], **kwargs)
    c = rng.integers(0, 1 << 32, (30, 40), dtype=np.uint32) * np.uint32(raw)
    compiled, arrays = c.copy(), c.copy()
    dot_jit.chain_rows(0, 30, a, b, compiled)
    dot_arrays.chain_block_scaled(a, b, arrays)
    assert_bits_equal(arrays, compiled)


@pytest.mark.parametrize("group", range(4))
def test_a_group_of_zeros_has_no_exponent_in_arrays_either(group):
    """1 and 2^-20: beside the scales of a group of zeros, 2^26, 2^-20 would be lost."""
    codes, scales = np.zeros((1, 4, 16), np.uint8), np.full((1, 4), 140, np.uint8)
    others = [g for g in range(4) if g != group]
    codes[0, others, 0] = 2
    scales[0, others] = 127, 117, 117
    one = (codes.reshape(1, 64), scales)
    a = decode_a(*one, scale_format=ScaleFormat.UE8M0, vec_size=16)
    b = decode_b(*one, scale_format=ScaleFormat.UE8M0, vec_size=16)
    d = np.zeros((1, 1), np.uint32)
    dot_arrays.chain_block_scaled(a, b, d)
    assert d.view(np.float32)[0, 0] == 1 + 2 * 2.0**-20


@pytest.mark.parametrize("start", ["raw", "zero"])
@pytest.mark.parametrize("element", [e for e in ElementFormat if e.value != "f32"])
def test_unscaled_chains_are_the_compiled_ones(element, start):
    rng = np.random.default_rng([element.bits, len(start)])
    codes = rng.integers(0, 1 << element.bits, (2, 30, 64))
    a, b = (decode_terms(rows, element.element) for rows in codes)
    c = rng.integers(0, 1 << 32, (30, 30), dtype=np.uint32) * np.uint32(start == "raw")
    compiled, arrays = c.copy(), c.copy()
    dot_unscaled_jit.chain_rows(0, 30, a, b, element.k_step, compiled)
    dot_arrays.chain_unscaled(a, b, element.k_step, arrays)
    assert_bits_equal(arrays, compiled)


def run_without_numba(suite: str) -> None:
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "without_numba", suite],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("suite", SMALL)
def test_a_suite_passes_with_numba_unimportable(suite: str) -> None:
    run_without_numba(suite)


@pytest.mark.soak
@pytest.mark.parametrize("suite", [name for name in SUITES if name not in SMALL])
def test_every_suite_passes_with_numba_unimportable(suite: str) -> None:
    run_without_numba(suite)
