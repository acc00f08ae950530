"""lesson_08: exercises of the epilogue, on example 72b's configuration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fp4ref
from fp4ref.frames import derive
from fp4ref.gemm.config import SUBTILE_N, TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware.tmem import CELL_NBYTES, LANE_NBYTES, address, lane_column
from fp4ref.lessons.exercise import exercise
from fp4ref.numerics import decode_ue8m0, encode_e2m1, encode_ue8m0, quantize_blocks
from fp4ref.trace import Event, Range, Trace

CONFIG = GemmConfig.example_72b()
ROW, STAGE, SUBTILE = 77, 1, 2

F32 = NDArray[np.float32]


@cache
def two_tiles() -> Trace:
    """Trace two tiles on one SM, so that both accumulators are used, all work late."""
    rng = np.random.default_rng(8)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, 2 * TILE_K), np.float32))
        for rows in (2 * TILE_M, TILE_M)
    )
    trace = fp4ref.run(a, b, config=CONFIG, schedule="late", sms=1).trace
    assert trace is not None
    return trace


@cache
def one_tile() -> Trace:
    """Trace the notebook's tile under the late schedule."""
    rng = np.random.default_rng(8)
    a, b = (
        fp4ref.quantize(rng.standard_normal((TILE_M, 2 * TILE_K), np.float32))
        for _ in range(2)
    )
    trace = fp4ref.run(a, b, config=CONFIG, schedule="late", sms=1).trace
    assert trace is not None
    return trace


# -- 08.1


@cache
def _reader() -> dict[str, Any]:
    """Find the load of TMEM that reads one cell."""
    trace = two_tiles()
    column = plan(CONFIG).tmem.accumulators[STAGE] + SUBTILE * SUBTILE_N
    cell = Range("tmem0", ROW * LANE_NBYTES + column * CELL_NBYTES, CELL_NBYTES)
    load = next(
        e
        for e in trace.select(operation="tcgen05.ld")
        if any(cell.overlaps(where) for where in e.reads)
    )
    lane, _ = lane_column(load.operands["taddr"])
    return {
        "warp": int(trace.events[load.issued].agent.removeprefix("warp")),
        "thread": ROW - lane,
        "taddr": load.operands["taddr"],
        "registers": load.operands["repeat"],
    }


@exercise(
    "08.1",
    title="Who reads row 77, and where",
    frames=("7 ctx", "7.3", "7.5"),
    hints=(
        "Lanes are rows of the tile. In which quarter of the 128 lanes is row 77?",
        "Only warps w with w % 4 == 2 reach lanes 64 to 95, and the epilogue's warps "
        "are 4 to 7.",
        "One address serves the warp: its first lane << 16 | the first column. "
        "Accumulator 1 starts at column 128, subtile 2 is 64 columns further.",
    ),
    wrong=(
        # One epilogue warp, warp 1; 4 x 4 values a thread; 64 KB at 0x1000.
        {"warp": 1, "thread": 13, "taddr": 0x1000, "registers": 16},
        _reader() | {"warp": 1},
        _reader() | {"registers": 16},
        # The warp's number inside the epilogue.
        _reader() | {"warp": 2},
        # A lane field for each thread.
        _reader() | {"thread": 0, "taddr": address(ROW, 192)},
        # Accumulator 0.
        _reader() | {"taddr": address(64, 64)},
    ),
)
def reader() -> dict[str, Any]:
    """Warp, thread, address and registers of the load of row 77."""
    return _reader()


# -- 08.2


def _blocks() -> list[tuple[F32]]:
    """Blocks on ties, on both sides of a power of two, and of special values."""
    rng = np.random.default_rng(82)
    ties = [6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.75, -5, 0, -0.0, 1, 2, 4]
    above = np.nextafter(np.float32(6), np.float32(7))
    blocks = [
        np.array(ties),
        np.array([7, *ties[1:]]),
        np.array([above, *ties[1:]]),
        np.array([0.0, -0.0] * 8),
        np.array([np.inf, *ties[1:]]),
        np.array([np.nan, *ties[1:]]),
    ]
    blocks += [rng.standard_normal(16) * 2.0**e for e in (-20, -3, 0, 9, 40)]
    return [(block.astype(np.float32),) for block in blocks]


def _by(z: F32, scale: Any) -> list[int]:
    """Scale code and element codes, for a scale code that is given."""
    reciprocal = decode_ue8m0(np.uint8(254) - np.uint8(scale))
    with np.errstate(all="ignore"):
        s = np.minimum(np.float32(2) * reciprocal, np.finfo(np.float32).max)
        return [int(scale), *(int(code) for code in encode_e2m1(z * s))]


def _target(z: F32, largest: float) -> Any:
    """The value that the scale encodes, if E2M1 ended at `largest`."""
    with np.errstate(all="ignore"):
        factor = np.float32(2) * (np.float32(1) / np.float32(largest))
        return np.abs(z).max() * factor


def _seven(z: F32) -> list[int]:
    """Divide the maximum by 7."""
    return _by(z, encode_ue8m0(_target(z, 7), "rp"))


