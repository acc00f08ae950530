"""launch: cluster shapes, up to 16 CTAs, and grids with two of them.

CUDA, cudaLaunchAttributePreferredClusterDimension: each type of cluster has its
coordinates as if the grid consisted of its type alone.
"""

from __future__ import annotations

import pytest
from on_machine import launch, machine

from fp4ref.errors import LaunchFault
from fp4ref.hardware.waiting_clusters import WaitingClusters


def shapes_of(on, grid, *, cluster, preferred):
    """{first CTA of a cluster: (its shape, its CTAs in rank order)}."""
    found = {}

    def body(warp):
        of = warp.cta.cluster
        found[of.ctas[0].ctaid] = (of.shape, [c.ctaid for c in of.ctas])

    launch(on, body, grid=grid, cluster=cluster, preferred=preferred)
    return found


def test_what_does_not_fit_a_preferred_cluster_runs_in_regular_ones():
    """6 SMs: a cluster of 4, one of 2 beside it, and the rest as SMs come free."""
    found = shapes_of(machine(sms=6), (8, 1, 1), cluster=(2, 1, 1), preferred=(4, 1, 1))
    assert found == {
        (0, 0, 0): ((4, 1, 1), [(x, 0, 0) for x in range(4)]),
        (4, 0, 0): ((2, 1, 1), [(4, 0, 0), (5, 0, 0)]),
        (6, 0, 0): ((2, 1, 1), [(6, 0, 0), (7, 0, 0)]),
    }


def test_a_preferred_cluster_that_never_fits_is_allowed():
    found = shapes_of(machine(sms=2), (4, 4, 1), cluster=(2, 1, 1), preferred=(4, 2, 1))
    assert {shape for shape, _ in found.values()} == {(2, 1, 1)}
    # The four regular clusters of one preferred one, then those of the next.
    assert list(found) == [
        (x, y + dy, 0) for y in (0, 2) for dy in (0, 1) for x in (0, 2)
    ]


def test_with_room_for_all_every_cluster_is_preferred():
    found = shapes_of(
        machine(sms=16), (4, 4, 1), cluster=(1, 1, 1), preferred=(2, 4, 1)
    )
    assert found == {
        (x, 0, 0): (
            (2, 4, 1),
            [(x + dx, y, 0) for y in range(4) for dx in range(2)],
        )
        for x in (0, 2)
    }


def test_a_request_takes_a_cluster_of_the_askers_shape():
    """CTAs 0 to 3 and 4, 5 run; four take 8 to 11, and 6, 7 are left for two."""
    waiting = WaitingClusters([(0, 0, 0), (4, 0, 0), (8, 0, 0)], (2, 1, 1), (4, 1, 1))
    started = [waiting.start(free) for free in (6, 2, 0, 1)]
    assert [s and (s.origin, s.shape) for s in started] == [
        ((0, 0, 0), (4, 1, 1)),
        ((4, 0, 0), (2, 1, 1)),
        None,
        None,
    ]
    assert waiting.cancel((4, 1, 1)) == (8, 0, 0)
    assert waiting.cancel((4, 1, 1)) is None
    assert waiting.cancel((2, 1, 1)) == (6, 0, 0)
    assert waiting.cancel((2, 1, 1)) is None
    assert not waiting


def test_a_regular_cluster_takes_part_of_a_preferred_one():
    waiting = WaitingClusters([(0, 0, 0), (0, 4, 0)], (1, 2, 1), (2, 4, 1))
    taken = [waiting.cancel((1, 2, 1)) for _ in range(3)]
    assert taken == [(0, 0, 0), (1, 0, 0), (0, 2, 0)]
    assert waiting.cancel((2, 4, 1)) == (0, 4, 0)
    assert waiting.cancel((1, 2, 1)) == (1, 2, 0)
    assert not waiting


def test_sixteen_ctas_need_the_non_portable_attribute():
    shape = {"grid": (4, 4, 1), "cluster": (4, 4, 1)}
    ran = []
    on = machine(sms=16)
    launch(on, lambda w: ran.append(w.cta.rank), nonportable=True, **shape)
    assert sorted(ran) == list(range(16))
    with pytest.raises(LaunchFault, match="NonPortableClusterSizeAllowed"):
        launch(machine(sms=16), lambda w: None, **shape)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"grid": (9, 1, 1), "cluster": (9, 1, 1)}, "more than 8 CTAs need"),
        (
            {"grid": (18, 1, 1), "cluster": (18, 1, 1), "nonportable": True},
            "at most 16 CTAs",
        ),
        (
            {"grid": (16, 1, 1), "cluster": (2, 1, 1), "preferred": (16, 1, 1)},
            "more than 8 CTAs need",
        ),
        ({"grid": (8, 1, 1), "cluster": (8, 1, 1)}, "one SM for each of its 8 CTAs"),
        ({"grid": (4, 3, 1), "cluster": (2, 2, 1)}, "multiple of the cluster's"),
        ({"grid": (2, 2, 2), "cluster": (2, 1, 0)}, "multiple of the cluster's"),
        (
            {"grid": (12, 1, 1), "cluster": (4, 1, 1), "preferred": (6, 1, 1)},
            "multiple of the regular one",
        ),
        (
            {"grid": (12, 1, 1), "cluster": (4, 1, 1), "preferred": (8, 1, 1)},
            "multiple of the regular one",
        ),
    ],
)
def test_shapes_that_no_gpu_launches(options, rule):
    ran = []
    with pytest.raises(LaunchFault, match=rule):
        launch(machine(sms=6), lambda w: ran.append(w), **options)
    assert not ran
