"""The drawing of who signals whom has every ring of the table, with its counts."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import rings

from fp4ref import GemmConfig
from fp4ref.gemm.plan import plan

SVG = "{http://www.w3.org/2000/svg}"
RINGS = rings.drawn()


def texts(picture: str) -> list[str]:
    return [
        each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")
    ]


def test_every_ring_of_the_table_is_drawn() -> None:
    assert list(plan(rings.CONFIG).rings) == RINGS
    drawn = texts(rings.picture(RINGS))
    for ring in RINGS:
        assert any(
            line.startswith(f"{ring.name}, {ring.stages} stage") for line in drawn
        )
        assert (
            f"| `{ring.name}` | {ring.stages} | {ring.producer.name} |" in rings.page()
        )


def test_each_arrow_says_how_many_arrive_and_with_which_bytes() -> None:
    drawn, page = texts(rings.picture(RINGS)), rings.page()
    assert "full: 1 x load warp, arrive.expect_tx, 36,864 B" in drawn
    assert "empty: 128 x epilogue warps" in drawn
    assert "empty: 1 x tcgen05.commit" in drawn
    assert "none: it is passed once" in page
    ways = sum(1 if ring.empty is None else 2 for ring in RINGS)
    picture = ElementTree.fromstring(rings.picture(RINGS))
    assert len(list(picture.iter(f"{SVG}path"))) == ways


def test_a_ring_that_is_not_used_is_not_drawn() -> None:
    names = {ring.name for ring in rings.drawn(GemmConfig.nvfp4(scheduler="static"))}
    assert names == {"mainloop", "accumulator"}


def test_a_changed_table_changes_picture_and_text() -> None:
    changed = [replace(RINGS[0], stages=7), *RINGS[1:]]
    assert "mainloop, 7 stages" in texts(rings.picture(changed))
    assert rings.table(changed) != rings.table(RINGS)
    assert rings.alt(RINGS) in rings.page()
