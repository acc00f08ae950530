"""The pictures of a pair say what a pair does on the machine."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pairs
import pytest

import fp4ref
from fp4ref.lessons import pair_programs
from fp4ref.lessons.pair_programs import run_lanes, run_stage

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [
        each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")
    ]


@pytest.mark.parametrize("m", [256, 128])
def test_every_cell_of_d_is_where_the_picture_has_it(m: int) -> None:
    for rank, cells in enumerate(run_lanes(m)):
        for block in pairs.blocks(m, rank):
            lane, lanes = block.lanes
            rows, columns = (
                first + np.arange(count) for first, count in (block.rows, block.columns)
            )
            want = rows[:, None] + 256 * columns[None, :]
            np.testing.assert_array_equal(cells[lane : lane + lanes], want)


def test_the_stage_is_that_of_the_program() -> None:
    a, b = (
        fp4ref.quantize(np.ones((rows, 256), np.float32))
        for rows in (256, pair_programs.N)
    )
    trace = run_stage(a, b).trace
    (expect,) = trace.select(operation="mbarrier.arrive.expect_tx")
    assert expect.cta == (0, 0, 0)
    assert expect.operands["tx_bytes"] == pairs.stage_nbytes() == 57_344
    landed = [
        (write.space, e.operands["tensor"], write.size)
        for e in trace
        if e.kind == "land" and e.operation.endswith(".load")
        for write in e.writes
        if write.size > 8
    ]
    drawn = [
        (f"smem{rank}", held.operand, held.nbytes)
        for rank in (0, 1)
        for held in pairs.stage(rank)
    ]
    assert sorted(landed) == sorted(drawn)


def test_the_pictures_and_the_tables_say_the_same() -> None:
    stage, lanes, page = pairs.stage_picture(), pairs.lanes_picture(), pairs.page()
    assert "full: 57,344 bytes" in texts(stage)
    assert "| B | rows 0 to 63 | rows 64 to 127 |" in page
    assert [line for line in texts(stage) if line.startswith("rows 64 to 127,")]
    assert texts(lanes).count("lanes 64 to 127") == 2
    assert "| 128 | peer (rank 1) | 64 to 127 | 64 to 127 | 32 to 63 |" in page
