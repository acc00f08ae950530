"""Part 6. unscaled: the MMAs of elements without scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fp4ref.gemm.multiply.one_sm import OneSm
from fp4ref.gemm.multiply.scale_copies import ScaleColumns
from fp4ref.hardware import mma_unscaled
from fp4ref.hardware.instr_descriptor import UnscaledKind


@dataclass(frozen=True, slots=True)
class OneSmUnscaled(OneSm):
    """``tcgen05.mma.kind::f8f6f4`` or ``kind::f16`` with ``cta_group::1``."""

    def multiply(
        self,
        d_tmem: int,
        a_desc: int,
        b_desc: int,
        idesc: int,
        scales: ScaleColumns,
        accumulate: bool,
    ) -> None:
        """Execute the instruction of this kind."""
        kind: UnscaledKind = "f16" if self.storage.plan.kind == "f16" else "f8f6f4"
        mma_unscaled.mma(
            self.warp,
            d_tmem,
            a_desc,
            b_desc,
            idesc,
            accumulate,
            kind=kind,
            cta_group=self.cta_group,
        )


@dataclass(frozen=True, slots=True)
class TwoSmUnscaled(OneSmUnscaled):
    """The same with ``cta_group::2``, issued in the leader."""

    cta_group: ClassVar[int] = 2
