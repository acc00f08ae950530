"""outside_copies: other checkers' programs of copies, proxies and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from on_machine import MBAR, TILE
from order_cases import WORD, ZEROS, ready
from outside_programs import RACECHECK, Body, Program

from fp4ref.hardware import bulk_copy, cluster, gmem, mbarrier, smem, tma
from fp4ref.hardware import cp_async as copies
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.trace import Range

RELAXED = Semantics(relaxed=True, scope="cta")


def _stored(warp: Any) -> Any:
    tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
    tma.commit_group(warp)
    yield from tma.wait_group(warp, 0)


def shared_qualifier(fence: str) -> tuple[Body, ...]:
    """A thread writes a tile and stores it; a fence of some state space between."""

    def body(warp: Any) -> Any:
        if fence == "before the write":
            smem.fence_proxy_async(warp, "shared::cta")
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        if fence in ("shared::cta", "global", "generic"):
            smem.fence_proxy_async(warp, fence)
        yield from _stored(warp)

    return (body,)


def global_qualifier(fence: str) -> tuple[Body, ...]:
    """A thread writes a word of global memory and copies it; a fence between."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        at = warp.machine.tensor_map.address
        gmem.st(warp, at + 4 * np.arange(32), np.zeros((32, 4), np.uint8))
        if fence:
            smem.fence_proxy_async(warp, fence)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return (body,)


