"""outside_tensor: other checkers' programs of tcgen05 and TMEM."""

from __future__ import annotations

from typing import Any

import numpy as np
from mma_tiles import SF_AT, SF_WORD, SFA, easy_mma, easy_scales, put_memory
from on_machine import MBAR
from order_cases import WORD, ZEROS, ready
from outside_programs import PAIR, RACECHECK, SYNCCHECK, Body, Program

from fp4ref.hardware import cluster, mbarrier, smem, tcgen05, tmem
from fp4ref.hardware import named_barrier as bar
from fp4ref.hardware.mbarrier import Semantics

RELAXED = Semantics(relaxed=True, scope="cta")


def _columns(warp: Any, at: int) -> int:
    """Return the address that an alloc wrote."""
    return int(smem.ld(warp, at, 4).view("<u4")[0])


def _committed(warp: Any, at: int = MBAR, parity: int = 0) -> Any:
    tcgen05.commit(warp, at)
    yield from mbarrier.try_wait(warp, at, parity)


def copy_then_reuse(fenced: bool) -> tuple[Body, ...]:
    """A copy to TMEM is committed and waited for; its source is written again."""

    def copying(warp: Any) -> Any:
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.commit(warp, MBAR)
        yield from bar.sync(warp, 1, 64)
        tmem.dealloc(warp, 0, 512)

    def writing(warp: Any) -> Any:
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        if fenced:
            smem.fence_proxy_async(warp)
        smem.st(warp, SF_AT, ZEROS)
        yield from bar.sync(warp, 1, 64)

    return copying, writing


def copy_to_mma(variant: tuple[str, str]) -> tuple[Body, ...]:
    """A copy by one warp and an MMA of its columns by another, and a hand-over."""
    over, missing = variant
    semantics = RELAXED if over == "relaxed wait" else None

    def copying(warp: Any) -> Any:
        yield from ready(warp, 1, 1, 1)
        yield from tmem.alloc(warp, MBAR + 64, 512)
        easy_scales(warp)
        yield from bar.sync(warp, 1, 64)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        if missing != "before":
            tcgen05.fence_before_thread_sync(warp)
        if over == "cta barrier":
            yield from bar.sync(warp, 1, 64)
        else:
            mbarrier.arrive(warp, MBAR + 16)
        yield from bar.sync(warp, 2, 64)
        yield from _committed(warp)
        tmem.dealloc(warp, 0, 512)

    def multiplying(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 64)
        if over == "cta barrier":
            yield from bar.sync(warp, 1, 64)
        elif semantics is None:
            yield from mbarrier.try_wait(warp, MBAR + 16, 0)
        else:
            yield from mbarrier.try_wait(warp, MBAR + 16, 0, semantics)
        if missing != "after":
            tcgen05.fence_after_thread_sync(warp)
        easy_mma(warp)
        yield from _committed(warp, MBAR + 8)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 2, 64)

    return copying, multiplying


