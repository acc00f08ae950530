"""Matrix descriptors: the machine reads each element where wgmma of an H200 read it."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import differences

from fp4ref.hardware import smem
from fp4ref.hardware.shared_memory import BASE
from fp4ref.layout import SwizzleMode
from probes.descriptors import KINDS, TILES, N
from probes.transcript import load

OF_BASE_OFFSET = [name for name in TILES if name.endswith("base offset")]


def test_at_least_300_descriptors_are_recorded_of_each_sort() -> None:
    accepted = {n: tiles for n, (*_, tiles) in TILES.items() if n not in OF_BASE_OFFSET}
    assert sum(map(len, accepted.values())) >= 300
    for kind in KINDS:
        for mode in ("NONE", "B32", "B64", "B128"):
            assert any(n.startswith(f"{kind.entry}, {mode},") for n in accepted)


ROWS, LINES = "_tile_offsets", "_mn_major_offsets"
WRONG = {
    "stride": lambda mode, at, lead, step: (mode, at, lead, step + 16),
    "leading": lambda mode, at, lead, step: (mode, at, lead + 16, step),
    "swizzle": lambda mode, at, lead, step: (
        SwizzleMode.B64 if mode is SwizzleMode.B128 else SwizzleMode.B128,
        *(at, lead, step),
    ),
}


@pytest.mark.parametrize(
    ("what", "where", "case"),
    [
        ("stride", ROWS, "f16_k_major, B128, steps"),
        ("leading", ROWS, "e4m3_k_major, NONE, steps"),
        ("swizzle", ROWS, "tf32_k_major, B64, rows"),
        ("stride", LINES, "f16_mn_major, B128, steps"),
        ("leading", LINES, "f16_mn_major, B32, steps"),
        ("swizzle", LINES, "f16_mn_major, B32, strides"),
    ],
)
def test_a_wrong_rule_is_found(what, where, case, monkeypatch) -> None:
    right = getattr(smem, where)

    def changed(mode, at, lead, step, *size):
        return right(*WRONG[what](mode, at, lead, step), *size)

    assert differences("descriptors", "emulator", case) == []
    monkeypatch.setattr(smem, where, changed)
    assert differences("descriptors", "emulator", case)


@pytest.mark.parametrize("name", OF_BASE_OFFSET)
def test_a_base_offset_is_subtracted_from_the_row_in_the_swizzle(name) -> None:
    """A formula of its own, on the card's places."""
    kind, mode, tiles = TILES[name]
    got = load("descriptors").output(name, "places").view(np.uint16)
    row, byte = np.arange(N)[:, None], np.arange(32)[None]
    for tile, places in zip(tiles, got.reshape(-1, kind.k, N), strict=True):
        linear = BASE + tile.start + row // 8 * tile.stride + row % 8 * mode.span + byte
        moved = (linear >> 7) - tile.base_offset & mode.span // 16 - 1
        at = (linear ^ moved << 4) - BASE
        np.testing.assert_array_equal(places, at[:, ::2].T // 2)


def test_42_descriptors_have_a_base_offset() -> None:
    assert sum(len(TILES[name][-1]) for name in OF_BASE_OFFSET) == 42


@pytest.mark.parametrize("name", OF_BASE_OFFSET)
def test_a_machine_that_ignores_base_offsets_is_found(name, monkeypatch) -> None:
    right = smem._tile_offsets
    assert differences("descriptors", "emulator", name) == []
    monkeypatch.setattr(smem, "_tile_offsets", lambda *given: right(*given[:-1]))
    assert differences("descriptors", "emulator", name)
