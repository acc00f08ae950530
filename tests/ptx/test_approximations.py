"""Roots, quotients and powers of two have an H200's bits.

`tests/data/card_approximations.npz` has a sum of results for each block of 2^20 inputs
and each opcode: rsqrt.approx, sqrt.approx, ex2.approx and rcp.approx of all 2^32
patterns, div.full and div.approx of 2^32 pairs of splitmix64; measured on 2026-11-29 by
`tests/data/card_approximations.cu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import floats, lanes

from fp4ref.ptx.instructions import double_reciprocals, quotients, roots
from fp4ref.ptx.instructions.approximate import ex2_approx_ftz
from fp4ref.ptx.instructions.floating import canonical, flushing
from probes.exhaustive import checksum

with np.load(Path(__file__).parents[1] / "data" / "card_approximations.npz") as _file:
    SUMS = dict(zip(_file["opcodes"].tolist(), _file["sums"], strict=True))
BLOCK = 1 << 20
# Zeros and subnormals, 1 and 2, the largest, infinities and NaN, of both signs.
CORNERS = (0, 7, 8, 1016, 1023, 1024, 1050, 2039, 2040, 2047, 2048, 3064, 3100, 4088)
Function = Callable[..., NDArray[np.float32]]


def flushed(function: Function) -> Function:
    """With ``.ftz``, as the registry has it."""
    return flushing(function, {"ftz": ".ftz"})


FUNCTIONS: dict[str, Function] = {
    "rsqrt.approx.ftz.f32": roots.rsqrt_approx_ftz,
    "rsqrt.approx.f32": roots.rsqrt_approx,
    "sqrt.approx.ftz.f32": roots.sqrt_approx_ftz,
    "sqrt.approx.f32": roots.sqrt_approx,
    "ex2.approx.f32": quotients.ex2_approx,
    "rcp.approx.f32": quotients.rcp_approx,
    "div.full.f32": quotients.div_full,
    "div.full.ftz.f32": flushed(quotients.div_full),
    "div.approx.f32": quotients.div_approx,
    "div.approx.ftz.f32": flushed(quotients.div_approx),
}


def operands(opcode: str, block: int) -> list[NDArray[np.uint32]]:
    """Patterns of a block: every one, or pairs of them."""
    first = block * BLOCK
    number = np.arange(first, first + BLOCK, dtype=np.uint64)
    if not opcode.startswith("div"):
        return [number.astype(np.uint32)]
    with np.errstate(over="ignore"):
        x = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return [x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)]


def differing(opcode: str, blocks: Iterable[int]) -> list[int]:
    """Blocks whose sum is not the card's."""
    wrong = []
    for block in blocks:
        sources = (x.view(np.float32) for x in operands(opcode, block))
        with np.errstate(all="ignore"):
            found = canonical(FUNCTIONS[opcode](*sources)).view(np.uint32)
        if checksum(found) != int(SUMS[opcode][block]):
            wrong.append(block)
    return wrong


def test_every_recorded_opcode_has_a_function() -> None:
    assert SUMS.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_sums_of_a_corner_and_of_two_blocks(opcode: str, rotating_seed: int) -> None:
    corner = CORNERS[rotating_seed % len(CORNERS)]
    anywhere = np.random.default_rng(rotating_seed).integers(0, 4096, 2).tolist()
    assert differing(opcode, [corner, *anywhere]) == []


@pytest.mark.soak
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_sums_of_many_blocks(opcode: str, rotating_seed: int) -> None:
    blocks = np.random.default_rng(rotating_seed).permutation(4096)[:64].tolist()
    assert differing(opcode, [*CORNERS, *blocks]) == []


@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_the_instruction_is_the_function(opcode: str) -> None:
    sources = {
        name: x[:: BLOCK // 512]
        for name, x in zip("ab", operands(opcode, 1050), strict=False)
    }
    sources = {
        n: np.concatenate([x, floats(9, 512).view("u4")]) for n, x in sources.items()
    }
    text = f"{opcode} %d, {', '.join(f'%{name}' for name in sources)};"
    with np.errstate(all="ignore"):
        want = FUNCTIONS[opcode](*(x.view(np.float32) for x in sources.values()))
    np.testing.assert_array_equal(
        lanes(text, "u4", **sources), canonical(want).view(np.uint32)
    )


@pytest.mark.parametrize("opcode", ["rsqrt.approx.f32", "sqrt.approx.f32"])
def test_without_the_table_the_sums_are_others(
    opcode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "_offsets", lambda name: np.zeros(1 << 24, np.int8))
    assert differing(opcode, [1016]) == [1016]


def test_a_square_of_half_is_needed_below_minus_126(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block = 0xC3000000 >> 20  # -128 and what follows
    assert differing("ex2.approx.f32", [block]) == []
    monkeypatch.setitem(FUNCTIONS, "ex2.approx.f32", ex2_approx_ftz)
    assert differing("ex2.approx.f32", [block]) == [block]


@pytest.mark.parametrize(
    ("opcode", "name"), [("rcp.approx.ftz", "rcp"), ("rsqrt.approx.ftz", "rsqrt_ftz")]
)
def test_float64_has_the_words_of_the_card(opcode: str, name: str) -> None:
    path = resources.files("fp4ref.data") / double_reciprocals.TABLES
    with path.open("rb") as opened, np.load(opened) as file:
        samples, want = file["samples"], file[f"samples/{name}"]
    a = np.resize(samples, 512).view(np.float64)
    found = lanes(f"{opcode}.f64 %d, %a;", "f8", a=a)
    assert found.view(np.uint64).tolist() == np.resize(want, 512).tolist()
