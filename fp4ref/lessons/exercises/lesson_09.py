"""lesson_09: exercises of the tile scheduler, the CLC answers and the end of a CTA."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

import fp4ref
from fp4ref.frames import derive
from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.plan.warps import WARP_THREADS, NamedBarrierId, WarpRole
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware import clc
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Cta, Role, Warp
from fp4ref.lessons.exercise import exercise
from fp4ref.trace import Trace

CONFIG = GemmConfig.example_72b()
K_TILES = 8
WITH_C = GemmConfig.example_72b(beta=1.0)
SMS, TILES_M, TILES_N = 4, 5, 3


@cache
def one_tile() -> Trace:
    """Trace one tile of eight k-tiles under the late schedule."""
    rng = np.random.default_rng(9)
    a, b = (
        fp4ref.quantize(rng.standard_normal((TILE_M, K_TILES * TILE_K), np.float32))
        for _ in range(2)
    )
    trace = fp4ref.run(a, b, config=CONFIG, schedule="late", sms=1).trace
    assert trace is not None
    return trace


@cache
def many_tiles() -> fp4ref.Run:
    """Run 5 x 3 tiles on four SMs, with C, so that all eight warps work."""
    m, n, k = TILES_M * TILE_M, TILES_N * WITH_C.tile.n, 32
    rng = np.random.default_rng(9)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, k), np.float32)) for rows in (m, n)
    )
    c = rng.standard_normal((m, n), np.float32)
    return fp4ref.run(a, b, c, config=WITH_C, schedule=0, sms=SMS)


# -- 09.1

Tile = tuple[int, ...]


def _words(response: bytes) -> list[int]:
    return [int(word) for word in np.frombuffer(response, "<u4")]


def _answers() -> list[tuple[bytes, str]]:
    """Answers with large and with all three indices, and refusals."""
    ctaids = [(5, 0, 0), (0, 5, 0), (3, 2, 1), (70_000, 2, 0), (1, 40_000, 3)]
    cases = [
        (clc.encode_response(ctaid).tobytes(), raster)
        for ctaid in ctaids
        for raster in ("m", "n")
    ]
    stale = np.array([3, 2, 0, 0], "<u4").tobytes()
    return [*cases, (clc.encode_response(None).tobytes(), "m"), (stale, "n")]


def _document(response: bytes, raster: str) -> Tile:
    """A 16-bit CTA number, a 16-bit batch and a valid bit in one word, along M."""
    word = _words(response)[0]
    number, batch = word & 0xFFFF, word >> 16 & 0x7FFF
    return (number % 16, number // 16, batch) if word else ()


def _always_along_m(response: bytes, raster: str) -> Tile:
    """Take x for M, whatever the raster."""
    found: Tile = right_tile(response, "m")
    return found


def _flag_ignored(response: bytes, raster: str) -> Tile:
    """Every answer is a tile."""
    x, y, *_ = _words(response)
    x, y, z = x, y & 0xFFFF, y >> 16
    return (x, y, z) if raster == "m" else (y, x, z)


def _word_each(response: bytes, raster: str) -> Tile:
    """One word for each index, and the flag in the last."""
    x, y, z, flag = _words(response)
    if not flag:
        return ()
    return (x, y, z) if raster == "m" else (y, x, z)


@exercise(
    "09.1",
    title="Sixteen bytes to a tile",
    frames=("1.10", "2.2", "2.4"),
    hints=(
        "Read four little-endian words; `np.frombuffer(response, '<u4')` does it.",
        "Bit 0 of word 2 first: without it the other words mean nothing.",
        "Word 0 is x. Word 1 holds y in its low half and z, the batch, in its high "
        "half. x runs along the raster dimension.",
    ),
    wrong=(_document, _always_along_m, _flag_ignored, _word_each),
    cases=_answers,
)
def right_tile(response: bytes, raster: str) -> Tile:
    """Return (m, n, l); an empty tuple where nothing was canceled."""
    raw = np.frombuffer(response, np.uint8)
    if not clc.is_canceled(raw):
        return ()
    work = TileGrid(1 << 20, 1 << 20, 1 << 16, raster).tile(clc.get_first_ctaid(raw))
    return work.m, work.n, work.l


# -- 09.2

_FIRST_WORK = {
    WarpRole.MMA: "tcgen05.mma",
    WarpRole.SCHEDULER: "clusterlaunchcontrol.try_cancel",
    WarpRole.MAINLOOP_LOAD: "cp.async.bulk.tensor",
    WarpRole.EPILOGUE_LOAD: "cp.async.bulk.tensor",
    WarpRole.EPILOGUE: "tcgen05.ld",
}


def _fetches_before(trace: Trace, role: WarpRole) -> bool:
    """Whether a warp knows its second tile before it works on the first."""
    events = trace.select(agent=f"warp{role.value}", cta=(0, 0, 0))
    work = next(e for e in events if e.operation.startswith(_FIRST_WORK[role]))
    fetch = next(e for e in events if e.operation == "tile_scheduler.next_work")
    return fetch.step < work.step


def _names(roles: Iterable[WarpRole]) -> set[str]:
    return {role.name.lower().replace("_", " ") for role in roles}


@cache
def _schedule_books() -> dict[str, Any]:
    run = many_tiles()
    assert run.trace is not None
    requests = run.stats["clusterlaunchcontrol.try_cancel"]
    before = [role for role in WarpRole if _fetches_before(run.trace, role)]
    return {
        "ctas": run.stats["cta"],
        "requests": requests,
        "refusals": requests - run.stats["clc.canceled"],
        "before": _names(before),
    }


@exercise(
    "09.2",
    title="Fifteen tiles on four SMs, and who looks ahead",
    frames=("2.1", "2.4"),
    hints=(
        "Each SM starts one CTA. What does each of them hear at the end?",
        "One request for each tile that is taken over, and one more for each CTA: the "
        "one that finds nothing.",
        "For each warp of one CTA: which comes first in the trace, its first "
        "`tile_scheduler.next_work`, or its first MMA, copy, request or `tcgen05.ld`?",
    ),
    why=(
        "Each tile after the first four is one request that is granted, and each CTA "
        "ends with one refusal."
    ),
    wrong=(
        # Every warp asks after its tile.
        _schedule_books() | {"before": set()},
        _schedule_books() | {"before": {"scheduler", "mainloop load"}},
        _schedule_books() | {"before": _names(WarpRole)},
        # A CTA for each tile; requests that always succeed; one refusal in all.
        _schedule_books() | {"ctas": TILES_M * TILES_N},
        _schedule_books() | {"requests": TILES_M * TILES_N - SMS, "refusals": 0},
        _schedule_books() | {"requests": TILES_M * TILES_N - SMS + 1, "refusals": 1},
    ),
)
def schedule_books() -> dict[str, Any]:
    """CTAs, requests and refusals, and the roles that fetch before they work."""
    return _schedule_books()


# -- 09.3


def _tensor_memories_of_a_pair() -> int:
    """Launch one cluster of two CTAs and count their tensor memories."""
    seen = set()

    def kernel(cta: Cta) -> list[Role]:
        seen.add(id(cta.tmem))
        return [_nothing]

    Machine(2).launch(kernel, (2, 1, 1), cluster=(2, 1, 1))
    return len(seen)


def _nothing(warp: Warp) -> Any:
    """A role without work."""
    yield from ()


@cache
def _end_books() -> dict[str, Any]:
    trace = one_tile()
    (freed,) = trace.select(operation="tcgen05.dealloc")
    stores = trace.select(operation="st.global", agent=freed.agent)
    barriers = trace.select(operation="bar.sync", agent=freed.agent)
    whole = NamedBarrierId.CTA.value
    return {
        "threads": WARP_THREADS,
        "columns": freed.operands["columns"],
        "bytes": derive("8.8", trace)["tmem_bytes"],
        "global stores": len(stores),
        "CTA barriers": sum(e.operands["barrier"] == whole for e in barriers),
        "TMEMs of a pair": _tensor_memories_of_a_pair(),
    }


@exercise(
    "09.3",
    title="The end of a CTA, in numbers",
    frames=("8.2", "8.4", "8.5", "8.7", "8.8"),
    hints=(
        "`.sync.aligned` in the name of an instruction says who executes it.",
        "A cell of TMEM has 32 bits, and a column has 128 of them.",
        "Look at warp 0 in `tile.trace`: which of its operations touch global memory, "
        "and how often does it execute `bar.sync` on barrier 0, the whole CTA's?",
    ),
    why=(
        "One warp frees what it allocated: 512 columns of 128 lanes of four bytes. It "
        "stores nothing to global memory."
    ),
    # Each believes one thing that the document says.
    wrong=(
        _end_books() | {"threads": 1},
        _end_books() | {"columns": 1_024},
        _end_books() | {"bytes": 131_072},
        _end_books() | {"global stores": 1},
        _end_books() | {"CTA barriers": 2},
        _end_books() | {"TMEMs of a pair": 1},
    ),
)
def end_books() -> dict[str, Any]:
    """Who frees how much, and what is not there."""
    return _end_books()


# -- 09.4


@cache
def _totals() -> dict[str, Any]:
    trace = one_tile()
    found = derive("8.10", trace)
    return {
        "mmas": found["mmas"],
        "read": found["read_bytes"],
        "total": found["total_bytes"],
        "operations per byte": round(found["operations_per_byte"]),
        "mbarriers": derive("8.8", trace)["mbarriers"],
        "cycles": derive("8.9", trace).get("cycles"),
    }


@exercise(
    "09.4",
    title="The totals of one tile",
    frames=("8.8", "8.9", "8.10"),
    hints=(
        "Eight k-tiles, four MMAs in each; a stage is 36,864 bytes.",
        "D is 8,192 bytes and SFD 1,024. One MMA is 128 x 128 x 64 multiply-adds, each "
        "of them two operations.",
        "A trace is an order of steps. Can it say how long one takes?",
    ),
    why=(
        "A trace is an order of steps and gives no cycles. The rest are counts and "
        "bytes that follow from the tile."
    ),
    # Each believes one thing that the document says.
    wrong=(
        _totals() | {"mmas": 128},
        _totals() | {"read": 262_400},
        _totals() | {"total": 271_616},
        _totals() | {"operations per byte": 124},
        _totals() | {"mbarriers": 40},
        _totals() | {"cycles": 20},
    ),
)
def totals() -> dict[str, Any]:
    """MMAs, bytes, intensity and barriers of a tile; no time."""
    return _totals()
