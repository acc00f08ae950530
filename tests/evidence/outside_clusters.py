"""outside_clusters: other checkers' programs of clusters and requests for work."""

from __future__ import annotations

from typing import Any

from on_machine import MBAR, TILE
from order_cases import ZEROS, ready
from outside_programs import CONSAN, NUMSIM, PAIR, RACECHECK, Body, Program

from fp4ref.hardware import clc, cluster, gmem, mbarrier, smem, tma
from fp4ref.hardware import tensormap_proxy as maps
from fp4ref.hardware.mbarrier import Semantics

RELAXED = Semantics(relaxed=True, scope="cta")


def _started(warp: Any) -> Any:
    mbarrier.init(warp, warp.cta.smem_base, 1)
    mbarrier.fence_mbarrier_init(warp)
    yield from cluster.wait(warp, cluster.arrive(warp))


def claimed(_: str) -> tuple[Body, ...]:
    """One CTA of a cluster asks for work; each notes the first CTA that it is told."""

    def body(warp: Any) -> Any:
        base = warp.cta.smem_base
        yield from _started(warp)
        mbarrier.arrive_expect_tx(warp, base, 16)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            clc.try_cancel(warp, base - MBAR + TILE, base, multicast=True)
        yield from mbarrier.try_wait(warp, base, 0)
        answer = smem.ld(warp, base - MBAR + TILE, 16)
        told = clc.get_first_ctaid(answer)[0] if clc.is_canceled(answer) else -1
        warp.machine.said.append(told)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return (body,)


def answer_again(fenced: bool) -> tuple[Body, ...]:
    """An answer is read, and the slot is asked for again."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        for parity in range(2):
            mbarrier.arrive_expect_tx(warp, MBAR, 16)
            clc.try_cancel(warp, TILE, MBAR)
            yield from mbarrier.try_wait(warp, MBAR, parity)
            smem.ld(warp, TILE, 16)
            if fenced:
                smem.fence_proxy_async(warp)

    return (body,)


def answer_early(waits: bool) -> tuple[Body, ...]:
    """The answer of a request is read after the wait for it, or before."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        clc.try_cancel(warp, TILE, MBAR)
        mbarrier.arrive_expect_tx(warp, MBAR, 16)
        if waits:
            yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.ld(warp, TILE, 16)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return (body,)


def multicast(mode: str) -> tuple[Body, ...]:
    """A tile for both CTAs of a cluster; each uses its own bytes."""

    def body(warp: Any) -> Any:
        base, rank = warp.cta.smem_base, warp.cta.rank
        tile = base - MBAR + TILE
        yield from _started(warp)
        mbarrier.arrive_expect_tx(warp, base, 128)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 0:
            tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR, 0b11)
        if mode == "not waited for":
            smem.ld(warp, tile, 4)
        elif mode == "the peer by the first CTA's wait":
            if rank == 0:
                yield from mbarrier.try_wait(warp, base, 0)
            yield from cluster.wait(warp, cluster.arrive(warp))
            if rank == 1:
                smem.ld(warp, tile, 4)
        elif mode == "stored over":
            yield from cluster.wait(warp, cluster.arrive(warp))
            smem.st(warp, tile, ZEROS)
        yield from mbarrier.try_wait(warp, base, 0)
        smem.ld(warp, tile, 4)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return (body,)


def pair_barrier(mode: str) -> tuple[Body, ...]:
    """The loads of a CTA pair count on one mbarrier, that of the even CTA."""

    def body(warp: Any) -> Any:
        base, rank = warp.cta.smem_base, warp.cta.rank
        tile = base - MBAR + TILE
        yield from _started(warp)
        if rank == 0:
            mbarrier.arrive_expect_tx(warp, MBAR, 256)
        yield from cluster.wait(warp, cluster.arrive(warp))
        m = warp.machine.tensor_map
        tma.load(warp, m, (0, rank), tile, MBAR, cta_group=2)
        if rank == 0:
            yield from mbarrier.try_wait(warp, MBAR, 0)
            if mode == "the waiting CTA":
                smem.ld(warp, tile, 4)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 1 and mode == "its peer":
            smem.ld(warp, tile, 4)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return (body,)


def map_scopes(variant: tuple[str, str, int]) -> tuple[Body, ...]:
    """A map is changed and released in a scope, acquired in a scope, and used."""
    released, acquired, ctas = variant

    def body(warp: Any) -> Any:
        at, place = warp.machine.map_at, warp.cta.ctaid[0]
        if place == 0:
            tensor = warp.machine.tensor_map.address
            maps.replace(warp, "global", at, "global_address", tensor)
            maps.fence_release(warp, released)
            gmem.red_release(warp, warp.machine.word, 1)
        if place == ctas - 1:
            yield from gmem.wait_eq(warp, warp.machine.word, 1)
            maps.fence_acquire(warp, at, acquired)
            maps.use(warp, at, "cp.async.bulk.tensor.2d.load")

    return (body,)


PROGRAMS = {
    "scopes of a changed map": Program(
        "TIRx-Harness, tools/core-rs/numsim-core/tests, tensormap_acquire_range_and_"
        "scope",
        map_scopes,
        {
            ("gpu", "gpu", 2): "clean",
            ("cta", "gpu", 2): "error",
            ("cta", "cta", 1): "clean",
        },
        {"grid": (2, 1, 1), "sms": 2},
    ),
    "claimed cluster": Program(
        f"{NUMSIM}test_sync_runtime_domain_oracle.py",
        claimed,
        {"2 CTAs": "2 2"},
        PAIR | {"grid": (4, 1, 1)},
    ),
    "answer slot used again": Program(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        answer_again,
        {True: "clean", False: "error"},
        {"grid": (3, 1, 1)},
    ),
    "answer of a request": Program(
        CONSAN, answer_early, {True: "clean", False: "error"}
    ),
    "multicast": Program(
        CONSAN,
        multicast,
        {
            "waited for": "clean",
            "not waited for": "error",
            "stored over": "error",
        },
        PAIR,
    ),
    "barrier of a pair": Program(
        CONSAN,
        pair_barrier,
        {"the waiting CTA": "clean", "its peer": "error"},
        PAIR,
        otherwise={
            "its peer": "a wait and a cluster barrier hand on what the wait saw"
        },
    ),
}
