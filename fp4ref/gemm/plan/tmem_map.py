"""Part 4. tmem_map: the TMEM columns of accumulators and scale buffers."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.config import GemmConfig


@dataclass(frozen=True, slots=True)
class TmemMap:
    """Columns of the accumulators and of the scale buffers. Frames 4.3 and 4.4."""

    accumulators: tuple[int, ...]
    sfa: tuple[int, ...]
    sfb: tuple[int, ...]
    end: int

    @classmethod
    def of(
        cls,
        config: GemmConfig,
        accumulator: tuple[int, int],
        sfa_columns: int,
        sfb_columns: int,
    ) -> TmemMap:
        """Accumulators from column 0, then (SFA, SFB) for each k-tile of a buffer.

        `accumulator` is how many columns one has, and how far apart two are; if that
        is less, the next one starts inside the one before.
        """
        columns, stride = accumulator
        stages = range(config.mainloop.accumulator_stages)
        accumulators = tuple(i * stride for i in stages)
        at = accumulators[-1] + columns
        sfa, sfb = [], []
        for _ in range(config.mainloop.scale_buffers * config.mainloop.k_group):
            sfa.append(at)
            at += sfa_columns
            sfb.append(at)
            at += sfb_columns
        return cls(accumulators, tuple(sfa), tuple(sfb), at)
