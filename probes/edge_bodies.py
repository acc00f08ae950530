"""edge_bodies: the kernels of `edges` by `fp4ref.hardware`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.device import MapOf
from fp4ref.hardware import (
    bulk_copy,
    clc,
    cluster,
    cp_async,
    gmem,
    mbarrier,
    named_barrier,
    smem,
    tensormap_proxy,
    tma,
)
from fp4ref.hardware.sm import Body, Warp
from fp4ref.trace import Bytes, Range
from probes.probe import tensor_map, words

IMAGE = 1024
POISON = 0xA5
LANES = np.arange(32)
MET = ("bar.sync", "bar.arrive", "bar.red.popc", "bar.red.and", "bar.red.or")
MAP = MapOf("tensor", 0, (128, 8), (128,), (128, 8))


def _put(warp: Warp, at: int, data: Bytes) -> None:
    warp.machine.gmem.write(Range("gmem", at, data.size), data.reshape(1, -1))


def _barrier(warp: Warp) -> int:
    at = warp.cta.smem_base
    mbarrier.init(warp, at, 1)
    mbarrier.fence_mbarrier_init(warp)
    return at


def _fill(warp: Warp, nbytes: int) -> int:
    at = warp.cta.smem_base + IMAGE
    smem.st(warp, at, np.full(nbytes, POISON, np.uint8))
    smem.fence_proxy_async(warp)
    return at


def _time(warp: Warp, source: int) -> Body:
    """Wait for a copy, which lands when nobody else can go on: the card's nanosleep."""
    mbar = _barrier(warp)
    mbarrier.arrive_expect_tx(warp, mbar, 16)
    bulk_copy.load(warp, source, mbar + 16, 16, mbar)
    yield from mbarrier.try_wait(warp, mbar, 0)


def _sync(warp: Warp) -> Body:
    yield from cluster.wait(warp, cluster.arrive(warp))


