"""The picture of k-groups says what the load warp does with seven k-tiles."""

from __future__ import annotations

from xml.etree import ElementTree

import k_groups
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig

SVG = "{http://www.w3.org/2000/svg}"


def test_each_round_is_one_of_the_run() -> None:
    k = k_groups.K_TILES * 256
    run = fp4ref.run(*wide_pair(1, 1, 1, k), config=k_groups.CONFIG, sms=1)
    assert run.trace is not None
    expected = [
        e.operands["tx_bytes"]
        for e in run.trace.select(operation="mbarrier.arrive.expect_tx")
        if "5.4.8" in e.frames
    ]
    drawn = k_groups.rounds()
    assert [each.tx_bytes for each in drawn] == expected
    assert expected == [73_728, 73_728, 73_728, 36_864]
    p = fp4ref.plan(k_groups.CONFIG)
    landed = {
        e.operands["coords"][0] // 256: (e.operands["smem"] - p.smem["a"]) // p.a_nbytes
        for e in run.trace
        if e.kind == "issue" and e.operands.get("tensor") == "A"
    }
    pairs = [pair for r in drawn for pair in zip(r.k_tiles, r.buffers, strict=True)]
    assert landed == dict(pairs)


def test_the_picture_and_the_table_say_the_same() -> None:
    picture = ElementTree.fromstring(k_groups.picture())
    drawn = [each.text or "" for each in picture.iter(f"{SVG}text")]
    page = k_groups.page()
    for number, each in enumerate(k_groups.rounds()):
        assert f"round {number}" in drawn
        assert f"{each.tx_bytes:,} bytes" in drawn
        assert f"| {number} | {each.stage} |" in page
    assert drawn.count("no k-tile") == 1
    assert [line for line in drawn if line.startswith("k-tile")] == [
        f"k-tile {i}" for i in range(7)
    ]
    p = fp4ref.plan(GemmConfig.nvfp4(k_group=4, **k_groups.SMALL))
    assert f"| 4 | {p.stage_nbytes:,} | {p.mainloop_stages} |" in page