def peer_qualifier(fence: str) -> tuple[Body, ...]:
    """A CTA writes through its window of the cluster, and a copy overwrites that."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        smem.st(warp, cluster.mapa(warp, TILE, 0), ZEROS)
        if fence:
            smem.fence_proxy_async(warp, fence)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return (body,)


def handoff(fence: str) -> tuple[Body, ...]:
    """One warp writes and releases; another one acquires and stores the bytes."""

    def writing(warp: Any) -> Any:
        yield from ready(warp, 1)
        if fence == "early producer":
            smem.fence_proxy_async(warp)
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        if fence == "producer":
            smem.fence_proxy_async(warp)
        mbarrier.arrive(warp, MBAR)

    def storing(warp: Any) -> Any:
        yield from ready(warp)
        if fence == "early consumer":
            smem.fence_proxy_async(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        if fence == "consumer":
            smem.fence_proxy_async(warp)
        yield from _stored(warp)

    return writing, storing


def relaxed_query(variant: tuple[str, str]) -> tuple[Body, ...]:
    """The bytes of a copy, and an ordinary word, behind one mbarrier."""
    query, read = variant

    def producing(warp: Any) -> Any:
        yield from ready(warp, 1)
        smem.st(warp, WORD, ZEROS)
        tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)

    def reading(warp: Any) -> Any:
        yield from ready(warp)
        semantics = RELAXED if query == "relaxed" else Semantics(scope="cta")
        yield from mbarrier.try_wait(warp, MBAR, 0, semantics)
        smem.ld(warp, WORD if read == "ordinary" else TILE, 4)

    return producing, reading


def store_groups(variant: tuple[int, int, int]) -> tuple[Body, ...]:
    """Bulk stores in groups, of which some are left pending, and sources used again."""
    groups, pending, again = variant
    tiles = [TILE + 0x400 * i for i in range(3)]

    def storing(warp: Any) -> Any:
        yield from ready(warp, 1)
        for i, tile in enumerate(tiles):
            smem.st(warp, tile, np.zeros(128, np.uint8))
            if i < groups:
                smem.fence_proxy_async(warp)
        for i in range(groups):
            tma.store(warp, warp.machine.tensor_map, (0, i), tiles[i])
            tma.commit_group(warp)
        yield from tma.wait_group(warp, pending, read=True)
        mbarrier.arrive(warp, MBAR)

    def writing(warp: Any) -> Any:
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.st(warp, tiles[again], ZEROS)

    return storing, writing


def async_publication(waits: str) -> tuple[Body, ...]:
    """A bulk store, then a flag; the reader of the flag reads the result."""

    def body(warp: Any) -> Any:
        flag = warp.machine.word
        if warp.cta.ctaid[0] == 0:
            smem.st(warp, TILE, np.zeros(128, np.uint8))
            smem.fence_proxy_async(warp)
            tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
            tma.commit_group(warp)
            if waits == "whole":
                yield from tma.wait_group(warp, 0)
            gmem.red_release(warp, flag, 1)
            yield from tma.wait_group(warp, 0)
        else:
            yield from gmem.wait_eq(warp, flag, 1)
            gmem.ld(warp, Range("gmem", warp.machine.tensor_map.address, 4))

    return (body,)


def added_word(_: str) -> tuple[Body, ...]:
    """Two CTAs write and add to a word; a third waits for the sum and reads."""

    def body(warp: Any) -> Any:
        place, at = warp.cta.ctaid[0], warp.machine.tensor_map.address
        if place < 2:
            lanes = at + 128 * place + 4 * np.arange(32)
            gmem.st(warp, lanes, np.zeros((32, 4), np.uint8))
            gmem.red_release(warp, warp.machine.word, 1)
        else:
            yield from gmem.wait_eq(warp, warp.machine.word, 2)
            for i in range(2):
                gmem.ld(warp, Range("gmem", at + 128 * i, 128))

    return (body,)


def init_again(ended: bool) -> tuple[Body, ...]:
    """An mbarrier is initialised a second time, after its end or while it is live."""

    def body(warp: Any) -> Any:
        mbarrier.init(warp, MBAR, 2)
        if ended:
            mbarrier.inval(warp, MBAR)
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return (body,)


def classic_copy(mode: str) -> tuple[Body, ...]:
    """cp.async, and what follows it before or after the wait for its group."""

    def body(warp: Any) -> Any:
        at = warp.machine.tensor_map.address
        lanes = np.arange(32)
        copies.copy(warp, (TILE + 16 * lanes).tolist(), (at + 16 * lanes).tolist(), 16)
        copies.commit_group(warp)
        if "waited" in mode:
            yield from copies.wait_group(warp, 0)
        if "source" in mode:
            gmem.st(warp, at + 16 * lanes, np.zeros((32, 4), np.uint8))
        else:
            smem.ld(warp, TILE, 512)
        yield from copies.wait_group(warp, 0)

    return (body,)


def masked_store(mask: int) -> tuple[Body, ...]:
    """16 bytes are stored over others, those of a mask."""

    def body(warp: Any) -> Any:
        at = warp.machine.tensor_map.address
        held = np.full((1, 16), 99, np.uint8)
        warp.machine.gmem.write(Range("gmem", at, 16), held)
        smem.st(warp, TILE, np.arange(16, dtype=np.uint8))
        smem.fence_proxy_async(warp)
        bulk_copy.store(warp, at, TILE, 16, mask)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)
        found = gmem.ld(warp, Range("gmem", at, 16))
        warp.machine.said += found.ravel().tolist()

    return (body,)


PROGRAMS = {
    "proxy fence, shared": Program(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        shared_qualifier,
        {
            "": "error",
            "shared::cta": "clean",
            "global": "error",
            "generic": "clean",
            "before the write": "error",
        },
    ),
    "proxy fence, global": Program(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        global_qualifier,
        {"": "error", "global": "clean", "shared::cta": "error", "generic": "clean"},
    ),
    "proxy fence, window of the cluster": Program(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        peer_qualifier,
        {
            "": "error",
            "shared::cluster": "clean",
            "shared::cta": "error",
            "generic": "clean",
        },
        {"cluster": (1, 1, 1)},
        otherwise={"shared::cta": "the own CTA is shared::cta by whatever address"},
    ),
    "proxy fence, hand-over": Program(
        f"{RACECHECK}test_native_shared_publication.py",
        handoff,
        {
            "producer": "clean",
            "consumer": "clean",
            "early producer": "error",
            "early consumer": "error",
        },
    ),
    "query of an mbarrier": Program(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        relaxed_query,
        {
            ("acquire", "copied"): "clean",
            ("acquire", "ordinary"): "clean",
            ("relaxed", "copied"): "clean",
            ("relaxed", "ordinary"): "error",
        },
        otherwise={
            (
                "relaxed",
                "copied",
            ): "a relaxed query acquires nothing, not even copied bytes"
        },
    ),
    "groups of bulk stores": Program(
        f"{RACECHECK}test_native_async_lifetime_contracts.py",
        store_groups,
        {
            (2, 0, 1): "clean",
            (2, 1, 0): "clean",
            (2, 1, 1): "error",
            (3, 2, 0): "clean",
            (3, 2, 1): "error",
            (3, 2, 2): "error",
        },
    ),
    "bulk store and a flag": Program(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        async_publication,
        {"whole": "clean", "none": "error"},
        {"grid": (2, 1, 1), "sms": 2},
    ),
    "sum of two releases": Program(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        added_word,
        {"by read-modify-writes": "clean"},
        {"grid": (3, 1, 1), "sms": 3},
    ),
    "bulk store with a mask": Program(
        "TIRx-Harness, numsim, test_cp_mask_without_cache_policy_copies_only_"
        "selected_bytes and test_cp_mask_readonly_overlap_uses_selected_bytes",
        masked_store,
        {
            0x55AA: "99 1 99 3 99 5 99 7 8 99 10 99 12 99 14 99",
            0xF0: "99 99 99 99 4 5 6 7 99 99 99 99 99 99 99 99",
        },
    ),
    "init again": Program(
        "TIRx-Harness, tools/core-rs/numsim-sync-ref, sync-semantics",
        init_again,
        {True: "clean", False: "error"},
    ),
    "classic cp.async": Program(
        f"{RACECHECK}test_native_async_lifetime_contracts.py",
        classic_copy,
        {
            "source": "error",
            "source, waited": "clean",
            "copy": "error",
            "copy, waited": "clean",
        },
    ),
}
