"""Part 6. mxf8f6f4: the MMAs of 8-, 6- and 4-bit elements with a scale for 32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fp4ref.gemm.multiply.one_sm import OneSm
from fp4ref.gemm.multiply.scale_copies import ScaleColumns
from fp4ref.hardware import mma_mxf8f6f4


@dataclass(frozen=True, slots=True)
class OneSmMxf8f6f4(OneSm):
    """``tcgen05.mma.kind::mxf8f6f4`` with ``cta_group::1``.

    An atom of scales serves four MMAs: each takes one byte of every word.
    """

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
        mma_mxf8f6f4.mma(
            self.warp,
            d_tmem,
            a_desc,
            b_desc,
            idesc,
            *scales,
            accumulate,
            scale_vec=self.storage.plan.scale_vec,
            cta_group=self.cta_group,
        )


@dataclass(frozen=True, slots=True)
class TwoSmMxf8f6f4(OneSmMxf8f6f4):
    """The same with ``cta_group::2``, issued in the leader."""

    cta_group: ClassVar[int] = 2
