"""blas_threads: OpenBLAS has its threads again; shared rows are the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from tier_cases import block_scaled

from fp4ref.numerics import blas_threads, compiled, tiers

BLAS = blas_threads._open_blas()
needs_openblas = pytest.mark.skipif(
    BLAS is None, reason="NumPy multiplies by another library than OpenBLAS here"
)


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch):
    """Three threads for BLAS and for loops."""
    before = BLAS.get()
    monkeypatch.setattr(compiled, "THREADS", 3)
    BLAS.set(3)
    yield
    BLAS.set(before)


@pytest.mark.parametrize("error", [OSError, ImportError])
def test_without_the_library_there_is_no_openblas(monkeypatch, error) -> None:
    def missing(*_):
        raise error

    monkeypatch.setattr(blas_threads.ctypes, "CDLL", missing)
    assert blas_threads._open_blas.__wrapped__() is None


@needs_openblas
@pytest.mark.usefixtures("three_threads")
def test_blas_is_held_to_one_thread_and_let_go_by_the_last() -> None:
    with blas_threads.one_thread():
        assert BLAS.get() == 1
        with blas_threads.one_thread():
            assert BLAS.get() == 1
        assert BLAS.get() == 1
    assert BLAS.get() == 3
    with pytest.raises(ZeroDivisionError), blas_threads.one_thread():
        _ = 1 / 0
    assert BLAS.get() == 3


@needs_openblas
@pytest.mark.usefixtures("three_threads")
def test_a_product_leaves_the_number_of_threads_as_it_was() -> None:
    seen = []
    shared = blas_threads.multiply

    def watched(*arguments, **options):
        seen.append(BLAS.get())
        return shared(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blas_threads, "multiply", watched)
        d, _ = tiers.multiply(block_scaled("normal", 1, 130, 140, 512))
    assert set(seen) == {1}
    assert BLAS.get() == 3
    assert np.array_equal(
        d, tiers.multiply(block_scaled("normal", 1, 130, 140, 512))[0]
    )


@needs_openblas
@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("rows", [1, 5, 130])
def test_shared_rows_are_all_there(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "SERIAL_LIMIT", 1)
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-9, 9, (count, 64)) for count in (rows, 70))
    pieces = []
    matmul = np.matmul

    def counted(some, other, out):
        pieces.append(len(some))
        return matmul(some, other, out=out)

    monkeypatch.setattr(blas_threads.np, "matmul", counted)
    with blas_threads.one_thread():
        found = blas_threads.multiply(a.astype(np.float32), b.astype(np.float32))
    assert np.array_equal(found, a @ b.T)
    assert sum(pieces) == rows
    assert len(pieces) > 1 or rows == 1


def test_without_openblas_the_library_keeps_its_threads(monkeypatch) -> None:
    monkeypatch.setattr(blas_threads, "_open_blas", lambda: None)
    monkeypatch.setattr(compiled, "THREADS", 3)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    with blas_threads.one_thread():
        assert np.array_equal(blas_threads.multiply(a, a), a @ a.T)
