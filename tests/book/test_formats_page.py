"""The picture and the tables of formats say what a run does."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import formats
import numpy as np
import pytest
from narrow_operands import narrow

import fp4ref
from fp4ref import GemmConfig
from fp4ref.gemm.plan import Plan
from fp4ref.tensors.unscaled import require_operand

SVG = "{http://www.w3.org/2000/svg}"

ROWS = {f"{p.a_format}-{p.b_format}": p for p in formats.plans()}


@pytest.mark.parametrize("p", ROWS.values(), ids=ROWS)
def test_a_row_is_what_a_run_loads_and_multiplies(p: Plan) -> None:
    """Of one k-tile: bytes that are copied, places that they take, and four MMAs."""
    k = p.tile_k if p.k_multiple <= p.tile_k else p.k_multiple
    a, b = narrow(1, (128, k), p.a_format), narrow(2, (128, k), p.b_format)
    run = fp4ref.run(a, b, config=p.config)
    assert run.trace is not None
    loads = [
        e for e in run.trace if e.kind == "land" and e.operation.endswith("d.load")
    ]
    in_smem = sum(where.size for e in loads for where in e.writes if where.size > 8)
    copied = sum(e.operands["tx_bytes"] for e in loads)
    k_tiles = p.k_tiles(k)
    cells = formats.cells(p)
    assert cells[7:9] == (f"{in_smem // k_tiles:,}", f"{copied // k_tiles:,}")
    mmas = [e for e in run.trace if e.kind == "issue" and e.operation == "tcgen05.mma"]
    assert len(mmas) == 4 * k_tiles
    assert {f"`{e.operands['kind']}`" for e in mmas} == {cells[2]}


def test_the_page_has_every_format() -> None:
    page = formats.page()
    assert all(
        f"| `{each}` |" in page for each in fp4ref.numerics.kinds.OPERAND_FORMATS
    )


def bits_of(data: np.ndarray, bits: int) -> list[int]:
    """Numbers of so many bits that lie one after another, the lowest bit first."""
    stream = np.unpackbits(data, bitorder="little").reshape(-1, bits)
    return [int(each) for each in stream @ (1 << np.arange(bits))]


@pytest.mark.parametrize("pair", formats.DRAWN, ids="-".join)
def test_the_bytes_that_are_drawn_hold_the_elements(pair: tuple[str, str]) -> None:
    """Row 0 of A, where TMA has put it; the padding is not written."""
    p = fp4ref.plan(GemmConfig.nvfp4(operand_format=pair[0], b_format=pair[1]))
    k = max(p.tile_k, p.k_multiple)
    a, b = narrow(1, (1, k), pair[0]), narrow(2, (1, k), pair[1])
    run = fp4ref.run(a, b, config=p.config)
    assert run.trace is not None
    first = next(
        e
        for e in run.trace
        if e.kind == "land" and e.operands.get("tensor") == "A" and e.writes
    )
    where = first.writes[0]._replace(nbytes=formats.CHUNK_NBYTES)
    data = run.state(first.step).read(where)[0]
    drawn = formats.chunk(*pair)
    codes = require_operand(a, "a").codes.reshape(-1)
    found = bits_of(data[: drawn.nbytes], drawn.bits)
    assert found == [int(each) for each in codes[: drawn.count]]
    unwritten = np.full(formats.CHUNK_NBYTES - drawn.nbytes, 0xCD)
    np.testing.assert_array_equal(data[drawn.nbytes :], unwritten)


def test_the_picture_and_its_table_say_the_same() -> None:
    picture = ElementTree.fromstring(formats.picture())
    words = [each.text for each in picture.iter(f"{SVG}text")]
    for pair in formats.DRAWN:
        each = formats.chunk(*pair)
        assert f"{each.count} of {each.bits} bits" in words
        cells = f"| {each.bits} | {each.count} | {each.nbytes} |"
        assert any(
            line.startswith(f"| `{pair[0]}` | `{pair[1]}`") and cells in line
            for line in formats.chunks().splitlines()
        )
    assert words.count("padding") == 2


@pytest.mark.parametrize(
    ("format", "nbytes"),
    [("nvfp4", 4_096), ("mxfp4", 2_048), ("mxfp8_e4m3", 1_024), ("bf16", 0)],
)
def test_the_bytes_of_scales_that_the_page_names(format: str, nbytes: int) -> None:
    p = fp4ref.plan(GemmConfig.nvfp4(operand_format=format))
    assert p.sfa_nbytes + p.sfb_nbytes == nbytes
    text = (Path(formats.__file__).parent / "formats.md").read_text("utf-8")
    assert not nbytes or f"{nbytes:,} bytes" in text
