"""conftest: traces of tile (5, 0) of the default GEMM."""

from __future__ import annotations

import numpy as np
import pytest

import fp4ref
from fp4ref.gemm.config import GemmConfig
from fp4ref.trace import Trace


def operand(seed: int) -> fp4ref.BlockScaled:
    rng = np.random.default_rng(seed)
    return fp4ref.BlockScaled(
        rng.integers(0, 16, (2048, 2048)).astype(np.uint8),
        rng.integers(0x20, 0x50, (2048, 128)).astype(np.uint8),
        format="nvfp4",
    )


@pytest.fixture(scope="session")
def operands() -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    return operand(5), operand(0)


def traced(
    operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled], schedule: str | int
) -> Trace:
    a, b = operands
    config = GemmConfig.example_72b()
    found = fp4ref.run(a, b, config=config, tiles=[(5, 0)], schedule=schedule)
    assert found.trace is not None
    return found.trace


@pytest.fixture(scope="session")
def trace(operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]) -> Trace:
    """Tile (5, 0) of the default GEMM."""
    return traced(operands, "eager")


@pytest.fixture(scope="session")
def late_trace(operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]) -> Trace:
    return traced(operands, "late")
