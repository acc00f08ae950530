"""epilogue_tile: the subtile on which an epilogue works, chosen or checked.

::

    SM90   warp-specialised  min(64, M)   x gcd(32 or 64, N)
           cooperative       min(128, M)  x gcd(32, N)
    SM100  block-scaled, N = 256          128 rows x 128
           else              32 rows a warp x as many columns as the types allow

Source: CUTLASS ``sm90_compute_tile_shape_or_override`` and
``sm100_dense_compute_tile_shape_or_override``.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from fp4ref.errors import ConfigError
from fp4ref.gemm.epilogue_builder.element_types import VOID, bits
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest
from fp4ref.gemm.epilogue_builder.schedules import AUTO
from fp4ref.layout import Layout, coalesce

SM90 = "sm90_builder.inl: sm90_compute_tile_shape_or_override"
SM100 = "sm100_builder.inl: sm100_dense_compute_tile_shape_or_override"
DATA_PATHS = 32
"""TMEM lanes that one warp reaches."""


class EpilogueTile(NamedTuple):
    """A subtile: rows and columns, and which columns of the tile they are.

    Attributes
    ----------
    n_layout
        Where the columns lie in the CTA's tile. A pair with 64 rows a CTA keeps them
        in two halves of TMEM's lanes, so that half of the columns are half a tile
        further on. None if they are simply N, as in a tile that was asked.
    """

    m: int
    n: int
    n_layout: Layout | None = None

    def __str__(self) -> str:
        if self.n_layout is None:
            return f"({self.m},{self.n})"
        return f"({self.m}:1,{self.n_layout!r})"

    @property
    def contiguous_n(self) -> int:
        """Neighbouring columns, which is what one TMA box can have."""
        if self.n_layout is None:
            return self.n
        return self.n_layout.flat_modes[0][0]


def cta_tile(asked: EpilogueRequest) -> tuple[int, int, int]:
    """Return M, N and K of one CTA: half of the MMA's rows in a pair."""
    m, n, k = asked.tile
    return (m // asked.chosen.cta_group, n, k)


def tmem_warps(asked: EpilogueRequest) -> tuple[int, int]:
    """Return how four warps share a tile in TMEM: 4 x 1, or 2 x 2.

    A pair whose MMA has 128 rows gives each CTA 64, in two halves of the lanes.
    """
    in_halves = asked.chosen.cta_group == 2 and asked.tile[0] == 128
    return (2, 2) if in_halves else (4, 1)


def epilogue_tile(
    asked: EpilogueRequest, element_c: str, element_d: str
) -> EpilogueTile:
    """Return the subtile that is chosen or asked for.

    Parameters
    ----------
    element_c, element_d
        What stands for a void C or D.

    Raises
    ------
    BuilderRefusal
        CUTLASS takes no such subtile.
    """
    if asked.arch == "sm90":
        return _of_sm90(asked, element_d)
    if asked.epilogue_tile is not None:
        tile = _asked_of_sm100(asked)
    elif asked.chosen.tma:
        tile = _of_sm100(asked, element_c, element_d)
    else:
        m, n, _ = cta_tile(asked)
        tile = EpilogueTile(m, min(64, n))
    _check_divides(asked, tile)
    return tile


def _of_sm90(asked: EpilogueRequest, element_d: str) -> EpilogueTile:
    m, n, _ = asked.tile
    rows = 128 if asked.chosen.cooperative else 64
    if asked.epilogue_tile is None:
        wide = bits(element_d) == 8 and n % 64 == 0 and not asked.chosen.cooperative
        tile = EpilogueTile(min(rows, m), gcd(min(64 if wide else 32, n), n))
    else:
        tile = EpilogueTile(*asked.epilogue_tile)
        near_n = max(16, round(tile.n / 16) * 16)
        if tile.m != rows or tile.n % 16:
            raise BuilderRefusal(
                "Unsupported tile shape",
                f"epilogue_tile={tile.m},{tile.n} with {asked.chosen.name}, whose "
                f"subtiles have {rows} rows and a multiple of 16 columns",
                SM90,
                f"The nearest is {rows},{near_n}",
            )
    for name, extent, whole in (("M", tile.m, m), ("N", tile.n, n)):
        if whole % extent:
            raise BuilderRefusal(
                f"EPI_TILE_{name} must divide CTA_{name}",
                f"subtiles of {tile.m},{tile.n} in a tile of {m},{n}",
                "sm90_epilogue_tma_warpspecialized.hpp",
                f"{name} = {max(extent, round(whole / extent) * extent)} is the "
                "nearest that it divides",
            )
    return tile


def _of_sm100(asked: EpilogueRequest, element_c: str, element_d: str) -> EpilogueTile:
    m, n, _ = cta_tile(asked)
    warps_m, warps_n = tmem_warps(asked)
    rows = min(m, DATA_PATHS * warps_m)
    if asked.block_scaled and n == 256:
        return EpilogueTile(rows, 128)
    least = max(
        _least_columns(element_c, asked.c_layout, warps_n, void=asked.c == VOID),
        _least_columns(element_d, asked.d_layout, warps_n),
    )
    if n < least:
        raise BuilderRefusal(
            "CTA tile too small",
            f"tile={','.join(map(str, asked.tile))}: {n} columns, and one row of a "
            f"subtile takes {least} of these elements",
            SM100,
            f"The nearest N is {least}",
        )
    columns = min(n, max(_columns(asked, rows, element_c, element_d), least))
    strided = coalesce(Layout((columns // warps_n, warps_n), (1, n // warps_n)))
    return EpilogueTile(rows, columns, strided)


def _columns(asked: EpilogueRequest, rows: int, element_c: str, element_d: str) -> int:
    """Columns that run well.

    Without C as much work for each subtile as always, with C as little memory as the
    mainloop can spare.
    """
    m, n, _ = cta_tile(asked)
    widest = max(bits(element_c), bits(element_d))
    if asked.c == VOID:
        return (8192 if widest == 4 else 4096) // rows
    if widest == 32:
        return 16 if m > 64 and n <= 128 else 32
    if asked.fusion.per_column_scales:
        return 32
    if widest == 16:
        return 32 if n <= 128 else 64
    return 64


def _least_columns(
    element: str, layout: str, warps_n: int, *, void: bool = False
) -> int:
    """Columns of the narrowest subtile: 16 bytes of a row, 8 columns if M is major."""
    if void or layout == "column":
        return 8 * warps_n
    return (128 if bits(element) == 6 else 128 // bits(element)) * warps_n


def _asked_of_sm100(asked: EpilogueRequest) -> EpilogueTile:
    tile = EpilogueTile(*(asked.epilogue_tile or (0, 0)))
    if asked.schedule == AUTO:
        raise BuilderRefusal(
            "Don't specify epilogue tile with auto schedule",
            f"epilogue_tile={tile.m},{tile.n} with schedule=auto",
            "sm100_builder.inl: the automatic builder",
            f"Leave it out, or ask for schedule={asked.chosen.name}, which auto takes",
        )
    if tile.n % 8 and asked.chosen.tma:
        raise BuilderRefusal(
            "Unsupported tile shape",
            f"epilogue_tile={tile.m},{tile.n}: 8 does not divide {tile.n}",
            SM100,
            f"The nearest is {tile.m},{max(8, round(tile.n / 8) * 8)}",
        )
    return tile


def _check_divides(asked: EpilogueRequest, tile: EpilogueTile) -> None:
    """Refuse subtiles of which a CTA's tile is not made."""
    m, n, _ = cta_tile(asked)
    pairs = ((m, tile.m), (n, tile.n))
    if all(whole % each == 0 for whole, each in pairs):
        return
    found = f"subtiles of {tile.m},{tile.n} in a CTA's tile of {m},{n}"
    remedy = f"The nearest is {_divisor(m, tile.m)},{_divisor(n, tile.n)}"
    # CuTe divides the larger by the smaller, and refuses only what neither divides.
    if all(whole % each == 0 or each % whole == 0 for whole, each in pairs):
        raise ConfigError(f"{found}: larger than the tile. {remedy}")
    raise BuilderRefusal(
        "Divisibility Condition", found, "cute/int_tuple.hpp: shape_div", remedy
    )


def _divisor(whole: int, near: int) -> int:
    """Return the divisor of `whole` that is nearest to `near`."""
    found = (each for each in range(1, whole + 1) if whole % each == 0)
    return min(found, key=lambda each: abs(each - near))
