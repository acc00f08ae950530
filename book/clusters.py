"""clusters: what each CTA of a cluster loads for whom, and the order of tiles."""

from __future__ import annotations

from typing import NamedTuple

from drawing import WIDTH, arrow_across, arrow_down, box, figure, svg, text
from wording import row

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.cta_in_cluster import CtaInCluster
from fp4ref.gemm.plan import plan
from fp4ref.gemm.tile_grid import TileGrid, WorkTile

LOADS_FILE, ORDER_FILE = "cluster_loads.svg", "tile_order.svg"

SQUARE = GemmConfig.nvfp4(cluster_m=2, cluster_n=2)
"""The cluster that is drawn."""

SHAPES = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 2))
"""Clusters of the table of bytes, along M and N."""

ORDERS = (("m", 1), ("n", 1), ("m", 2))
"""Raster and swizzle of the grids that are drawn."""

SIDE, WAVE = 8, 8
"""Tiles along both sides of D, and how many run at once."""

_PANEL, _GAP, _LEFT, _HIGH = 280, 100, 20, 112
_CELL, _BETWEEN = 26, 26


class Part(NamedTuple):
    """Rows of an operand that a CTA loads, and the ranks that get them."""

    operand: str
    first: int
    count: int
    receivers: tuple[int, ...]

    @property
    def rows(self) -> str:
        """First and last."""
        return f"rows {self.first} to {self.first + self.count - 1}"

    @property
    def ranks(self) -> str:
        """In words."""
        return f"ranks {' and '.join(map(str, self.receivers))}"


def ctas() -> list[CtaInCluster]:
    """CTAs of the cluster by rank."""
    m, n, _ = plan(SQUARE).cluster
    found = [CtaInCluster(i, j, m, n, 1) for i in range(m) for j in range(n)]
    return sorted(found, key=lambda cta: cta.rank)


def parts(cta: CtaInCluster) -> list[Part]:
    """Return what a CTA of the first cluster loads of A and B."""
    p = plan(SQUARE)
    of_a, of_b = p.tile_m // p.a_parts, p.b_rows // p.b_parts
    a = cta.m * p.tile_m + cta.nth_of_row * of_a
    b = cta.n * p.tile_n + cta.nth_of_same_b * of_b
    return [
        Part("A", a, of_a, _ranks(cta.row)),
        Part("B", b, of_b, _ranks(cta.same_b)),
    ]


def asked_nbytes(cluster_m: int, cluster_n: int) -> int:
    """Bytes that one CTA of such a cluster asks global memory for in a k-tile."""
    p = plan(GemmConfig.nvfp4(cluster_m=cluster_m, cluster_n=cluster_n))
    of_a = (p.a_nbytes + p.sfa_nbytes) // p.a_parts
    return of_a + p.b_nbytes // p.b_parts + p.sfb_nbytes // p.sfb_parts


def order(raster: str, swizzle: int) -> list[WorkTile]:
    """Tiles of a square D in the order in which they are started."""
    config = GemmConfig.nvfp4(raster=raster, raster_swizzle=swizzle)
    p = plan(config)
    grid = TileGrid.of(SIDE * p.tile_m, SIDE * p.tile_n, 1, config)
    return [grid.tile_of_number(i) for i in range(grid.count)]


def loads_picture() -> str:
    """The cluster as a grid: m runs down, n to the right."""
    drawn, top = [], 20
    for cta in ctas():
        x = _LEFT + cta.n * (_PANEL + _GAP)
        y = top + cta.m * (_HIGH + 60)
        lines = [f"rank {cta.rank}: m {cta.m}, n {cta.n}"]
        for part in parts(cta):
            lines += [f"loads {part.operand}, {part.rows}", f"for {part.ranks}"]
        drawn.append(box(x, y, _PANEL, _HIGH, lines, "machine"))
        middle = y + _HIGH // 2
        if cta.n == 0:
            ends = x + _PANEL, x + _PANEL + _GAP
            drawn.append(text(sum(ends) / 2, middle - 16, "A, SFA"))
            drawn.append(arrow_across(*ends, middle - 6))
            drawn.append(arrow_across(*reversed(ends), middle + 6))
    for n in range(plan(SQUARE).cluster[1]):
        x, y = _LEFT + n * (_PANEL + _GAP) + _PANEL // 2, top + _HIGH
        drawn += [arrow_down(x - 8, y, y + 60), _arrow_up(x + 8, y + 60, y)]
        drawn.append(text(x + 50, y + 35, "B, SFB"))
    return svg(top + 2 * _HIGH + 80, loads_alt(), drawn)


