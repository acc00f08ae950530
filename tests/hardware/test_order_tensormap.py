"""order: tensor maps that a kernel writes, and the proxy that reads them."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE
from order_cases import both, box, every, failures, found, ready

from fp4ref.hardware import cluster, mbarrier, named_barrier, smem, tma
from fp4ref.hardware import tensormap_proxy as maps
from fp4ref.hardware.order.rules import Failure

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}
SMEM_MAP = TILE + 128


def placed(on):
    """Two maps in global memory, as the host made them; return their addresses."""
    m = box(on)
    data = np.frombuffer(m.to_bytes(), np.uint8)
    return m.address, [on.gmem.upload(f"map {i}", data) for i in range(2)]


def at(warp, which=0):
    return warp.machine.tensor_map[1][which]


def change(warp, which=0):
    tensor = warp.machine.tensor_map[0]
    maps.replace(warp, "global", at(warp, which), "global_address", tensor)


def release(warp, scope="gpu"):
    maps.fence_release(warp, scope)


def acquire(warp, which=0, scope="gpu"):
    maps.fence_acquire(warp, at(warp, which), scope)


def use(warp, which=0):
    return maps.use(warp, at(warp, which), "cp.async.bulk.tensor.2d.load")


def seen_by(*bodies, **options):
    return failures(*bodies, prepare=placed, **options)


# -- one thread


@every
@both
@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        ((change, release, acquire, use), None),
        ((use,), None),
        ((use, change, release, acquire, use), None),
        ((change, release, use), Failure.MAP_ACQUIRE),
        ((change, acquire, release, use), Failure.MAP_ACQUIRE),
        ((change, acquire, use), Failure.MAP_RELEASE),
        ((change, use), Failure.MAP_RELEASE),
        ((release, acquire, change, use), Failure.MAP_RELEASE),
        ((change, release, change, acquire, use), Failure.MAP_RELEASE),
        ((change, release, acquire, change, release, use), Failure.MAP_ACQUIRE),
    ],
)
def test_a_changed_map_needs_a_release_and_then_an_acquire(
    schedule, ordering, steps, failure
):
    def body(warp):
        for step in steps:
            step(warp)

    seen, on = found(body, schedule=schedule, ordering=ordering, prepare=placed)
    assert seen == ({(failure, "error")} if failure else set())
    assert on.order.findings.verdict == ("error" if failure else "clean")


@every
def test_an_acquire_is_of_one_map(schedule):
    def body(warp):
        for which in range(2):
            change(warp, which)
        release(warp)
        acquire(warp, 1)
        use(warp, 1)
        use(warp, 0)

    assert seen_by(body, schedule=schedule) == {Failure.MAP_ACQUIRE}


def copied(warp):
    """Change a map in shared memory and copy it over the first one."""
    data = np.frombuffer(box_of(warp), np.uint8)
    smem.st(warp, SMEM_MAP, data)
    tensor = warp.machine.tensor_map[0]
    maps.replace(warp, "shared::cta", SMEM_MAP, "global_address", tensor)
    maps.cp_fenceproxy(warp, at(warp), SMEM_MAP, "gpu")


def box_of(warp):
    found = warp.machine.gmem.contents(at(warp, 1), maps.NBYTES)
    return found.tobytes()


@every
@pytest.mark.parametrize("acquired", [True, False])
def test_a_fused_copy_releases_the_map_that_it_writes(schedule, acquired):
    def body(warp):
        yield from ready(warp, 1)
        copied(warp)
        if acquired:
            acquire(warp)
        m = use(warp)
        mbarrier.arrive_expect_tx(warp, MBAR, m.box_nbytes)
        tma.load(warp, m, (0, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.ld(warp, TILE, 128)

    seen = seen_by(body, schedule=schedule)
    assert seen == (set() if acquired else {Failure.MAP_ACQUIRE})


@every
def test_a_fused_copy_releases_no_other_map(schedule):
    def body(warp):
        change(warp, 1)
        copied(warp)
        for which in range(2):
            acquire(warp, which)
            use(warp, which)

    assert seen_by(body, schedule=schedule) == {Failure.MAP_RELEASE}


# -- several threads


@every
@both
@pytest.mark.parametrize(
    ("before", "after", "failure"),
    [
        ((change, release), (acquire, use), None),
        ((change, release, acquire), (use,), None),
        ((change, release), (use,), Failure.MAP_ACQUIRE),
        ((change,), (release, acquire, use), None),
        ((change,), (acquire, use), Failure.MAP_RELEASE),
    ],
)
def test_the_fences_of_two_warps_around_a_barrier(
    schedule, ordering, before, after, failure
):
    def writing(warp):
        for step in before:
            step(warp)
        yield from named_barrier.sync(warp, 1, 64)

    def using(warp):
        yield from named_barrier.sync(warp, 1, 64)
        for step in after:
            step(warp)

    seen = seen_by(writing, using, schedule=schedule, ordering=ordering)
    assert seen == ({failure} if failure else set())


class Happened:
    """Blocks until another warp has come somewhere, which orders nothing."""

    def __init__(self, warp):
        self.cta = warp.cta

    def ready(self):
        return getattr(self.cta, "happened", False)


@every
def test_a_release_after_the_barrier_comes_too_late(schedule):
    def writing(warp):
        change(warp)
        named_barrier.arrive(warp, 1, 64)
        release(warp)
        warp.cta.happened = True

    def using(warp):
        yield from named_barrier.sync(warp, 1, 64)
        yield Happened(warp)
        acquire(warp)
        use(warp)

    seen = seen_by(writing, using, schedule=schedule)
    assert seen == {Failure.MAP_RELEASE}


@every
def test_an_acquire_serves_only_threads_that_come_after_it(schedule):
    def writing(warp):
        change(warp)
        release(warp)
        yield from named_barrier.sync(warp, 1, 96)

    def acquiring(warp):
        yield from named_barrier.sync(warp, 1, 96)
        acquire(warp)
        warp.cta.happened = True

    def using(warp):
        yield from named_barrier.sync(warp, 1, 96)
        yield Happened(warp)
        use(warp)

    seen = seen_by(writing, acquiring, using, schedule=schedule)
    assert seen == {Failure.MAP_ACQUIRE}


@every
@pytest.mark.parametrize("synced", [True, False])
def test_the_fences_are_no_barrier(schedule, synced):
    def writing(warp):
        change(warp)
        release(warp)
        yield from named_barrier.sync(warp, 1, 64)

    def using(warp):
        if synced:
            yield from named_barrier.sync(warp, 1, 64)
        acquire(warp)
        use(warp)
        if not synced:
            yield from named_barrier.sync(warp, 1, 64)

    seen = seen_by(writing, using, schedule=schedule)
    assert seen == (set() if synced else {Failure.SYNC})


@every
@pytest.mark.parametrize("synced", [True, False])
def test_a_map_is_changed_after_its_uses(schedule, synced):
    def using(warp):
        use(warp)
        yield from named_barrier.sync(warp, 1, 64)

    def writing(warp):
        if synced:
            yield from named_barrier.sync(warp, 1, 64)
        change(warp)
        if not synced:
            yield from named_barrier.sync(warp, 1, 64)

    seen = seen_by(using, writing, schedule=schedule)
    assert seen == (set() if synced else {Failure.SYNC})


@every
@pytest.mark.parametrize(
    ("scopes", "by", "failure"),
    [
        (("gpu", "gpu"), 1, None),
        (("cluster", "cluster"), 1, None),
        (("cta", "gpu"), 1, Failure.SCOPE),
        (("gpu", "cta"), 1, Failure.SCOPE),
        (("gpu", "gpu"), 0, Failure.MAP_ACQUIRE),
    ],
)
def test_the_cta_that_uses_a_map_acquires_it_in_a_wide_scope(
    schedule, scopes, by, failure
):
    def body(warp):
        rank = warp.cta.rank
        if rank == 0:
            change(warp)
            release(warp, scopes[0])
            if by == 0:
                acquire(warp, scope=scopes[1])
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 1:
            if by == 1:
                acquire(warp, scope=scopes[1])
            use(warp)

    seen = seen_by(body, schedule=schedule, **PAIR)
    assert seen == ({failure} if failure else set())


def test_a_report_names_both_places_the_rule_and_the_remedy():
    def body(warp):
        change(warp)
        release(warp)
        use(warp)

    _, on = found(body, prepare=placed)
    (race,) = on.order.findings.races
    assert (race.nbytes, race.space) == (maps.NBYTES, "gmem")
    assert "map 0" in race.where
    text = str(race)
    assert "tensormap.replace.tile.global_address of" in text
    assert "cp.async.bulk.tensor.2d.load of" in text
    assert "fence.proxy.tensormap::generic.acquire" in text
