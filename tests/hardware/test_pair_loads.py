"""tma with .cta_group::2: which mbarrier counts the bytes of which destination.

PTX: for each destination CTA the signal goes to that CTA or to its peer, whichever has
the rank parity of the CTA in which the named mbarrier is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine
from order_cases import both, every, failures, found
from tensor_copies import tensor_map

from fp4ref.errors import ClusterFault, DeadlockError, ExitFault
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware.order.rules import Failure

BOX = 1024
ROW = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 3)
COLUMN_1 = (1 << 1) | (1 << 5) | (1 << 9) | (1 << 13)


@dataclass
class Case:
    """Loads of one box each, and what every rank's mbarrier counts, by hand.

    Attributes
    ----------
    parity
        Of the rank whose mbarrier is named, in the issuer's own pair.
    masks
        By issuing rank; None is no multicast.
    boxes
        By rank whose mbarrier counts them.
    """

    shape: tuple[int, int, int]
    parity: int
    masks: dict[int, int | None]
    boxes: dict[int, int]


CASES = {
    "2x1 leader": Case((2, 1, 1), 0, {0: None, 1: None}, {0: 2}),
    "2x1 peer": Case((2, 1, 1), 1, {0: None, 1: None}, {1: 2}),
    "2x1 multicast by the peer": Case((2, 1, 1), 0, {1: 0b11}, {0: 2}),
    "2x2 by parity": Case((2, 2, 1), 0, {0: 0b0101, 1: 0b1010}, {0: 2, 2: 2}),
    "2x2 all": Case((2, 2, 1), 0, {3: 0b1111}, {0: 2, 2: 2}),
    "4x1 to the other pair": Case((4, 1, 1), 0, {0: 0b0100}, {2: 1}),
    "4x1 three of four": Case((4, 1, 1), 0, {1: 0b1110}, {0: 1, 2: 2}),
    "4x1 three, peers": Case((4, 1, 1), 1, {1: 0b1110}, {1: 1, 3: 2}),
    "4x4 row and column": Case(
        (4, 4, 1), 0, {0: ROW, 5: COLUMN_1}, {0: 3, 2: 2, 4: 1, 8: 1, 12: 1}
    ),
    "4x4 peers": Case(
        (4, 4, 1), 1, {0: ROW, 5: COLUMN_1}, {1: 3, 3: 2, 5: 1, 9: 1, 13: 1}
    ),
}


def loads(case, boxes=None):
    """Every rank that has bytes to expect waits for them; the others only load."""
    expected = case.boxes if boxes is None else boxes

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank in expected:
            mbarrier.arrive_expect_tx(warp, base, expected[rank] * BOX)
        if rank in case.masks:
            named = cluster.mapa(warp, MBAR, rank & ~1 | case.parity)
            at = base - MBAR + TILE + BOX * sorted(case.masks).index(rank)
            m = warp.machine.tensor_map
            tma.load(warp, m, (0, 8 * rank), at, named, case.masks[rank], 2)
        if rank in expected:
            yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


def loading_machine(schedule, case, **options):
    size = case.shape[0] * case.shape[1]
    on = machine(schedule, sms=size, **options)
    tensor, on.tensor_map = tensor_map(on, "UINT8", (128, 8 * size), (128, 8))
    return on, tensor


def run_case(schedule, case, boxes=None, **options):
    on, tensor = loading_machine(schedule, case, **options)
    shape = {"grid": case.shape, "cluster": case.shape, "nonportable": True}
    launch(on, loads(case, boxes), **shape)
    return on, tensor.reshape(-1, BOX)


@both
@every
@pytest.mark.parametrize("name", CASES)
def test_bytes_go_to_the_barrier_of_the_named_parity(name, schedule, ordering):
    case = CASES[name]
    traced = {"trace": True, "races": "raise"}
    on, tensor = run_case(schedule, case, ordering=ordering, **traced)
    for number, rank in enumerate(sorted(case.masks)):
        mask = case.masks[rank] or 1 << rank
        for to, sm in enumerate(on.sms):
            if mask >> to & 1:
                landed = sm.smem.data[TILE - BASE + BOX * number :][:BOX]
                np.testing.assert_array_equal(landed, tensor[rank])


@every
@pytest.mark.parametrize("name", CASES)
def test_bytes_expected_by_another_cta_are_a_fault(name, schedule):
    """What the peers expect instead of the leaders, or the other way round."""
    case = CASES[name]
    swapped = {rank ^ 1: count for rank, count in case.boxes.items()}
    with pytest.raises((DeadlockError, ExitFault)):
        run_case(schedule, case, swapped)


def test_a_multicast_is_one_issue_and_a_landing_for_each_cta():
    case = CASES["4x1 three of four"]
    on, _ = run_case("late", case, trace=True)
    events = [e for e in on.recorder.trace.events if e.operation.endswith(".load")]
    issues = [e for e in events if e.kind == "issue"]
    lands = [e for e in events if e.kind == "land"]
    assert len(issues) == 1
    assert {e.issued for e in lands} == {issues[0].step}
    tiles = sorted(w.space for e in lands for w in e.writes if w.nbytes == BOX)
    assert tiles == ["smem1", "smem2", "smem3"]
    credited = sorted(b.space for e in lands for b in e.barrier)
    assert credited == ["smem0", "smem2", "smem2"]


def named_by(rank, destination):
    """Rank 0 loads into `destination` and names the barrier of `rank`."""

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            tile = cluster.mapa(warp, TILE, destination)
            bar = cluster.mapa(warp, MBAR, rank)
            tma.load(warp, warp.machine.tensor_map, (0, 0), tile, bar, None, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


@pytest.mark.parametrize(("rank", "destination"), [(2, 0), (1, 2), (3, 1)])
def test_the_barrier_is_in_the_pair_of_the_tile(rank, destination):
    case = CASES["4x1 three of four"]
    on, _ = loading_machine("eager", case)
    with pytest.raises(ClusterFault, match="in its peer"):
        launch(on, named_by(rank, destination), grid=case.shape, cluster=case.shape)


def test_a_cta_without_a_peer_has_no_pair():
    on, _ = loading_machine("eager", Case((3, 1, 1), 1, {}, {}))

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            bar = cluster.mapa(warp, MBAR, 1)
            tma.load(warp, on.tensor_map, (0, 0), TILE, bar, 0b100, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))

    with pytest.raises(ClusterFault, match="rank 2 has no peer"):
        launch(on, body, grid=(3, 1, 1), cluster=(3, 1, 1))


# -- who may read what ---------------------------------------------------------------


def pair_box(on):
    return tensor_map(on, "UINT8", (128, 16), (128, 8))[1]


def pair_reads(reader, owner, told):
    """Both load; the leader waits for all bytes; `reader` reads the tile of `owner`."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 0:
            mbarrier.arrive_expect_tx(warp, base, 2 * BOX)
        m = warp.machine.tensor_map
        tma.load(warp, m, (0, 8 * rank), base - MBAR + TILE, MBAR, None, 2)
        if rank == 0:
            yield from mbarrier.try_wait(warp, base, 0)
        arrived = cluster.arrive(warp, relaxed=not told)
        yield from cluster.wait(warp, arrived)
        if rank == reader:
            smem.ld(warp, cluster.mapa(warp, TILE, owner), 16)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


