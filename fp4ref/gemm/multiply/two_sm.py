"""Part 6. two_sm: the MMA of a pair, 256 rows of D, of which each CTA has half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fp4ref.gemm.multiply.one_sm import OneSm


@dataclass(frozen=True, slots=True)
class TwoSm(OneSm):
    """``tcgen05.mma`` with ``cta_group::2``, issued in the leader.

    Its descriptors and TMEM addresses are those of the leader and hold in both CTAs.
    """

    cta_group: ClassVar[int] = 2
