"""alpha is an argument of the launch, and not of what is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raw_bits import assert_bits_equal
from wide_operands import integer_product, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.errors import InputError
from fp4ref.evidence.oracle import expected
from fp4ref.gemm.config import FIELDS
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine

A, B = wide_pair(0, 6, 7, 64, specials=False)
SCALED = [BlockScaled(q.codes, q.scales, global_scale=3.0) for q in (A, B)]

FINITE = "a number that is finite in float32"
BAD: list[tuple[Any, str]] = [
    (float("inf"), f"alpha=inf: {FINITE}"),
    (-float("inf"), f"alpha=-inf: {FINITE}"),
    (float("nan"), f"alpha=nan: {FINITE}"),
    (1e39, f"alpha=1e+39: {FINITE}"),
    (np.float64(-1e300), FINITE),
    (10**400, f"alpha=(int, too long): {FINITE}"),
    (10**5000, f"alpha=(int, too long): {FINITE}"),
    ("x", f"alpha='x': {FINITE}"),
    ("0.5", f"alpha='0.5': {FINITE}"),
    (1 + 0j, f"alpha=(1+0j): {FINITE}"),
    (np.complex64(1), FINITE),
    (True, f"alpha=True: {FINITE}"),
    (np.bool_(True), FINITE),
    (np.ones(1), FINITE),
    ([0.5], f"alpha=[0.5]: {FINITE}"),
]
IDS = [f"{type(alpha).__name__}-{i}" for i, (alpha, _) in enumerate(BAD)]
"""A number of 5,000 digits cannot be printed."""


@pytest.mark.parametrize(("alpha", "said"), BAD, ids=IDS)
def test_what_float32_cannot_hold_is_refused_by_name(alpha: Any, said: str) -> None:
    for refuse in (
        lambda: fp4ref.run(A, B, alpha=alpha),
        lambda: GemmProblem(Machine(1), A, B, None, None, GemmConfig(), alpha),
        lambda: expected(A, B, alpha=alpha),
    ):
        with pytest.raises(InputError) as caught:
            refuse()
        assert str(caught.value).startswith("alpha=")
        assert said in str(caught.value)


@pytest.mark.parametrize(
    "alpha", [2, -0.75, 0, -0.0, 1e-45, 0.1, np.float16(3), np.int64(-5)], ids=repr
)
def test_one_kernel_takes_any_alpha(alpha: Any) -> None:
    product = integer_product(*SCALED)
    want = np.float32(alpha) * product + np.float32(0)
    for found in (
        fp4ref.run(*SCALED, alpha=alpha, trace=False),
        fp4ref.run(*SCALED, alpha=alpha, trace=False, backend="ptx"),
    ):
        assert_bits_equal(found.d, want)
        assert found.meta["alpha"] == float(np.float32(alpha))
    assert_bits_equal(expected(*SCALED, alpha=alpha).d, want)


def test_without_alpha_the_global_scales_are_divided_out() -> None:
    want = np.float32(1 / 9) * integer_product(*SCALED) + np.float32(0)
    assert_bits_equal(fp4ref.run(*SCALED, trace=False).d, want)
    assert_bits_equal(expected(*SCALED).d, want)


def test_a_configuration_has_no_alpha() -> None:
    assert "alpha" not in FIELDS
    assert "beta" in FIELDS
