"""wrong_rules: rules of the tensor core's machine, each of which can be made wrong.

Other authors' kernels have to show each of them. Nothing here needs their compilers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fp4ref.hardware import mbarrier, smem, tcgen05, tmem_access
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat

U8 = NDArray[np.uint8]


def _nibbles_of_a(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give A the upper nibble first; in both operands it would cancel out."""
    right = tcgen05.PackedStep
    monkeypatch.setattr(
        tcgen05, "PackedStep", lambda a, *more: right(a >> 4 | a << 4, *more)
    )


def _scales(change: Callable[[U8], U8]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = tcgen05.read_scales

        def wrong(*args: Any, **kwargs: Any) -> U8:
            return change(right(*args, **kwargs))

        monkeypatch.setattr(tcgen05, "read_scales", wrong)

    return patch


def _decode(**change: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Read a field of the instruction descriptor wrongly."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = tcgen05.InstrDescriptor.decode
        monkeypatch.setattr(
            tcgen05.InstrDescriptor,
            "decode",
            staticmethod(lambda word, *more: replace(right(word, *more), **change)),
        )

    return patch


def _smem(**change: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Read a field of the shared-memory descriptor wrongly."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = smem.SmemDescriptor.decode
        monkeypatch.setattr(
            tcgen05.SmemDescriptor,
            "decode",
            staticmethod(lambda word, *more: replace(right(word, *more), **change)),
        )

    return patch


def _fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tcgen05.ld and st name the lane next to the right one."""
    right = tmem_access.fragment

    def wrong(*args: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lane, column = right(*args)
        return lane ^ 1, column

    monkeypatch.setattr(tmem_access, "fragment", wrong)
    tmem_access._cells.cache_clear()


def _quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tmem_access.lane_column
    monkeypatch.setattr(
        tmem_access, "lane_column", lambda t: (right(t)[0] ^ 32, right(t)[1])
    )
    tmem_access._cells.cache_clear()


def _parity(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mbarrier.MbarrierUnit.has_completed
    monkeypatch.setattr(
        mbarrier.MbarrierUnit,
        "has_completed",
        lambda unit, address, parity: not right(unit, address, parity),
    )


def _input_d(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every MMA start from +0."""
    right = tcgen05.add_packed
    monkeypatch.setattr(
        tcgen05, "add_packed", lambda *given, clean: right(*given, clean=True)
    )


RULES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "nibble order": _nibbles_of_a,
    "scale column of a row": _scales(lambda s: np.roll(s, 32, axis=0)),
    "scale lane of a row": _scales(lambda s: np.roll(s, 1, axis=0)),
    "scale byte of a block": _scales(lambda s: np.ascontiguousarray(s[:, ::-1])),
    "idesc scale type": _decode(scale_format=ScaleFormat.UE8M0),
    "idesc negate": _decode(negate_a=True),
    "idesc N": _decode(n=32),
    "smem swizzle code": _smem(swizzle=SwizzleMode.NONE),
    "smem stride": _smem(stride_nbytes=1024),
    "lane of tcgen05.ld and st": _fragment,
    "lane quarter of tcgen05.ld and st": _quarter,
    "phase parity": _parity,
    "enable-input-d": _input_d,
}
