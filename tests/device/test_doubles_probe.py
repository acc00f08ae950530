"""The probe of float64's approximations: it compiles, and its model reads a table."""

from __future__ import annotations

import math
from functools import cache
from importlib import resources

import numpy as np
import pytest

from fp4ref.device import compile_cuda
from fp4ref.device.compile import nvrtc_version
from fp4ref.ptx.instructions import double_reciprocals
from probes import doubles
from probes.exhaustive import checksum
from probes.probe import ARCH, FOLDER

RANDOM = np.random.default_rng(3)


def made_up(name: str) -> np.ndarray:
    """A table that is off by up to three units, in runs."""
    count = doubles.BINADES[name] << double_reciprocals.FRACTION
    first = np.arange(
        double_reciprocals.ONE, double_reciprocals.ONE + count, dtype=np.int64
    )
    offsets = (first >> 9) % 7 - 3
    return (double_reciprocals.exact(name, first) + offsets).astype(np.uint32)


def by_meaning(name: str, table: np.ndarray, high: int) -> int:
    """The same of one word: by numbers, where the model goes by fields."""
    x = float(np.array(high << 32, np.uint64).view(np.float64))
    if math.isnan(x) or (name != "rcp" and x < -(2.0**-1022)):
        return 0x7FFFFFFF
    sign = high & 1 << 31
    if abs(x) < 2.0**-1022:
        return sign | 0x7FF00000
    if math.isinf(x):
        return sign
    fraction, exponent = math.frexp(abs(x))
    scale = 1 if name == "rcp" else 2
    exponent -= 1
    rest = exponent % scale
    place = int((2 * fraction * 2**rest) * 2**20) - 2**20
    if rest:
        place = int((2 * fraction - 1) * 2**20) + 2**20
    one = float(np.array(int(table[place]) << 32, np.uint64).view(np.float64))
    found = one * 2.0 ** -(exponent // scale)
    if found < 2.0**-1022:
        return sign
    return sign | int(np.array(found).view(np.uint64)) >> 32


@pytest.mark.skipif(nvrtc_version() is None, reason="needs NVRTC")
def test_the_probe_asks_about_the_three_opcodes() -> None:
    made = compile_cuda(doubles.SOURCE.read_text(), ARCH, include=[FOLDER])
    for opcode in ("rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx"):
        assert f"{opcode}.f64" in made.ptx
    for name in doubles.BINADES:
        assert f".entry table_{name}(" in made.ptx


@pytest.mark.parametrize("name", doubles.BINADES)
def test_the_model_takes_significand_and_exponent_apart(name: str) -> None:
    table = made_up(name)
    corners = [0, 1 << 31, 1, 0xFFFFF, 0x100000, 0x3FF00000, 0x40000000, 0x7FEFFFFF]
    corners += [0x7FD00000, 0x7FE00000, 0x7FF00000, 0xFFF00000, 0x7FF00001, 0xFFF80000]
    high = np.concatenate([corners, RANDOM.integers(0, 1 << 32, 4000)]).astype(
        np.uint32
    )
    found = double_reciprocals.upper_words(name, table, high)
    assert found.tolist() == [by_meaning(name, table, int(h)) for h in high]


@pytest.mark.parametrize("name", doubles.BINADES)
def test_a_table_is_packed_without_loss_and_a_wrong_sum_is_seen(name: str) -> None:
    table = made_up(name)
    packed = doubles.pack(name, table)
    assert (double_reciprocals.unpack(name, packed) == table).all()
    far = table.copy()
    far[7] += np.uint32(200)
    with pytest.raises(ValueError, match="off by"):
        doubles.pack(name, far)
    sums = np.zeros(1024, np.uint64)
    block = np.arange(1 << 20, dtype=np.uint32) + np.uint32(1000 << 20)
    sums[1000] = checksum(double_reciprocals.upper_words(name, table, block))
    assert doubles.unexplained(name, table, sums, range(999, 1001)) == [999]


RECORD = resources.files("fp4ref.data") / double_reciprocals.TABLES


@cache
def recorded(key: str) -> np.ndarray:
    with RECORD.open("rb") as opened, np.load(opened) as file:
        return file[key]


def unlike(name: str, blocks: range) -> list[int]:
    table = double_reciprocals.unpack(name, recorded(f"table/{name}"))
    return doubles.unexplained(name, table, recorded(f"sums/{name}"), blocks)


@pytest.mark.parametrize("name", doubles.BINADES)
def test_the_tables_give_the_sums_of_the_card(name: str, rotating_seed: int) -> None:
    """Blocks with zeros, ones, the largest and NaN, and some others."""
    corners = [0, 1, 0x3FF, 0x400, 0x7FE, 0x7FF, 0x800, 0xBFF, 0xFFF]
    others = np.random.default_rng(rotating_seed).integers(0, 4096, 4)
    for block in (*corners, *others):
        assert unlike(name, range(block, block + 1)) == []
    assert recorded(f"low/{name}").sum() == 0
    assert recorded(f"changed/{name}").sum() == 0


@pytest.mark.soak
@pytest.mark.parametrize("name", doubles.BINADES)
def test_the_tables_give_every_sum_of_the_card(name: str) -> None:
    assert unlike(name, range(doubles.BLOCKS)) == []