@both
@every
@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize(("reader", "told"), [(0, False), (1, True), (1, False)])
def test_only_the_leader_learns_that_the_bytes_of_both_came(
    reader, owner, told, schedule, ordering
):
    seen = failures(
        pair_reads(reader, owner, told),
        schedule=schedule,
        ordering=ordering,
        sms=2,
        prepare=pair_box,
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
    )
    learned = reader == 0 or told
    assert seen == (set() if learned else {Failure.LIFETIME})


@both
@every
@pytest.mark.parametrize("owner", [0, 1])
def test_a_barrier_speaks_only_for_the_bytes_of_its_own_cta(owner, schedule, ordering):
    """Multicast with one barrier in each CTA: rank 0 has waited on its own only."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, base, BOX)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 1:
            m = warp.machine.tensor_map
            tma.load(warp, m, (0, 0), base - MBAR + TILE, base, 0b11)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp, relaxed=True))
        if rank == 0:
            smem.ld(warp, cluster.mapa(warp, TILE, owner), 16)
        yield from cluster.wait(warp, cluster.arrive(warp))

    seen = failures(
        body,
        schedule=schedule,
        ordering=ordering,
        sms=2,
        prepare=pair_box,
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
    )
    assert seen == (set() if owner == 0 else {Failure.LIFETIME})


@both
@every
@pytest.mark.parametrize(
    ("fenced", "relaxed", "seen"),
    [
        (True, True, set()),
        (False, True, {Failure.INIT}),
        (False, False, set()),
    ],
)
def test_inits_reach_the_cluster_by_a_fence_and_a_relaxed_arrival(
    fenced, relaxed, seen, schedule, ordering
):
    """PTX, membar: fence.mbarrier_init, arrive.relaxed, wait."""

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        if fenced:
            mbarrier.fence_mbarrier_init(warp)
        arrived = cluster.arrive(warp, relaxed=relaxed)
        yield from cluster.wait(warp, arrived)
        to = cluster.mapa(warp, MBAR, warp.cta.rank ^ 1)
        mbarrier.arrive(warp, to, semantics=mbarrier.Semantics(scope="cluster"))
        yield from cluster.wait(warp, cluster.arrive(warp))

    options = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}
    counts, _ = found(body, schedule=schedule, ordering=ordering, **options)
    assert {failure for failure, _ in counts} == seen
    # CUTLASS inits one mbarrier after its last fence, behind a relaxed barrier.
    severity = "allowed" if ordering == "shipped" else "error"
    assert {each for _, each in counts} <= {severity}


@every
def test_an_init_after_the_relaxed_arrival_is_an_error_for_all(schedule):
    def body(warp):
        arrived = cluster.arrive(warp, relaxed=True)
        if warp.cta.rank == 0:
            mbarrier.init(warp, MBAR, 1)
        yield from cluster.wait(warp, arrived)
        if warp.cta.rank == 1:
            to = cluster.mapa(warp, MBAR, 0)
            mbarrier.arrive(warp, to, semantics=mbarrier.Semantics(scope="cluster"))
        yield from cluster.wait(warp, cluster.arrive(warp))

    options = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}
    counts, _ = found(body, schedule=schedule, ordering="shipped", **options)
    assert counts == {(Failure.INIT, "error")}


@every
def test_the_fence_of_the_inits_releases_nothing_else(schedule):
    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        smem.st(warp, warp.cta.smem_base - MBAR + TILE, np.zeros(16, np.uint8))
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp, relaxed=True))
        smem.ld(warp, cluster.mapa(warp, TILE, warp.cta.rank ^ 1), 16)
        yield from cluster.wait(warp, cluster.arrive(warp))

    options = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}
    assert failures(body, schedule=schedule, **options) == {Failure.SYNC}
