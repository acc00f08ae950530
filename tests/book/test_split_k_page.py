"""The picture of split-K says what a run does, and its worked examples are runs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import split_k
from wide_operands import wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.gemm.load import tma_loader

SVG = "{http://www.w3.org/2000/svg}"
TEXT = (Path(split_k.__file__).parent / "split_k.md").read_text("utf-8")


def test_each_split_does_what_is_drawn() -> None:
    """k-tiles loaded, value of the lock after it, and who stores D."""
    config = GemmConfig.nvfp4(splits=split_k.DRAWN.splits)
    a, b = wide_pair(1, 128, 128, split_k.DRAWN.k_tiles * 256)
    run = fp4ref.run(a, b, config=config, sms=3, schedule=1)
    assert run.trace is not None
    for split in range(split_k.DRAWN.splits):
        mine = [e for e in run.trace if e.cta[2] == split and e.kind != "land"]
        of_a = [
            e.operands["coords"][0] // 256
            for e in mine
            if e.operation.endswith("3d.load") and e.operands["tensor"] == "A"
        ]
        assert of_a == list(split_k.k_tiles(split))
        names = [e.operation for e in mine]
        stores = names.count("cp.async.bulk.tensor.3d.store")
        final = split_k.then(split) == "epilogue, D"
        assert (names.count("red.add"), stores) == ((0, 4) if final else (1, 0))
        seen = [lock_after(run, e) for e in mine if e.operands.get("lanes") == 1]
        words = [split_k.waits_for(split), split_k.then(split)]
        assert seen == [int(n) for n in re.findall(r"lock\D+(\d+)", str(words))]


def lock_after(run: fp4ref.Run, event: fp4ref.trace.Event) -> int:
    """Value of the one tile's lock, behind its sums, when one thread has used it."""
    (where,) = event.reads or event.writes
    return int(run.state(event.step).read(where).view("<u4")[0, 0])


def test_the_sum_is_in_the_order_of_k() -> None:
    assert split_k.sums(2) == "(s0 + s1) + s2"
    picture = ElementTree.fromstring(split_k.picture())
    drawn = [each.text or "" for each in picture.iter(f"{SVG}text")]
    page = split_k.page()
    for split in range(split_k.DRAWN.splits):
        said = split_k.sums(split), split_k.waits_for(split), split_k.then(split)
        assert all(each in drawn and each in page for each in said)
    assert [line for line in drawn if line.startswith("k-tile")] == [
        f"k-tile {i}" for i in range(5)
    ]


def ones() -> BlockScaled:
    """Two k-tiles of ones; the scales are 1, then 2."""
    scales = np.tile(np.repeat(np.uint8([0x38, 0x40]), 16), (128, 1))
    return BlockScaled(np.full((128, 512), 2, np.uint8), scales)


def worked() -> list[tuple[bool, int, int]]:
    """Rows of the table: restarted or not, splits, and the number of D."""
    rows = re.findall(r"^\| (1, then|the same)(.*?) \| (\d) \| (.*) \|$", TEXT, re.M)
    return [
        ("restarts" in more, int(splits), max(map(int, re.findall(r"\d{3,}", text))))
        for _, more, splits, text in rows
    ]


@pytest.mark.parametrize(("restarted", "splits", "number"), worked())
def test_a_worked_example_is_a_run(
    restarted: bool, splits: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if restarted:
        for name in ("sfa_coords", "sfb_coords"):
            coords = getattr(tma_loader, name)
            monkeypatch.setattr(
                tma_loader, name, lambda w, k, p, coords=coords: coords(w, 0, p)
            )
    config = GemmConfig.nvfp4(splits=splits)
    run = fp4ref.run(ones(), ones(), config=config, trace=False)
    assert np.all(run.d == number)


def test_the_worked_examples_are_those_of_the_page() -> None:
    assert worked() == [
        (False, 1, 1280),
        (False, 2, 1280),
        (False, 5, 1280),
        (True, 2, 512),
    ]
    nbytes = fp4ref.plan(GemmConfig.nvfp4(splits=2)).workspace_nbytes(1)
    assert f"{nbytes - 4:,} bytes for a tile of 128 x 128" in TEXT
