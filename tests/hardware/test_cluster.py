"""cluster: ranks in addresses, mapa, remote arrivals, masks, the cluster barrier."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine, random_bytes, word_at

from fp4ref.errors import (
    ClusterFault,
    DeadlockError,
    ExitFault,
    MbarrierFault,
    MissingProxyFence,
    ReadWhileInFlight,
)
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}


def bytes_map(on, rows=128, row_nbytes=128, box_rows=64, seed=0):
    data = random_bytes(rows * row_nbytes, seed).reshape(rows, row_nbytes)
    address = on.gmem.upload("A", data)
    return data, TensorMap(
        DataType.UINT8,
        address,
        (row_nbytes, rows),
        (row_nbytes,),
        (row_nbytes, box_rows),
    )


def test_shared_addresses_hold_the_rank():
    seen = {}

    def body(warp):
        seen[warp.cta.ctaid] = warp.cta.rank, warp.cta.smem_base
        assert cluster.mapa(warp, 0x1234, 1) == 0x01001234
        assert cluster.mapa(warp, 0x01001234, 0) == 0x1234
        with pytest.raises(ClusterFault, match="names rank 2"):
            cluster.mapa(warp, 0x1234, 2)

    launch(machine(sms=4), body, grid=(2, 2, 1), cluster=(2, 1, 1))
    assert seen == {
        (0, 0, 0): (0, 0x400),
        (1, 0, 0): (1, 0x01000400),
        (0, 1, 0): (0, 0x400),
        (1, 1, 0): (1, 0x01000400),
    }


def test_ranks_run_along_x_first():
    ranks = {}
    launch(
        machine(sms=4),
        lambda w: ranks.__setitem__(w.cta.ctaid, w.cta.rank),
        grid=(2, 2, 1),
        cluster=(2, 2, 1),
    )
    assert ranks == {(0, 0, 0): 0, (1, 0, 0): 1, (0, 1, 0): 2, (1, 1, 0): 3}


@pytest.mark.parametrize("schedule", ["eager", "late", 5])
def test_remote_arrive(schedule):
    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))
        for rank in range(2):
            mbarrier.arrive(warp, cluster.mapa(warp, MBAR, rank))
        yield from mbarrier.try_wait(warp, warp.cta.smem_base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    on = launch(machine(schedule, sms=2), body, **PAIR)
    # Phase 1, two of two pending again.
    assert {word_at(on, MBAR, sm) >> 43 for sm in (0, 1)} == {1 << 20 | 0xFFFFE}


@pytest.mark.parametrize("to", [0, 1])
def test_an_arrival_goes_to_the_cta_that_its_address_names(to):
    """Rank 0 alone arrives."""

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            mbarrier.arrive(warp, cluster.mapa(warp, MBAR, to))
        yield from cluster.wait(warp, cluster.arrive(warp))

    on = launch(machine(sms=2), body, **PAIR)
    pending = [-(word_at(on, MBAR, sm) >> 43) % (1 << 20) for sm in (0, 1)]
    assert pending == [2 - (to == 0), 2 - (to == 1)]


def test_b30_arrive_before_the_peer_has_initialised():
    """Without the cluster barrier some order reaches an uninitialised barrier."""

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 2)
        mbarrier.arrive(warp, cluster.mapa(warp, MBAR, warp.cta.rank ^ 1))
        yield from ()

    with pytest.raises(MbarrierFault, match="make the init visible"):
        launch(machine(sms=2), body, **PAIR)


def exchange(expected, *, sync=True):
    """B30: each CTA loads 8,192 bytes to both and 16,384 to itself."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        if sync:
            yield from cluster.wait(warp, cluster.arrive(warp))
        mbarrier.arrive_expect_tx(warp, base, expected[rank])
        own, half = (warp.machine.maps[name] for name in ("own", "half"))
        tma.load(warp, own, (0, 0), base + 0x4000 - 0x400, base)
        tma.load(
            warp,
            half,
            (0, 64 * rank),
            base + 0x8000 - 0x400 + 0x2000 * rank,
            base,
            0b11,
        )
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


def exchanging_machine(schedule):
    on = machine(schedule, sms=2)
    a, own = bytes_map(on, 128, 128, 128, 1)
    b, half = bytes_map(on, 128, 128, 64, 2)
    on.maps = {"own": own, "half": half}
    return on, a, b


@pytest.mark.parametrize("schedule", ["eager", "late", *range(8)])
def test_b30_every_barrier_expects_what_its_cta_receives(schedule):
    on, a, b = exchanging_machine(schedule)
    launch(on, exchange([32768, 32768]), **PAIR)
    for sm in (0, 1):
        data = on.sms[sm].smem.data
        np.testing.assert_array_equal(data[0x4000 - BASE :][: a.size], a.ravel())
        np.testing.assert_array_equal(data[0x8000 - BASE :][: b.size], b.ravel())


