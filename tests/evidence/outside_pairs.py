"""outside_pairs: A in TMEM, MMAs of a CTA pair, and fences, as others have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pair_tiles
from mma_tiles import with_tmem
from on_machine import MBAR
from order_cases import ready
from outside_mma import (
    A_AT,
    A_COLUMN,
    B_AT,
    N,
    commit_and_wait,
    descriptor,
    f16_word,
    integers,
    put_tile,
    rows_of,
)
from outside_programs import PAIR, Body, LaneProgram, Program

from fp4ref.hardware import mbarrier, mma_unscaled, tcgen05, tmem
from fp4ref.hardware import named_barrier as bar


def _pair(m: int, issuer: int, steps: Any, mma: Any) -> tuple[Body, ...]:
    """An MMA of a pair; each CTA notes whether its rows of D are the sums."""
    a, b = integers(5, m, 16), integers(6, N * 2, 16)
    want = a @ b.T

    def body(warp: Any) -> Any:
        rank = warp.cta.rank
        mine = slice(rank * m // 2, (rank + 1) * m // 2)
        put_tile(warp.cta, A_AT, rows_of(a[mine], "f16"))
        put_tile(warp.cta, B_AT, rows_of(b[rank * N : (rank + 1) * N], "f16"))
        steps(warp, rows_of(a[mine], "f16"))
        yield from pair_tiles.sync(warp)
        if rank == issuer:
            mma(warp)
            tcgen05.commit(warp, MBAR, 0b11, 2)
        yield from mbarrier.try_wait(warp, warp.cta.smem_base, 0)
        tcgen05.fence_after_thread_sync(warp)
        halves = [want[mine]] if m == 256 else np.hsplit(want[mine], 2)
        found = warp.tmem.cells[:, : halves[0].shape[1]].view(np.float32)
        same = np.array_equal(found, np.concatenate(halves))
        warp.machine.said.append("sum" if same else "other")

    return (pair_tiles.in_pair(body),)


def issuer(rank: int) -> tuple[Body, ...]:
    """A thread of one of the CTAs issues."""

    def mma(warp: Any) -> None:
        at = descriptor(A_AT), descriptor(B_AT)
        mma_unscaled.mma(warp, 0, *at, f16_word(256, 2 * N), False, cta_group=2)

    return _pair(256, rank, lambda warp, rows: None, mma)


def twice(other: str) -> tuple[Body, ...]:
    """64 rows of A in each CTA: in lanes 0 to 63, and what else is in 64 to 127?"""

    def steps(warp: Any, rows: Any) -> None:
        for row, line in enumerate(rows):
            second = line if other == "the same" else np.zeros_like(line)
            for lane, data in ((row, line), (row + 64, second)):
                warp.tmem.poke(lane * 2048 + 4 * A_COLUMN, data)

    def mma(warp: Any) -> None:
        word, b = f16_word(128, 2 * N), descriptor(B_AT)
        options = {"a_in_tmem": True, "cta_group": 2}
        mma_unscaled.mma(warp, 0, A_COLUMN, b, word, False, **options)

    return _pair(128, 0, steps, mma)


def lanes(variant: tuple[int, int]) -> tuple[Body, ...]:
    """64 rows of A in one half of each lane quarter, and D in one."""
    of_a, of_d = variant
    a, b = integers(5, 64, 16), integers(6, N, 16)

    def steps(warp: Any) -> Any:
        put_tile(warp.cta, B_AT, rows_of(b, "f16"))
        for row, line in enumerate(rows_of(a, "f16")):
            lane = 32 * (row // 16) + row % 16
            for half in (0, 16):
                warp.tmem.poke((lane + half) * 2048 + 4 * A_COLUMN, line)
        at = of_a << 16 | A_COLUMN, descriptor(B_AT)
        word = f16_word(64, N)
        mma_unscaled.mma(warp, of_d << 16, *at, word, False, a_in_tmem=True)
        yield from commit_and_wait(warp)

    return (with_tmem(steps),)


def handed_over(variant: tuple[bool, bool]) -> tuple[Body, ...]:
    """A warp has loaded columns, waited, and met the warp that stores to them."""
    before, after = variant

    def loading(warp: Any) -> Any:
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, MBAR + 8, 32)
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        tmem.ld(warp, 0, "32x32b", 1)
        yield from tmem.wait_ld(warp)
        if before:
            tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 160)
        yield from bar.sync(warp, 1, 160)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, 0, 32)

    def idle(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 160)
        yield from bar.sync(warp, 1, 160)

    def storing(warp: Any) -> Any:
        """Warp 4 has the lanes of warp 0."""
        yield from ready(warp)
        yield from bar.sync(warp, 1, 160)
        if after:
            tcgen05.fence_after_thread_sync(warp)
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 160)

    return loading, idle, idle, idle, storing


def registers(waits: str) -> str:
    """Two loads into one register."""
    wait = "tcgen05.wait::ld.sync.aligned;" if waits == "waited" else ""
    return f"""
        .shared .align 4 .b32 slot; .reg .b32 %t<3>;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
        bar.sync 0; ld.shared.b32 %t0, [slot];
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%t0], {{%r3}};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%t1}}, [%t0];
        {wait}
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%t1}}, [%t0];
        tcgen05.wait::ld.sync.aligned;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t0, 32;
    """


CUTE = "CuTe, mma_traits_sm100.hpp, TmemAllocMode::"
PROGRAMS = {
    "register of two loads": LaneProgram(
        "TIRx-Harness, numsim-core, tcgen_ld: it writes registers until its wait",
        registers,
        {"waited": "clean", "": "error"},
        threads=32,
    ),
    "issuer of a pair's MMA": Program(
        "TIRx-Harness, numsim-core, tcgen_mma: operands from the even CTA on",
        issuer,
        {0: "sum sum", 1: "sum sum"},
        PAIR,
    ),
    "A of a pair with 64 rows": Program(
        f"{CUTE}Duplicated: the data must be in both halves",
        twice,
        {"the same": "sum sum", "zeros": "error"},
        PAIR,
    ),
    "lanes of A and D": Program(
        f"{CUTE}NonInterleaved: required for the same lanes of A and D",
        lanes,
        {(0, 0): "clean", (16, 16): "clean", (16, 0): "error", (0, 16): "error"},
    ),
    "fences of a load and a store": Program(
        "TIRx-Harness, racecheck core: the fences publish and take waited loads",
        handed_over,
        {
            (True, True): "clean",
            (True, False): "error",
            (False, True): "error",
            (False, False): "error",
        },
    ),
}
