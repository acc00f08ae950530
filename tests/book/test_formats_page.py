"""The table of formats says what a run does."""

from __future__ import annotations

import formats
import pytest
from narrow_operands import narrow

import fp4ref
from fp4ref.gemm.plan import Plan

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
