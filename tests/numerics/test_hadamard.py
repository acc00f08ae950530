"""hadamard: H is Sylvester's, and the sums are float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fp4ref.errors import InputError
from fp4ref.numerics.hadamard import hadamard


def by_parity(n: int) -> np.ndarray[Any, Any]:
    """H[i, j] = (-1)^(number of ones in i and j)."""
    return np.array(
        [[-1.0 if (i & j).bit_count() % 2 else 1.0 for j in range(n)] for i in range(n)]
    )


@pytest.mark.parametrize("n", [2, 16, 32])
def test_it_is_the_matrix_of_parities(n: int) -> None:
    x = np.random.default_rng(n).integers(-50, 50, (3, 4 * n)).astype(np.float32)
    signs = np.where(np.arange(n) % 3, 1, -1)
    want = (x.reshape(3, 4, n) * signs @ by_parity(n)).reshape(x.shape)
    scale = np.float32(1 / np.sqrt(n))
    assert (hadamard(x, n, signs) == want.astype(np.float32) * scale).all()


def test_an_outlier_is_spread_over_its_run_and_comes_back() -> None:
    x = np.zeros((1, 32), np.float32)
    x[0, 5] = 64
    y = hadamard(x, 16)
    assert (np.abs(y[0, :16]) == 16).all()
    assert not y[0, 16:].any()
    assert (hadamard(y, 16) == x).all()


@pytest.mark.parametrize("n", [0, 1, 3, 24, 64, True, "16"])
def test_other_sizes_are_refused(n: Any) -> None:
    with pytest.raises(InputError, match="power of two"):
        hadamard(np.zeros((1, 32), np.float32), n)


def test_signs_are_plus_and_minus_one() -> None:
    with pytest.raises(InputError, match="16 numbers"):
        hadamard(np.zeros((1, 32), np.float32), 16, np.zeros(16))
