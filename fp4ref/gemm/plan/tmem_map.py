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
    def of(cls, config: GemmConfig, sfa_columns: int, sfb_columns: int) -> TmemMap:
        """Accumulators from column 0, then (SFA, SFB) for each k-tile of a buffer."""
        n = config.tile.n
        at = config.mainloop.accumulator_stages * n
        sfa, sfb = [], []
        for _ in range(config.mainloop.scale_buffers * config.mainloop.k_group):
            sfa.append(at)
            at += sfa_columns
            sfb.append(at)
            at += sfb_columns
        accumulators = tuple(i * n for i in range(config.mainloop.accumulator_stages))
        return cls(accumulators, tuple(sfa), tuple(sfb), at)
