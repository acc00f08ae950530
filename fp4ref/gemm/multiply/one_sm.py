"""Part 6. one_sm: the MMA of one SM, 128 rows of D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fp4ref.gemm.accumulator_stage import produced_accumulator
from fp4ref.gemm.descriptors import K_BLOCK_STEP, operand_descriptor
from fp4ref.gemm.multiply.scale_copies import ScaleColumns
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tcgen05
from fp4ref.hardware.sm import Warp
from fp4ref.layout import sfb_column_shift


@dataclass(frozen=True, slots=True)
class OneSm:
    """``tcgen05.mma`` with ``cta_group::1``."""

    cta_group: ClassVar[int] = 1

    warp: Warp
    storage: SharedStorage
    taddr: int

    @property
    def k_blocks(self) -> range:
        """MMAs of a k-tile, by number."""
        return range(self.storage.plan.k_blocks)

    def issue(
        self,
        accumulator: Stage,
        buffer: int,
        scales: ScaleColumns,
        work: WorkTile,
        k_block: int,
        accumulate: bool,
    ) -> None:
        """Issue one MMA of 32 bytes along K. Frames 6.3 and 6.6.6 to 6.6.12.

        The kernel has the descriptors of every stage in constant memory; here they are
        built where they are used.
        """
        warp, plan, address = self.warp, self.storage.plan, self.storage.address
        atom = k_block // max(plan.k_blocks_per_atom, 1)
        shift = sfb_column_shift(plan.tile_n, work.n) if plan.sf_atoms else 0
        number = produced_accumulator(plan, accumulator)
        labels = ["6.6.6", "6.6.9", "6.6.10", *(["6.6.12"] * (k_block > 0))]
        labels = [*(["6.3"] * (shift > 0)), *labels]
        of_block = ScaleColumns(
            scales.sfa + atom * plan.sfa_columns,
            scales.sfb + atom * plan.sfb_columns + shift,
        )
        with warp.frame(*labels):
            self.multiply(
                self.taddr + plan.tmem.accumulators[number],
                operand_descriptor(address("a", buffer)) + k_block * K_BLOCK_STEP,
                operand_descriptor(address("b", buffer)) + k_block * K_BLOCK_STEP,
                plan.idesc(self.storage.params.scale_format, k_block),
                of_block,
                accumulate,
            )
        if not accumulate:
            with warp.frame("6.6.11"):
                warp.note("accumulate", value="one", stage=number)

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
        tcgen05.mma(
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
