"""Part 1. cta_in_cluster: where a CTA is in its cluster, and who shares its data.

Rank = m + cluster_m * n. The CTAs of one row have the same m and share A and SFA; those
of one column have the same n and share B and SFB. A pair is two CTAs of a column whose
m differ in the last bit: each has half of B, and the even one leads.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.partition import multicast_masks


@dataclass(frozen=True, slots=True)
class CtaInCluster:
    """Position of a CTA in a cluster of M x N CTAs, and what follows. Frame 1.5."""

    m: int
    n: int
    cluster_m: int
    cluster_n: int
    cta_group: int

    @property
    def rank(self) -> int:
        """``%cluster_ctarank``."""
        return self.m + self.cluster_m * self.n

    @property
    def is_first(self) -> bool:
        """Whether this CTA asks for the tiles of the cluster."""
        return self.rank == 0

    @property
    def part_of_pair(self) -> int:
        """Which half of B: 0 in the leader, 1 in its peer; 0 without pairs."""
        return self.m % self.cta_group

    @property
    def leads(self) -> bool:
        """Whether this CTA issues the MMAs: the leader of a pair, or every CTA."""
        return self.part_of_pair == 0

    @property
    def leader(self) -> int:
        """Rank of the CTA that issues the MMAs of this one."""
        return self.rank - self.part_of_pair

    @property
    def peer(self) -> int:
        """Rank of the other CTA of the pair."""
        return self.rank ^ 1

    @property
    def row(self) -> int:
        """CTAs that share A and SFA, as a mask."""
        return multicast_masks(self.m, self.n, self.cluster_m, self.cluster_n)[0]

    @property
    def column(self) -> int:
        """CTAs that share SFB, as a mask."""
        return multicast_masks(self.m, self.n, self.cluster_m, self.cluster_n)[1]

    @property
    def same_b(self) -> int:
        """CTAs that share B: of a column those with the same half, as a mask."""
        ranks = range(self.part_of_pair, self.cluster_m, self.cta_group)
        return sum(1 << m + self.cluster_m * self.n for m in ranks)

    @property
    def pair(self) -> int:
        """The CTAs of this MMA, as a mask."""
        return ((1 << self.cta_group) - 1) << self.leader

    @property
    def releases(self) -> int:
        """CTAs to which a stage is given back, as a mask: all that sent to it."""
        rows = sum(self.row << i for i in range(self.cta_group)) >> self.part_of_pair
        return rows | self.column

    @property
    def nth_of_row(self) -> int:
        """Which part of A and SFA this CTA sends to its row."""
        return self.n

    @property
    def nth_of_same_b(self) -> int:
        """Which part of its half of B this CTA sends to those that share it."""
        return self.m // self.cta_group

    @property
    def nth_of_column(self) -> int:
        """Which part of SFB this CTA sends to its column."""
        return self.m
