"""Part 4. accumulator_values: how many accumulators there are, and what two share."""

from __future__ import annotations

from fp4ref.gemm.plan.operand_values import OperandValues
from fp4ref.gemm.why import deduced
from fp4ref.hardware.tmem import COLUMNS

_BUILDER = "CUTLASS sm100_blockscaled_umma_builder.inl"
_HELPER = "CUTLASS sm100_tmem_helper.hpp"
_STORE = "CUTLASS sm100_epilogue_tma_warpspecialized.hpp"

OVERLAP_COLUMNS = 128
"""Columns that two overlapped accumulators share: CUTLASS's epilogue tile there."""


CARVEOUT_NBYTES = 160
"""Barriers, CLC responses and TMEM pointer in CUTLASS's budget formula, with two
accumulators."""

_BARRIERS_NBYTES = 16
"""A full and an empty barrier."""


class AccumulatorValues(OperandValues):
    """The part of a `Plan` that says where D is accumulated."""

    @deduced(
        "{c.accumulator_stages} of {p.part_n} columns: two that leave no room for "
        "scales share a part of theirs",
        _BUILDER,
    )
    def overlapped(self) -> bool:
        """Whether the second accumulator starts inside the first."""
        asked = self.config.mainloop.accumulator_stages
        return self.sf_atoms > 0 and asked == 2 and 2 * self.part_n == COLUMNS

    @deduced(
        "asked: {c.accumulator_stages}; overlapped ones have one barrier, whose phase "
        "says which of them",
        _BUILDER,
    )
    def accumulator_barriers(self) -> int:
        """Stages of the accumulator ring."""
        return 1 if self.overlapped else self.config.mainloop.accumulator_stages

    @deduced(
        f"{CARVEOUT_NBYTES} with two accumulator barriers, and {_BARRIERS_NBYTES} for "
        "one more or less: {p.accumulator_barriers}",
        "CUTLASS sm100_pipeline_carveout.inl",
    )
    def carveout_nbytes(self) -> int:
        """What the budget formula keeps for barriers, CLC responses and pointers."""
        return CARVEOUT_NBYTES + _BARRIERS_NBYTES * (self.accumulator_barriers - 2)

    @deduced(
        f"{{p.part_n}} columns, less {OVERLAP_COLUMNS} if they overlap",
        _HELPER,
    )
    def accumulator_stride(self) -> int:
        """TMEM columns from one accumulator to the next."""
        return self.part_n - (OVERLAP_COLUMNS if self.overlapped else 0)

    @deduced(
        "{p.accumulator_stride} columns apart, in pieces of {c.subtile_n}",
        _STORE,
    )
    def subtiles_to_release(self) -> int:
        """Subtiles after whose load an accumulator is given back.

        All of them; of overlapped accumulators those that the other one has too, which
        are therefore loaded first.
        """
        columns = OVERLAP_COLUMNS if self.overlapped else self.part_n
        return columns // self.subtile_n
