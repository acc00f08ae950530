"""Who shares what in a cluster, counted from the coordinates of its CTAs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from fp4ref.gemm.cta_in_cluster import CtaInCluster

SHAPES = [
    (group, m, n)
    for group in (1, 2)
    for m in (1, 2, 4, 8)
    for n in (1, 2, 4, 8)
    if m * n <= 16 and m % group == 0
]


def mask(
    cta: CtaInCluster, shares: Callable[[tuple[int, int], tuple[int, int]], bool]
) -> int:
    """Bits of the CTAs that share something with `cta`, by their ranks."""
    ctas = itertools.product(range(cta.cluster_n), range(cta.cluster_m))
    where = (cta.m, cta.n)
    return sum(1 << rank for rank, (n, m) in enumerate(ctas) if shares(where, (m, n)))


@pytest.mark.parametrize(("group", "cluster_m", "cluster_n"), SHAPES)
def test_masks_are_those_of_the_coordinates(
    group: int, cluster_m: int, cluster_n: int
) -> None:
    """The same rows of A, the same columns of SFB, the same half of these columns."""
    for m, n in itertools.product(range(cluster_m), range(cluster_n)):
        cta = CtaInCluster(m, n, cluster_m, cluster_n, group)
        assert cta.row == mask(cta, lambda x, y: x[0] == y[0])
        assert cta.column == mask(cta, lambda x, y: x[1] == y[1])
        assert cta.same_b == mask(
            cta, lambda x, y: x[1] == y[1] and (x[0] - y[0]) % group == 0
        )
        pair = {(m // group * group + i, n) for i in range(group)}
        assert cta.pair == mask(cta, lambda _, y, pair=pair: y in pair)
        if cta.leads:
            assert cta.releases == mask(
                cta,
                lambda _, y, pair=pair: any(y[0] == r[0] or y[1] == r[1] for r in pair),
            )