def _address(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    where = warp.cta.smem_base + n[0]
    smem.st(warp, where, words([7]))
    _put(warp, at["out"], smem.ld(warp, where, 4))
    yield from ()


def _bulk(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    skip, target, nbytes = n
    image = _fill(warp, 256)
    mbar = _barrier(warp)
    mbarrier.arrive_expect_tx(warp, mbar, nbytes)
    bulk_copy.load(warp, at["in"] + skip, image + target, nbytes, mbar)
    yield from mbarrier.try_wait(warp, mbar, 0)
    _put(warp, at["out"], smem.ld(warp, image, 256))


def _barrier_at(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    mbar = warp.cta.smem_base + n[0]
    mbarrier.init(warp, mbar, 1)
    mbarrier.arrive(warp, mbar, 1)
    yield from mbarrier.try_wait(warp, mbar, 0)
    _put(warp, at["out"], words([1]))


def _map_at(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    where = at["room"] + n[0]
    data = np.frombuffer(tensor_map(MAP, at["tensor"]).to_bytes(), np.uint8)
    gmem.st(warp, where + 4 * LANES, data.reshape(32, 4))
    image = _fill(warp, 1024)
    mbar = _barrier(warp)
    tensormap_proxy.fence_release(warp, "gpu")
    tensormap_proxy.fence_acquire(warp, where, "gpu")
    mbarrier.arrive_expect_tx(warp, mbar, 1024)
    used = tensormap_proxy.use(warp, where, "cp.async.bulk.tensor")
    tma.load(warp, used, (0, 0), image, mbar)
    yield from mbarrier.try_wait(warp, mbar, 0)
    _put(warp, at["out"], smem.ld(warp, image, 1024))


def _remote(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    mbar = _barrier(warp)
    yield from _sync(warp)
    if warp.cta.rank == 0:
        there = cluster.mapa(warp, mbar, 1)
        if n[0] == 0:
            mbarrier.test_wait(warp, there, 0)
        elif n[0] == 1:
            mbarrier.init(warp, there, 2)
        else:
            mbarrier.inval(warp, there)
    yield from _sync(warp)


def _elsewhere(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    image = _fill(warp, 1024)
    mbar = _barrier(warp)
    rank = warp.cta.rank
    mbarrier.arrive_expect_tx(warp, mbar, 0 if rank else 1024)
    yield from _sync(warp)
    if rank == 0:
        m = tensor_map(MAP, at["tensor"])
        tma.load(warp, m, (0, 0), cluster.mapa(warp, image, 1), mbar)
    yield from mbarrier.try_wait(warp, mbar, 0)
    yield from _sync(warp)
    _put(warp, at["out"] + 4 * rank, words([1]))


def _exited_peer(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    base = warp.cta.smem_base
    smem.st(warp, base, words([5] * 32))
    yield from _sync(warp)
    if warp.cta.rank == 1:
        gmem.red_release(warp, at["flag"], 1)
        return
    yield from gmem.wait_eq(warp, at["flag"], 1)
    value = smem.ld(warp, cluster.mapa(warp, base, 1), 4)
    _put(warp, at["out"], np.tile(value, 32))


def _gone(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    mbar = _barrier(warp)
    image = warp.cta.smem_base + IMAGE
    yield from _sync(warp)
    if warp.cta.rank == 1:
        gmem.red_release(warp, at["flag"], 1)
        return
    yield from gmem.wait_eq(warp, at["flag"], 1)
    if n[0] == 0:
        mbarrier.arrive(warp, cluster.mapa(warp, mbar, 1))
    elif n[0] == 1:
        smem.st(warp, cluster.mapa(warp, image, 1), words([7]))
    else:
        tma.load(warp, tensor_map(MAP, at["tensor"]), (0, 0), image, mbar, 0b10)
    yield from _time(warp, at["out"])
    _put(warp, at["out"], words([1]))


def _exited_warp(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    if warp.index < 3:
        yield from named_barrier.sync(warp, 0)
        _put(warp, at["out"] + 128 * warp.index, words([1] * 32))


def _counted(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    if warp.index == 2:
        named_barrier.arrive(warp, 1, 128)
        yield from _time(warp, at["out"])
        gmem.red_release(warp, at["flag"], 2)
        named_barrier.arrive(warp, 1, 128)
    elif warp.index < 2:
        yield from named_barrier.sync(warp, 1, 128)
        seen = gmem.ld(warp, Range("gmem", at["flag"], 4))
        _put(warp, at["out"] + 128 * warp.index, np.tile(seen.reshape(-1), 32))


def _met(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    if warp.index:
        yield from _time(warp, at["out"])
    operation = MET[n[warp.index]].removeprefix("bar.").removeprefix("red.")
    value = 0
    if operation == "sync":
        yield from named_barrier.sync(warp, 1, 64)
    elif operation == "arrive":
        named_barrier.arrive(warp, 1, 64)
    else:
        votes = (LANES % 2 == 1).tolist()
        found = yield from named_barrier.reduce(warp, operation, 1, votes, 64)
        results = {"popc": found.true, "and": found.true == found.threads}
        value = int(results.get(operation, found.true > 0))
    _put(warp, at["out"] + 128 * warp.index, words([value] * 32))


def _in_cluster(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    if warp.index:
        return
    base, rank = warp.cta.smem_base, warp.cta.rank
    smem.st(warp, base, words([0x100 + rank] * 32))
    yield from _sync(warp)
    value = smem.ld(warp, cluster.mapa(warp, base, rank ^ 1), 128)
    yield from _sync(warp)
    _put(warp, at["out"] + 128 * rank, value)


def _no_grid(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    yield from clc.griddepcontrol_wait(warp)
    _put(warp, at["out"], words([1] * 32))


def _readings(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    cycles = warp.machine.cycles
    first, start = cycles.read(), cycles.read()
    while (now := cycles.read()) - start < n[0]:
        pass
    low, second = cycles.read() % 2**32, cycles.read()
    found = second > first, now > start, second % 2**32 - low < 1000
    _put(warp, at["out"], words([int(each) for each in found]))
    yield from ()


def _short(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    base = warp.cta.smem_base
    smem.st(warp, base, np.full(512, POISON, np.uint8))
    targets, sources = (base + 16 * LANES).tolist(), (at["in"] + 16 * LANES).tolist()
    cp_async.copy(warp, targets, sources, 16, (LANES % 17).tolist())
    yield from cp_async.wait_all(warp)
    _put(warp, at["out"], smem.ld(warp, base, 512))


def _arrive(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    mbar = warp.cta.smem_base
    mbarrier.init(warp, mbar, 32)
    targets, sources = (
        (mbar + 16 + 16 * LANES).tolist(),
        (at["in"] + 16 * LANES).tolist(),
    )
    cp_async.copy(warp, targets, sources, 16)
    cp_async.mbarrier_arrive_noinc(warp, mbar, 32)
    yield from mbarrier.try_wait(warp, mbar, 0)
    _put(warp, at["out"], smem.ld(warp, mbar + 16, 512))


def _maxima(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    values = warp.machine.gmem.contents(at["values"], 128).view("<u4")
    gmem.red_max(warp, at["words"] + 4 * (LANES % 4), values)
    yield from ()


def _passed(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    if warp.index:
        gmem.red_release(warp, at["word"], 3)
        yield from _time(warp, at["out"])
        gmem.red_release(warp, at["flag"], 1)
        gmem.red_release(warp, at["word"], 2**32 - 1)
        return
    yield from gmem.wait_eq(warp, at["word"], 2)
    seen = gmem.ld(warp, Range("gmem", at["flag"], 4))
    _put(warp, at["out"], seen.reshape(-1))


def _older(warp: Warp, at: dict[str, int], n: list[int]) -> Body:
    base = warp.cta.smem_base
    smem.st(warp, base, words(list(range(256))))
    smem.fence_proxy_async(warp)
    for name in ("first", "second"):
        bulk_copy.store(warp, at[name], base, 1024)
        tma.commit_group(warp)
    yield from tma.wait_group(warp, 1)
    _put(warp, at["out"], gmem.ld(warp, Range("gmem", at["first"], 1024)).reshape(-1))
    yield from tma.wait_group(warp, 0)


BODIES: dict[str, Callable[[Warp, dict[str, int], list[int]], Body]] = {
    "shared_word": _address,
    "bulk_load": _bulk,
    "barrier_at": _barrier_at,
    "map_at": _map_at,
    "remote": _remote,
    "tile_elsewhere": _elsewhere,
    "exited_peer": _exited_peer,
    "gone": _gone,
    "exited_warp": _exited_warp,
    "counted": _counted,
    "met": _met,
    "exited_in_cluster": _in_cluster,
    "no_grid_before": _no_grid,
    "readings": _readings,
    "short_sources": _short,
    "copies_arrive": _arrive,
    "maxima": _maxima,
    "passed": _passed,
    "older_group": _older,
}