def two_copies(between: str) -> tuple[Body, ...]:
    """Two copies to the same columns by one thread, which are no pipeline."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1, 1)
        yield from tmem.alloc(warp, MBAR + 16, 512)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        if between == "before fence":
            tcgen05.fence_before_thread_sync(warp)
        elif between == "after fence":
            tcgen05.fence_after_thread_sync(warp)
        elif between.startswith("commit"):
            tcgen05.commit(warp, MBAR)
        if "wait" in between:
            yield from mbarrier.try_wait(warp, MBAR, 0)
        if between.endswith("after fence"):
            tcgen05.fence_after_thread_sync(warp)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        yield from _committed(warp, MBAR + 8)
        if between == "commit":
            yield from mbarrier.try_wait(warp, MBAR, 0)
        tmem.dealloc(warp, _columns(warp, MBAR + 16), 512)

    return (body,)


def load_then_store(waits: bool) -> tuple[Body, ...]:
    """A warp loads columns and another one stores to them, with a fence at each end."""

    def loading(warp: Any) -> Any:
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, MBAR + 8, 32)
        at = _columns(warp, MBAR + 8)
        tmem.st(warp, at, np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        tmem.ld(warp, at, "32x32b", 1)
        if waits:
            yield from tmem.wait_ld(warp)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 160)
        yield from tmem.wait_ld(warp)
        yield from bar.sync(warp, 1, 160)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, at, 32)

    def idle(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 160)
        yield from bar.sync(warp, 1, 160)

    def storing(warp: Any) -> Any:
        """Warp 4 has the lanes of warp 0."""
        yield from ready(warp)
        yield from bar.sync(warp, 1, 160)
        tcgen05.fence_after_thread_sync(warp)
        tmem.st(warp, _columns(warp, MBAR + 8), np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 160)

    return loading, idle, idle, idle, storing


def commit_of_observed(acquires: bool) -> tuple[Body, ...]:
    """A word is handed to a thread that commits; another one waits for the commit."""
    semantics = Semantics(scope="cta") if acquires else RELAXED

    def writing(warp: Any) -> Any:
        yield from ready(warp, 1, 1)
        smem.st(warp, WORD, ZEROS)
        mbarrier.arrive(warp, MBAR + 8)

    def committing(warp: Any) -> Any:
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0, semantics)
        tcgen05.commit(warp, MBAR)

    def reading(warp: Any) -> Any:
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.ld(warp, WORD, 4)

    return writing, committing, reading


def commit_of_others(local_work: bool) -> tuple[Body, ...]:
    """A copy by one warp, the commit by another one, and a copy over it by a third."""

    def first(warp: Any) -> Any:
        yield from ready(warp, 1, 1, 1, 1)
        yield from tmem.alloc(warp, MBAR + 64, 512)
        easy_scales(warp)
        yield from bar.sync(warp, 1, 96)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.fence_before_thread_sync(warp)
        mbarrier.arrive(warp, MBAR)
        yield from _committed(warp, MBAR + 16)
        yield from bar.sync(warp, 1, 96)
        tmem.dealloc(warp, 0, 512)

    def second(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 96)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        tcgen05.fence_after_thread_sync(warp)
        if local_work:
            easy_mma(warp)
        tcgen05.commit(warp, MBAR + 8)
        yield from bar.sync(warp, 1, 96)

    def third(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 96)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0)
        tcgen05.fence_after_thread_sync(warp)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        yield from _committed(warp, MBAR + 24)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 96)

    return first, second, third


def transfers(mode: str) -> tuple[Body, ...]:
    """A load and a store of the same columns by one warp."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, MBAR + 8, 32)
        at = _columns(warp, MBAR + 8)
        tmem.st(warp, at, np.zeros((32, 1), np.uint32))
        if "waited" in mode:
            yield from tmem.wait_st(warp)
        tmem.ld(warp, at, "32x32b", 1)
        yield from tmem.wait_ld(warp)
        yield from tmem.wait_st(warp)
        tmem.dealloc(warp, at, 32)

    return (body,)


def leases(what: str) -> tuple[Body, ...]:
    """Columns of one warp: allocated, used, freed, and allocated again."""

    def allocated(warp: Any, columns: int, at: int) -> Any:
        yield from tmem.alloc(warp, MBAR + at, columns)
        return _columns(warp, MBAR + at)

    def body(warp: Any) -> Any:
        words = np.zeros((32, 1), np.uint32)
        first = yield from allocated(warp, 32 if what == "grown" else 64, 8)
        if what == "outside":
            tmem.st(warp, first + 64, words)
        if what == "in use":
            tmem.st(warp, first, words)
            yield from tmem.wait_st(warp)
        if what == "given up":
            tmem.relinquish_alloc_permit(warp)
        if what in ("grown", "given up"):
            second = yield from allocated(warp, 64 if what == "grown" else 32, 16)
            tmem.dealloc(warp, second, 64 if what == "grown" else 32)
        if what == "left":
            return
        columns = 128 if what == "mismatched" else 32 if what == "grown" else 64
        tmem.dealloc(warp, first, columns)
        if what == "after":
            tmem.st(warp, first, words)

    return (body,)