def _arrow_up(x: int, bottom: int, top: int) -> str:
    tip = top + 1
    return (
        f'<path d="M{x} {bottom}V{tip}M{x - 5} {tip + 7}L{x} {tip}L{x + 5} {tip + 7}" '
        'fill="none" stroke="#475569" stroke-width="1.5"/>'
    )


def loads_alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [
        f"rank {cta.rank} loads "
        + ", ".join(f"{p.operand} {p.rows} for {p.ranks}" for p in parts(cta))
        for cta in ctas()
    ]
    return f"A cluster of 2 x 2: {'; '.join(each)}."


def order_picture() -> str:
    """Three grids of tiles, each with its numbers; the first wave is filled."""
    drawn, high = [], SIDE * _CELL
    for i, (raster, swizzle) in enumerate(ORDERS):
        left = 12 + i * (high + _BETWEEN)
        drawn.append(text(left + high / 2, 24, _heading(raster, swizzle), bold=True))
        for number, tile in enumerate(order(raster, swizzle)):
            x, y = left + tile.n * _CELL, 38 + tile.m * _CELL
            fill = "machine" if number < WAVE else "plain"
            drawn.append(box(x, y, _CELL, _CELL, [str(number)], fill))
    foot = "m runs down, n to the right; filled: the tiles that run first"
    drawn.append(text(WIDTH / 2, 38 + high + 24, foot))
    return svg(38 + high + 40, order_alt(), drawn)


def _heading(raster: str, swizzle: int) -> str:
    return f"raster {raster}, swizzle {swizzle}"


def _read(raster: str, swizzle: int) -> tuple[int, int]:
    """Tiles of A and of B that the first wave reads."""
    wave = order(raster, swizzle)[:WAVE]
    return len({tile.m for tile in wave}), len({tile.n for tile in wave})


def order_alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = []
    for raster, swizzle in ORDERS:
        a, b = _read(raster, swizzle)
        each.append(f"{_heading(raster, swizzle)} reads {a} tiles of A and {b} of B")
    return f"The first {WAVE} of {SIDE} x {SIDE} tiles: {'; '.join(each)}."


def page() -> str:
    """Both pictures, each with its table, and the table of bytes."""
    lines = [figure(LOADS_FILE, loads_alt()), ""]
    lines += [row("CTA", "A", "for", "B", "for"), row(*["---"] * 5)]
    for cta in ctas():
        cells = [each for p in parts(cta) for each in (p.rows, p.ranks)]
        lines.append(row(f"rank {cta.rank}", *cells))
    lines += ["", "Bytes of a k-tile, for tiles of 128 x 128 x 256:", ""]
    lines += [row("cluster", "a CTA asks for", "lands in each CTA")]
    lines += [row("---", "---:", "---:")]
    whole = asked_nbytes(1, 1)
    for m, n in SHAPES:
        lines.append(row(f"{m} x {n}", f"{asked_nbytes(m, n):,}", f"{whole:,}"))
    return "\n".join([*lines, ""])


def order_page() -> str:
    """The picture of the order of tiles, and its table."""
    lines = [figure(ORDER_FILE, order_alt()), ""]
    lines += [row("order", "tiles (m, n) that run first", "tiles of A", "tiles of B")]
    lines += [row(*["---"] * 4)]
    for raster, swizzle in ORDERS:
        tiles = " ".join(f"({t.m}, {t.n})" for t in order(raster, swizzle)[:WAVE])
        a, b = _read(raster, swizzle)
        lines.append(row(_heading(raster, swizzle), tiles, str(a), str(b)))
    return "\n".join([*lines, ""])


def pictures() -> dict[str, str]:
    """Text of both files by their path from ``book/``."""
    return {
        f"_generated/{LOADS_FILE}": loads_picture(),
        f"_generated/{ORDER_FILE}": order_picture(),
    }


def _ranks(mask: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(mask.bit_length()) if mask >> rank & 1)
