"""One instruction in float32: the integer model's bits, and operands at each bound."""

from collections.abc import Mapping

import numpy as np
import pytest

from fp4ref.numerics import ScaleFormat, dot, encode_e2m1, encode_ue4m3, pack_e2m1
from fp4ref.numerics.float32_step import PackedStep, add_step
from fp4ref.numerics.formats import F32, U8
from fp4ref.numerics.instruction import add_packed
from tests.numerics.assert_bits import assert_bits_equal

Groups = Mapping[int, tuple[float, list[float]]]
"""Scale and first elements of a row's groups, by number."""

LARGEST = [6.0] * 16
UNITS = {
    2304: (LARGEST, LARGEST),
    2049: ([6.0] * 15 + [1.5], [6.0] * 14 + [1.0, 1.5]),
    1535: ([6.0] * 11 + [3.0, 1.0, 0.5], [6.0] * 10 + [3.0, 1.5, 1.0, 0.5]),
}
"""Elements whose products add up to so many quarters."""


def step_of(a: U8, b: U8, sfa: U8, sfb: U8, **changed: object) -> PackedStep:
    """Pack codes."""
    packed = pack_e2m1(a), pack_e2m1(b)
    step = PackedStep(*packed, sfa, sfb, (False, False), ScaleFormat.UE4M3, 16)
    return step._replace(**changed)  # type: ignore[arg-type]


def assert_model(step: PackedStep, a: U8, b: U8, c: F32 | None) -> None:
    """Compare with the integer model, in a block of a larger array."""
    d = np.full((len(a) + 2, len(b) + 7), 5, np.float32)
    at = (slice(1, 1 + len(a)), slice(3, 3 + len(b)))
    if c is not None:
        d[at] = c
    add_packed(step, d, (1, 3), clean=c is None)
    kind = {"scale_format": step.scale_format, "vec_size": step.vec_size}
    want = dot.mma_block_scaled(a, b, step.sfa, step.sfb, c, **kind)  # type: ignore[arg-type]
    assert_bits_equal(d[at], want)
    d[at] = 5
    assert (d == 5).all(), "what lies around the block was changed"


@pytest.mark.parametrize("rows", [(64, 48), (3, 5)])
@pytest.mark.parametrize("what", ["ordinary", "any", "powers", "coarse"])
def test_bits_of_the_integer_model(what: str, rows: tuple[int, int]) -> None:
    """Whatever the operands are, and whatever C holds."""
    rng = np.random.default_rng(len(what))
    vec_size = 32 if what == "coarse" else 16
    a, b = (rng.integers(0, 16, (n, 64), np.uint8) for n in rows)
    spans = {"ordinary": (0x60, 0x70), "any": (0, 256)}
    low, high = spans.get(what, (100, 156))
    sfa, sfb = (rng.integers(low, high, (n, 64 // vec_size), np.uint8) for n in rows)
    step = step_of(a, b, sfa, sfb, vec_size=vec_size)
    if what not in spans:
        step = step._replace(scale_format=ScaleFormat.UE8M0)
    bits = rng.integers(0, 1 << 32, rows, np.uint32)
    bits[0, :4] = 0, 0x80000000, 0x7F800000, 1
    near = (rng.integers(-(1 << 20), 1 << 20, rows) / 4).astype(np.float32)
    for c in (None, near, bits.view(np.float32)):
        assert_model(step, a, b, c)


def test_ordinary_rows_are_computed_in_float32() -> None:
    """Nearly all of them, first and later; signs change where that is asked for."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 16, (128, 64), np.uint8) for _ in range(2))
    sfa, sfb = (rng.integers(0x60, 0x70, (128, 4), np.uint8) for _ in range(2))
    d = np.zeros((128, 128), np.float32)
    step = step_of(a, b, sfa, sfb)
    for _ in range(4):
        left = add_step(step, d, (0, 0))
        assert left is None or left.sum() < 4
    add_packed(step._replace(negate=(True, False)), d, (0, 0), clean=True)
    kind = {"scale_format": ScaleFormat.UE4M3, "vec_size": 16}
    assert_bits_equal(d, dot.mma_block_scaled(a ^ 8, b, sfa, sfb, **kind))  # type: ignore[arg-type]


def row(groups: Groups) -> tuple[U8, U8]:
    """Codes and scale codes of one row."""
    elements, scales = np.zeros(64, np.float32), np.zeros(4, np.float32)
    for group, (scale, first) in groups.items():
        scales[group] = scale
        elements[16 * group : 16 * group + len(first)] = first
    return encode_e2m1(elements)[None], encode_ue4m3(scales)[None]


CANCELLED = (256.0, [1.0, 1.0]), (256.0, [1.0, -1.0])
"""Of A and of B: no sum, and the exponent 16."""

BEYOND: dict[str, tuple[Groups, Groups, float]] = {
    "partial sums of more than 2^24 units": (
        {0: (256.0, [4.0]), 1: (0.5, [0.5]), 2: (0.5, [0.5])},
        {0: (256.0, [4.0]), 1: (0.5, [0.5]), 2: (0.5, [0.5])},
        0.0,
    ),
    "groups below what is kept of D": (
        {g: (1.0, UNITS[n][0]) for g, n in enumerate((2304, 2304, 2049, 1535))},
        {g: (1.0, UNITS[n][1]) for g, n in enumerate((2304, 2304, 2049, 1535))},
        2.0**34,
    ),
    "bits of D below what is kept of the scales": (
        {0: CANCELLED[0]},
        {0: CANCELLED[1]},
        2.0**3 + 2.0**-20,
    ),
}
"""A, B and D of which float32 would have other bits, by the bound that says so."""


@pytest.mark.parametrize("what", BEYOND)
def test_a_row_beyond_a_bound_is_left(what: str) -> None:
    """With a bound one bit looser this test is red."""
    of_a, of_b, before = BEYOND[what]
    (a, sfa), (b, sfb) = row(of_a), row(of_b)
    c = np.full((1, 1), before, np.float32)
    step = step_of(a, b, sfa, sfb)
    assert_model(step, a, b, c)
    left = add_step(step, c.copy(), (0, 0))
    assert left is not None
    assert left.all()