class _Asked:
    """Blocks until another warp has come to its alloc, which orders nothing."""

    def __init__(self, warp: Any) -> None:
        self.machine = warp.machine

    def ready(self) -> bool:
        return bool(getattr(self.machine, "asked", False))


def blocked(_: str) -> tuple[Body, ...]:
    """A warp asks for columns while another one has all of them."""

    def owner(warp: Any) -> Any:
        yield from tmem.alloc(warp, MBAR + 8, 512)
        yield from bar.sync(warp, 1, 64)
        yield _Asked(warp)
        tmem.dealloc(warp, _columns(warp, MBAR + 8), 512)

    def asking(warp: Any) -> Any:
        yield from bar.sync(warp, 1, 64)
        warp.machine.asked = True
        yield from tmem.alloc(warp, MBAR + 16, 256)
        warp.machine.said.append(_columns(warp, MBAR + 16))
        tmem.dealloc(warp, _columns(warp, MBAR + 16), 256)

    return asking, owner


def pair_arguments(what: str) -> tuple[Body, ...]:
    """Both CTAs of a pair allocate and free; one of them asks or does otherwise."""

    def body(warp: Any) -> Any:
        at, rank = warp.cta.smem_base + 8, warp.cta.rank
        columns = 64 << (rank if what == "other columns" else 0)
        yield from tmem.alloc(warp, at, columns, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if what != "one frees" or rank == 0:
            tmem.dealloc(warp, _columns(warp, at), columns, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return (body,)


def two_commits(_: str) -> tuple[Body, ...]:
    """A thread commits to one mbarrier and then to another; the first has arrived."""

    def committing(warp: Any) -> Any:
        yield from ready(warp, 1, 1)
        yield from tmem.alloc(warp, MBAR + 16, 512)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.commit(warp, MBAR)
        tcgen05.commit(warp, MBAR + 8)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0)
        warp.machine.said.append(warp.cta.mbarriers.completed.get(MBAR, 0))
        yield from mbarrier.try_wait(warp, MBAR, 0)
        tmem.dealloc(warp, _columns(warp, MBAR + 16), 512)

    return (committing,)


def places(_: str) -> tuple[Body, ...]:
    """Two allocations; the first one is freed, and a third one made."""

    def body(warp: Any) -> Any:
        said = warp.machine.said
        for at, columns in ((8, 128), (16, 64)):
            yield from tmem.alloc(warp, MBAR + at, columns)
            said.append(_columns(warp, MBAR + at))
        tmem.dealloc(warp, said[0], 128)
        yield from tmem.alloc(warp, MBAR + 24, 32)
        said.append(_columns(warp, MBAR + 24))
        tmem.dealloc(warp, said[1], 64)
        tmem.dealloc(warp, said[2], 32)

    return (body,)


def freed_columns(ordered: bool) -> tuple[Body, ...]:
    """A warp frees the columns that another one loads, after it or before."""

    def owner(warp: Any) -> Any:
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, MBAR + 8, 32)
        tcgen05.fence_before_thread_sync(warp)
        yield from bar.sync(warp, 1, 64)
        if ordered:
            yield from mbarrier.try_wait(warp, MBAR, 0)
            tcgen05.fence_after_thread_sync(warp)
        tmem.relinquish_alloc_permit(warp)
        tmem.dealloc(warp, _columns(warp, MBAR + 8), 32)
        if not ordered:
            mbarrier.arrive(warp, MBAR)

    def reader(warp: Any) -> Any:
        yield from ready(warp)
        yield from bar.sync(warp, 1, 64)
        tcgen05.fence_after_thread_sync(warp)
        at = _columns(warp, MBAR + 8) + (32 << 16)
        tmem.st(warp, at, np.zeros((32, 1), np.uint32))
        yield from tmem.wait_st(warp)
        if not ordered:
            yield from mbarrier.try_wait(warp, MBAR, 0)
        tmem.ld(warp, at, "32x32b", 1)
        yield from tmem.wait_ld(warp)
        tcgen05.fence_before_thread_sync(warp)
        if ordered:
            mbarrier.arrive(warp, MBAR)

    return owner, reader


