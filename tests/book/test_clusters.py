"""The pictures of a cluster say what a cluster does on the machine."""

from __future__ import annotations

from xml.etree import ElementTree

import clusters
import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [
        each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")
    ]


def loads(config: GemmConfig, m: int, n: int) -> list[fp4ref.trace.Event]:
    """Loads of one k-tile by one cluster."""
    size = fp4ref.plan(config).cluster_size
    run = fp4ref.run(*wide_pair(1, m, n, 256), config=config, sms=size)
    assert run.trace is not None
    return [e for e in run.trace if e.operation.endswith("d.load")]


def test_each_cta_loads_the_part_that_is_drawn() -> None:
    issued = [
        (
            (e.cta[0], e.cta[1]),
            e.operands["tensor"],
            e.operands["coords"][1],
            e.operands["box"][1],
            e.operands["cta_mask"],
        )
        for e in loads(clusters.SQUARE, 256, 256)
        if e.kind == "issue" and e.operands["tensor"] in ("A", "B")
    ]
    drawn = [
        (
            (cta.m, cta.n),
            part.operand,
            part.first,
            part.count,
            sum(1 << rank for rank in part.receivers),
        )
        for cta in clusters.ctas()
        for part in clusters.parts(cta)
    ]
    assert sorted(issued) == sorted(drawn)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 2)])
def test_a_row_of_bytes_is_what_a_run_asks_for_and_gets(shape: tuple[int, int]) -> None:
    m, n = shape
    found = loads(GemmConfig.nvfp4(cluster_m=m, cluster_n=n), 128 * m, 128 * n)
    asked = sum(e.operands["tx_bytes"] for e in found if e.kind == "issue")
    landed = sum(e.operands["tx_bytes"] for e in found if e.kind == "land")
    asked, landed = asked // (m * n), landed // (m * n)
    assert asked == clusters.asked_nbytes(m, n)
    assert f"| {m} x {n} | {asked:,} | {landed:,} |" in clusters.page()


def test_a_swizzled_raster_reads_fewer_tiles() -> None:
    """Bands of two by hand: 2 columns of tiles, 4 rows of them."""
    tiles = [(t.m, t.n) for t in clusters.order("m", 2)[: clusters.WAVE]]
    assert tiles == [(i // 2, i % 2) for i in range(8)]
    page = clusters.order_page()
    assert "| raster m, swizzle 1 | (0, 0) (1, 0) " in page
    assert page.count("(3, 1) | 4 | 2 |") == 1
    assert page.count("| 8 | 1 |") == page.count("| 1 | 8 |") == 1


def test_the_pictures_and_the_tables_say_the_same() -> None:
    drawn = texts(clusters.loads_picture())
    assert "loads A, rows 192 to 255" in drawn
    assert "| rank 3 | rows 192 to 255 | ranks 1 and 3 |" in clusters.page()
    numbers = [each for each in texts(clusters.order_picture()) if each.isdigit()]
    assert sorted(map(int, numbers)) == sorted([*range(64)] * len(clusters.ORDERS))
