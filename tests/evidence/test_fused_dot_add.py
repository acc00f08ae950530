"""fused_dot_add: the oracle's own sums have the bits of MMA-Sim, and no other's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from raw_bits import assert_bits_equal

from fp4ref import BlockScaled
from fp4ref.evidence import fused_dot_add
from fp4ref.evidence.fused_dot_add import fused_product, toward_zero
from fp4ref.numerics.elements import ELEMENTS
from fp4ref.numerics.kinds import KINDS, kind_of
from fp4ref.tensors.unscaled import Operand, Unscaled

DATA = Path(__file__).parent.parent / "data"
Answers = tuple[NDArray[np.float32], NDArray[np.uint32]]


def module(name: str) -> ModuleType:
    """A script of ``tests/data``; it may import its neighbour."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DATA))
        return importlib.import_module(name)


def block(codes: NDArray[np.uint8], scales: NDArray[np.uint8], name: str) -> Operand:
    format = "mxfp4" if name == "e2m1" else f"mxfp{ELEMENTS[name].bits}_{name}"
    return BlockScaled(codes, scales, format, "ue8m0")


def scaled() -> Iterator[Answers]:
    """Every stored product with scales: 25 pairs of formats."""
    script = module("make_mmasim_mxf8f6f4_golden")
    with np.load(DATA / "mmasim_mxf8f6f4_golden.npz") as stored:
        all_of = {x: stored[x] for x in ("a", "b", "sfa", "sfb", "c", "d")}
    for pair, (a_name, b_name) in enumerate(script.PAIRS):
        for i in range(len(script.DISTRIBUTIONS)):
            case = {x: array[pair, i] for x, array in all_of.items()}
            a = block(case["a"], case["sfa"], a_name)
            b = block(case["b"], case["sfb"], b_name)
            c = case["c"].view(np.float32)
            yield fused_product(a, b, KINDS["mxf8f6f4"], c), case["d"]


def unscaled() -> Iterator[Answers]:
    """Every stored product without scales whose D is float32."""
    script = module("make_mmasim_unscaled_golden")
    with np.load(DATA / "mmasim_unscaled_golden.npz") as stored:
        for name, (a_name, b_name) in script.INSTRUCTIONS.items():
            kind = kind_of(a_name, b_name)
            assert kind is not None
            for each in script.DISTRIBUTIONS:
                a, b, c, d = (stored[f"{name}/{each}/{x}"] for x in "abcd")
                of_a, of_b = (
                    Unscaled(q.astype(ELEMENTS[n].code_dtype), n)
                    for q, n in ((a, a_name), (b, b_name))
                )
                yield fused_product(of_a, of_b, kind, c.view(np.float32)), d


def right() -> int:
    """Outputs that agree."""
    count = 0
    for answers in (scaled(), unscaled()):
        for found, wanted in answers:
            assert_bits_equal(found, wanted.view(np.float32))
            count += found.size
    return count


def test_every_output_equals_mmasim() -> None:
    assert right() >= 40_000


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("FRACTION_BITS", 24), ("FRACTION_BITS", 26), ("ZERO_EXPONENT", -126)],
)
def test_a_wrong_constant_shows(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: int
) -> None:
    monkeypatch.setattr(fused_dot_add, name, wrong)
    with pytest.raises(AssertionError, match="elements differ"):
        right()


def test_a_sum_rounds_toward_zero_and_to_inf_from_2_to_the_128() -> None:
    exact = np.array(
        [1 + 2.0**-24, -1 - 2.0**-23 - 2.0**-40, 2.0**128 - 2.0**80, -(2.0**128)]
    )
    largest = np.finfo(np.float32).max
    assert toward_zero(exact).tolist() == [1, -1 - 2.0**-23, largest, -np.inf]
    assert toward_zero(np.array([2.0**-149 * 1.99])).tolist() == [2.0**-149]
