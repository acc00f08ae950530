"""values: what every epilogue has: its schedule, tile and strides, with reasons."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

from fp4ref.gemm.epilogue_builder import callbacks, strides
from fp4ref.gemm.epilogue_builder import epilogue_tile as tiles
from fp4ref.gemm.epilogue_builder.element_types import VOID
from fp4ref.gemm.epilogue_builder.epilogue_tile import EpilogueTile
from fp4ref.gemm.epilogue_builder.mainloop_stages import mainloop_stages
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest
from fp4ref.gemm.epilogue_builder.rules import RULES
from fp4ref.gemm.epilogue_builder.tmem_load import SM100 as TMEM_LOAD
from fp4ref.gemm.epilogue_builder.tmem_load import tmem_load
from fp4ref.gemm.why import Deduced, Why, deduced

TILE = "{arch}_builder.inl: the epilogue tile"


class EpilogueValues:
    """What CUTLASS's builder makes of a request.

    Parameters
    ----------
    asked
        The request; see `fp4ref.gemm.epilogue_builder.build`, which checks it.
    """

    def __init__(self, asked: EpilogueRequest) -> None:
        self.config = asked
        self.element_d = callbacks.element_of_d(asked)
        self.element_c = self.element_d if asked.c == VOID else asked.c
        """What C's types are made of where there is none: D's, so that they exist."""
        self.rules = RULES[asked.arch]
        self.layout_of_c = asked.d_layout if asked.c == VOID else asked.c_layout

    @cached_property
    def why(self) -> dict[str, Why]:
        """Each deduced value by name, with one sentence and its source.

        What the architecture does not have is None, and left out.
        """
        arch = self.config.arch
        return {
            name: (why := each.why(self))._replace(source=why.source.format(arch=arch))
            for kind in reversed(type(self).__mro__)
            for name, each in vars(kind).items()
            if isinstance(each, Deduced) and getattr(self, name) is not None
        }

    @deduced(
        "asked: {c.schedule}; {p.rules.automatic}",
        "{arch}_builder.inl: the automatic builder",
    )
    def schedule(self) -> str:
        """CUTLASS's epilogue schedule."""
        return self.config.chosen.name

    @deduced(
        "{value[0]} x {value[1]} for one CTA of the MMA's {c.tile[0]} x {c.tile[1]}",
        "{arch}_builder.inl: TileShape_MNK, of which a pair's CTA has half the rows",
    )
    def cta_tile(self) -> tuple[int, int, int]:
        """M, N and K of one CTA."""
        return tiles.cta_tile(self.config)

    @deduced("{p.layout_of_c}-major {p.element_c}; a group: a pointer", strides.SOURCE)
    def stride_c(self) -> str:
        """Type of C's stride over M, N and L."""
        return strides.stride(self.layout_of_c, self.config.grouped)

    @deduced("{c.d_layout}-major {p.element_d}; a group: a pointer", strides.SOURCE)
    def stride_d(self) -> str:
        """Type of D's stride over M, N and L."""
        return strides.stride(self.config.d_layout, self.config.grouped)


class SubtileValues(EpilogueValues):
    """What an epilogue that works subtile by subtile has besides."""

    @deduced(
        "asked: {c.epilogue_tile}; None takes {value}: {p.rules.epilogue_tile}",
        TILE,
    )
    def epilogue_tile(self) -> EpilogueTile:
        """Rows and columns of a subtile."""
        return tiles.epilogue_tile(self.config, self.element_c, self.element_d)

    @deduced("{p.cta_tile[0]} x {p.cta_tile[1]} in subtiles of {p.epilogue_tile}", TILE)
    def subtiles(self) -> int:
        """Subtiles of a CTA's tile: what the load and store pipelines go on by."""
        tile = self.epilogue_tile
        return prod(self.cta_tile[:2]) // (tile.m * tile.n)

    @deduced(
        "{c.accumulator} to {p.element_d}, {c.d_layout}-major, in subtiles of "
        "{p.epilogue_tile}: the pattern that the widest store takes",
        TMEM_LOAD,
    )
    def copy_t2r(self) -> str | None:
        """SM100's load of a subtile from TMEM; SM90's is in registers."""
        asked = self.config
        if asked.arch == "sm90":
            return None
        return tmem_load(
            *(asked.accumulator, self.element_d, asked.d_layout),
            *(self.epilogue_tile, tiles.tmem_warps(asked)),
        )


@deduced(
    "what {p.storage_nbytes:,} bytes of epilogue leave to A and B of "
    "{p.config.format_of_operands}",
    "gemm/collective/builders, {arch}: the stage count of 4.2.0",
)
def _mainloop_stages(epilogue: Any) -> int | None:
    """Return the stages of A and B that fit beside the epilogue."""
    return mainloop_stages(epilogue.config, epilogue.storage_nbytes)


_mainloop_stages.name = "mainloop_stages"
STAGES_BESIDE = _mainloop_stages