def _round_down(z: F32) -> list[int]:
    """Round the scale to the power of two below."""
    return _by(z, encode_ue8m0(_target(z, 6), "rz"))


def _no_norm(z: F32) -> list[int]:
    """Leave the norm constant out of the scale."""
    with np.errstate(all="ignore"):
        return _by(z, encode_ue8m0(_target(z, 6) / np.float32(2), "rp"))


def _codes_one_high(z: F32) -> list[int]:
    """Take 0b0110 for 3.0 and 0b0111 for 4.0."""
    scale, *codes = right_block(z)
    return [scale, *(code + (code & 7 in (5, 6)) for code in codes)]


def _drop_nan(z: F32) -> list[int]:
    """Take the maximum of what is a number."""
    return _by(z, encode_ue8m0(_target(z[~np.isnan(z)], 6), "rp"))


@exercise(
    "08.2",
    title="Sixteen values to E2M1 with a UE8M0 scale",
    frames=("7.7",),
    hints=(
        "The largest E2M1 value is 6, not 7. In float32 the scale encodes "
        "`amax * (norm * (1 / 6))`.",
        '`encode_ue8m0(x, "rp")` rounds up; `np.abs(z).max()` keeps a NaN, as '
        "`max.NaN` does.",
        "The reciprocal of a UE8M0 scale is exact: `decode_ue8m0(254 - scale)`. "
        "Clip `norm * reciprocal` to the largest float32 before you multiply.",
    ),
    wrong=(_seven, _round_down, _no_norm, _codes_one_high, _drop_nan),
    cases=_blocks,
)
def right_block(z: F32) -> list[int]:
    """Return the scale code, then the sixteen element codes."""
    codes, scales = quantize_blocks(
        z, norm=CONFIG.epilogue.norm_constant, scale_format=CONFIG.epilogue.sfd_format
    )
    return [int(scales[0]), *codes.tolist()]


# -- 08.3


def _last(trace: Trace, operation: str, kind: str, frame: str) -> Event:
    found = trace.select(operation=operation, frame=frame)
    return [e for e in found if e.kind == kind and e.agent != "tma.read"][-1]


@cache
def _order() -> str:
    trace, store = one_tile(), "cp.async.bulk.tensor.3d.store"
    steps = {
        "a": _last(trace, store, "land", "7.9").step,
        "b": _last(trace, "mbarrier.arrive", "sync", "7.10").step,
        "c": _last(trace, "tcgen05.wait::ld", "sync", "7.5").step,
        "d": _last(trace, "cp.async.bulk.wait_group", "sync", "7.11").step,
        "e": _last(trace, store, "issue", "7.9").step,
        "f": _last(trace, "st.shared", "sync", "7.9").step,
    }
    return "".join(sorted(steps, key=steps.__getitem__))


@exercise(
    "08.3",
    title="The end of a tile, in order",
    frames=("7.10", "7.11"),
    hints=(
        "The accumulator is needed until its values are in registers, and no longer.",
        "`wait_group.read` is about the source of a store, not about its destination.",
        "`late.trace` has every step: look at frames 7.5, 7.10, 7.9 and 7.11.",
    ),
    why=(
        "The accumulator is given back as soon as its values are in registers. The "
        "store tail waits until shared memory is read, not until D is in global "
        "memory."
    ),
    wrong=(
        # Release after the stores; a tail that waits for global memory; both.
        "cfebda",
        "cbfead",
        "cfeabd",
        "cfebad",
        # Release before the registers are there.
        "bcfeda",
    ),
)
def end_of_a_tile() -> str:
    """Letters of the events in the order of the late run."""
    return _order()


# -- 08.4


@cache
def _books() -> dict[str, int]:
    trace = one_tile()
    summary = derive("7.12", trace)
    waits = trace.select(operation="bar.sync", frame="7.1")
    stores = trace.select(operation="cp.async.bulk.tensor.3d.store")
    return {
        "threads": waits[0].operands["threads"],
        "waiting": WARP_THREADS * len(waits),
        "stores": summary["stores"],
        "bytes by TMA": summary["d_bytes"],
        "mbarriers": sum(len(e.barrier) for e in stores),
        "arrivals": summary["arrivals"],
    }


@exercise(
    "08.4",
    title="The books of one tile",
    frames=("7.1", "7.8", "7.9", "7.10", "7.12"),
    hints=(
        "A subtile is 128 rows of 32 columns, and its box goes out on its own.",
        "The scales are written by `st.global`. A bulk-group store has no mbarrier "
        "operand.",
        "One warp allocates and arrives; four wait for it. And every thread of those "
        "four gives the accumulator back.",
    ),
    # Each believes one thing that the document says.
    wrong=(
        _books() | {"threads": 64},
        _books() | {"waiting": 160},
        _books() | {"stores": 1},
        _books() | {"bytes by TMA": 9_216},
        _books() | {"mbarriers": 1},
        _books() | {"arrivals": 1},
    ),
)
def books() -> dict[str, int]:
    """Threads, stores, bytes and arrivals of one epilogue tile."""
    return _books()