@pytest.mark.parametrize("wrong", [24576, 16384])
def test_b30_expecting_only_the_own_bytes_is_reported(wrong):
    for schedule in ("eager", "late", *range(10)):
        on, *_ = exchanging_machine(schedule)
        with pytest.raises((DeadlockError, MbarrierFault, ExitFault)):
            launch(on, exchange([32768, wrong]), **PAIR)


def test_b30_no_cluster_barrier_after_init():
    on, *_ = exchanging_machine("eager")
    with pytest.raises(MbarrierFault, match="not an initialised"):
        launch(on, exchange([32768, 32768], sync=False), **PAIR)


@pytest.mark.parametrize("mask", [0, 0b100, 0b111, -1])
def test_mask_names_only_ranks_of_the_cluster(mask):
    def body(warp):
        cluster.multicast_targets(warp, mask)

    with pytest.raises(ClusterFault, match="multicast mask"):
        launch(machine(sms=2), body, **PAIR)


def test_mask_targets_in_rank_order():
    def body(warp):
        targets = [
            [c.rank for c in cluster.multicast_targets(warp, m)] for m in (1, 2, 3)
        ]
        assert targets == [[0], [1], [0, 1]]
        yield from cluster.wait(warp, cluster.arrive(warp))

    launch(machine(sms=2), body, **PAIR)


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_cluster_barrier_holds_every_warp(schedule):
    came = []

    def body(warp):
        came.append(warp.who)
        yield from cluster.wait(warp, cluster.arrive(warp))
        assert len(came) == 4

    launch(machine(schedule, sms=2), body, body, **PAIR)


def test_cluster_barrier_does_not_wait_for_exited_warps():
    passed = []

    def waits(warp):
        yield from cluster.wait(warp, cluster.arrive(warp))
        passed.append(warp.index)

    launch(machine(sms=2), waits, lambda w: None, **PAIR)
    launch(machine(sms=2), lambda w: None, waits, **PAIR)
    assert passed == [0, 0, 1, 1]


def test_cluster_barrier_twice_without_wait():
    def body(warp):
        cluster.arrive(warp)
        if warp.cta.rank == 0:
            cluster.arrive(warp)
        yield from ()

    with pytest.raises(ClusterFault, match="twice"):
        launch(machine(sms=2), body, **PAIR)


def test_missing_arrival_names_the_warp():
    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        if warp.cta.rank == 1:
            yield from mbarrier.try_wait(warp, warp.cta.smem_base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    with pytest.raises(DeadlockError, match="1 of 2 live warps") as caught:
        launch(machine(sms=2), body, **PAIR)
    assert caught.value.edges[0][2] == "cta (1, 0, 0) warp0"


def test_own_and_remote_shared_memory_by_address():
    data = random_bytes(64)

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        smem.st(warp, base + 64 * rank, data[:32])
        smem.st(warp, cluster.mapa(warp, TILE + 64 * rank, rank ^ 1), data[32:])
        yield from cluster.wait(warp, cluster.arrive(warp))
        np.testing.assert_array_equal(smem.ld(warp, base + 64 * rank, 32), data[:32])
        other = cluster.mapa(warp, TILE + 64 * (rank ^ 1), rank)
        np.testing.assert_array_equal(smem.ld(warp, other, 32), data[32:])

    launch(machine(sms=2), body, **PAIR)


def multicast_then(action):
    """Rank 0 multicasts to both; rank 1 acts on its tile before it has landed."""

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        mbarrier.arrive_expect_tx(warp, base, 8192)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            tma.load(warp, warp.machine.maps["half"], (0, 0), TILE, MBAR, 0b11)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 1:
            action(warp, base - MBAR + TILE)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


def test_guard_sees_what_a_peer_has_in_flight():
    on, *_ = exchanging_machine("late")
    with pytest.raises(ReadWhileInFlight, match="cta \\(1, 0, 0\\)") as caught:
        launch(on, multicast_then(lambda w, at: smem.ld(w, at, 16)), **PAIR)
    assert "smem1" in caught.value.where
    assert "in flight from cta (0, 0, 0)" in caught.value.who


def test_async_write_over_a_peers_unfenced_store():
    on, *_ = exchanging_machine("eager")

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        mbarrier.arrive_expect_tx(warp, base, 8192)
        if warp.cta.rank == 1:
            smem.st(warp, base - MBAR + TILE, random_bytes(16))
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            tma.load(warp, on.maps["half"], (0, 0), TILE, MBAR, 0b11)
        yield from cluster.wait(warp, cluster.arrive(warp))

    with pytest.raises(MissingProxyFence, match="overwritten by the async proxy"):
        launch(on, body, **PAIR)


def test_tile_and_barrier_are_in_one_cta():
    on, *_ = exchanging_machine("eager")

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            remote = cluster.mapa(warp, MBAR, 1)
            tma.load(warp, on.maps["half"], (0, 0), TILE, remote)
        yield from cluster.wait(warp, cluster.arrive(warp))

    with pytest.raises(ClusterFault, match="same CTA"):
        launch(on, body, **PAIR)