ARTIFACT = "TIRx-Harness, tools/tests/numsim/integration/test_tmem_artifact.py"
MODEL = "TIRx-Harness, tools/core-rs/numsim-sync-ref and its tests"
NO_PIPELINE = "a copy is complete when its commit has arrived; a fence completes none"
PROGRAMS = {
    "copy to TMEM, source used again": Program(
        f"{RACECHECK}test_native_async_lifetime_contracts.py",
        copy_then_reuse,
        {True: "clean", False: "error"},
        {"setup": put_memory},
    ),
    "copy to TMEM, MMA of another thread": Program(
        f"{RACECHECK}test_native_tcgen_thread_fence.py",
        copy_to_mma,
        {
            (over, missing): "error" if missing else "clean"
            for over in ("cta barrier", "mbarrier", "relaxed wait")
            for missing in ("", "before", "after")
        },
        {"setup": put_memory},
        otherwise={
            ("cta barrier", ""): NO_PIPELINE,
            ("mbarrier", ""): NO_PIPELINE,
            ("relaxed wait", ""): NO_PIPELINE,
        },
    ),
    "two copies to the same columns": Program(
        f"{RACECHECK}test_native_tcgen_thread_fence.py",
        two_copies,
        {
            "": "error",
            "before fence": "clean",
            "after fence": "error",
            "commit": "clean",
            "commit, wait": "clean",
            "commit, wait, after fence": "clean",
        },
        {"setup": put_memory},
        otherwise={"before fence": NO_PIPELINE, "commit": NO_PIPELINE},
    ),
    "load, then store of another thread": Program(
        f"{RACECHECK}test_native_tcgen_thread_fence.py",
        load_then_store,
        {True: "clean", False: "error"},
    ),
    "commit of what was observed": Program(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        commit_of_observed,
        {True: "clean", False: "error"},
        otherwise={True: "a commit carries what its own operations did"},
    ),
    "commit of another thread's copy": Program(
        f"{RACECHECK}test_native_tcgen_thread_fence.py",
        commit_of_others,
        {True: "clean", False: "error"},
        {"setup": put_memory},
        otherwise={True: NO_PIPELINE},
    ),
    "transfers of TMEM": Program(
        f"{RACECHECK}test_native_async_lifetime_contracts.py",
        transfers,
        {"store, load": "error", "store, load, waited": "clean"},
    ),
    "columns of one warp": Program(
        f"{ARTIFACT} and engine-rs, tcgen05 lifecycle",
        leases,
        {
            "in use": "clean",
            "outside": "error",
            "after": "error",
            "left": "error",
            "mismatched": "error",
            "grown": "error",
            "given up": "error",
        },
    ),
    "columns that are taken": Program(MODEL, blocked, {"waits": "0"}),
    "arguments of a pair": Program(
        "TIRx-Harness, numsim engine-rs, tcgen05 lifecycle",
        pair_arguments,
        {"the same": "clean", "other columns": "error", "one frees": "error"},
        PAIR,
    ),
    "order of commits": Program(
        MODEL, two_commits, {"as issued": "1"}, {"setup": put_memory}
    ),
    "places of columns": Program(ARTIFACT, places, {"first free": "0 128 0"}),
    "columns freed under a reader": Program(
        f"{SYNCCHECK}test_native_kernel_contracts.py",
        freed_columns,
        {True: "clean", False: "error"},
    ),
}
