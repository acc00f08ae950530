"""Banks: passes of any access, counted another way; the rows of document 003."""

from __future__ import annotations

import random

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.banks import access
from fp4ref.lab.staging import STAGINGS, fits
from fp4ref.lessons.truths.optimisation_notes import (
    bank_of_lane_2,
    conflict_of_plain_rows,
)

SMEM = 232_448
PATTERNS = 10_000


def served(offsets: list[int | None], width: int, load: bool = False) -> int:
    """Passes, by serving words: each pass takes one from every bank that waits."""
    lanes = {4: 32, 8: 16, 16: 8}[width]
    named = [*offsets, *[None] * (32 - len(offsets))]
    for bit in (1, 2):
        differ = {tuple(sorted((lane, lane ^ bit))) for lane in range(32)}
        both = [(named[a], named[b]) for a, b in differ]
        if (
            load
            and width > 4
            and all(None in pair or len({*pair}) == 1 for pair in both)
        ):
            lanes = {8: 32, 16: 16}[width]
    passes = 0
    for first in range(0, 32, lanes):
        waiting: dict[int, set[int]] = {}
        for at in named[first : first + lanes]:
            if at is not None:
                for byte in range(at, at + width, 4):
                    waiting.setdefault(byte % 128, set()).add(byte)
        while waiting:
            for bank in list(waiting):
                waiting[bank].pop()
                if not waiting[bank]:
                    del waiting[bank]
            passes += 1
    return passes


def pattern(rng: random.Random) -> tuple[list[int | None], int]:
    """A random pattern: scattered, a stride, few words, lanes left out, or in pairs."""
    width = rng.choice((4, 8, 16))
    last = SMEM // width - 1
    kind = rng.randrange(5)
    if kind == 0:
        units = [rng.randint(0, last) for _ in range(32)]
    elif kind == 1:
        start, stride = rng.randint(0, 400), rng.randint(0, 400)
        units = [start + stride * lane for lane in range(32)]
    else:
        few = [rng.randint(0, 64) for _ in range(rng.randint(1, 32))]
        units = [rng.choice(few) for _ in range(32)]
    if kind == 4:
        bit = rng.choice((1, 2, 4))
        units = [units[lane & ~bit] for lane in range(32)]
    left_out = kind == 3 or (kind == 4 and rng.random() < 0.3)
    return [
        None if left_out and rng.random() < 0.3 else unit * width for unit in units
    ], width


def test_random_patterns_take_the_passes_that_serving_them_takes() -> None:
    """Stores and loads; a load whose lanes agree in pairs takes two phases as one."""
    rng = random.Random(11)
    in_pairs = 0
    for _ in range(PATTERNS):
        offsets, width = pattern(rng)
        load = rng.random() < 0.5
        found = access(offsets, width, load=load)
        assert found.passes == served(offsets, width, load), (width, load, offsets)
        assert found.fewest <= found.passes
        in_pairs += load and found.passes < served(offsets, width)
    assert in_pairs > 100


@pytest.mark.parametrize(
    ("width", "stride", "passes", "fewest"),
    [
        # Strides of four-byte words, as CUDA's programming guide draws them.
        (4, 4, 1, 1),
        (4, 8, 2, 1),
        (4, 12, 1, 1),
        (4, 128, 32, 1),
        (4, 132, 1, 1),
        (4, 0, 1, 1),
        (8, 8, 2, 2),
        (8, 128, 32, 2),
        (16, 16, 4, 4),
        (16, 256, 32, 4),
        (16, 272, 4, 4),
    ],
)
def test_a_stride(width: int, stride: int, passes: int, fewest: int) -> None:
    found = access([stride * lane for lane in range(32)], width)
    assert (found.passes, found.fewest) == (passes, fewest)


@pytest.mark.parametrize(
    ("width", "bits", "load", "store"),
    [
        # A row of 128 bytes, each place of it named by lanes that differ in `bits`.
        (4, 1, 1, 1),
        (8, 0, 2, 2),
        (8, 1, 1, 2),
        (8, 2, 1, 2),
        (8, 4, 2, 2),
        (16, 0, 4, 4),
        (16, 1, 2, 4),
        (16, 2, 2, 4),
        (16, 8, 4, 4),
    ],
)
def test_a_load_in_pairs(width: int, bits: int, load: int, store: int) -> None:
    offsets = [width * (lane & ~bits) % 128 for lane in range(32)]
    assert access(offsets, width, load=True).passes == load
    assert access(offsets, width).passes == store


def test_rows_of_256_bytes_begin_all_in_one_bank() -> None:
    found = STAGINGS[0].write(0)
    assert found.banks == (0,) * 32
    assert found.most_lanes == 32


# Passes of the first write, of the worst of 16, and of all reads; bytes of all warps.
TABLE = {
    "256-byte rows": (32, 32, {2}, 65_536),
    "256-byte rows, swizzled": (8, 8, {2}, 65_536),
    "two swizzled panels of 128": (4, 4, {2}, 65_536),
    "272-byte rows": (4, 4, {2}, 69_632),
    "272-byte rows, swizzled": (4, 8, {2, 3, 4}, 69_632),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_staging(name: str) -> None:
    (found,) = [staging for staging in STAGINGS if staging.name == name]
    first, worst, read, nbytes = TABLE[name]
    assert found.write(0).passes == first
    assert max(each.passes for each in found.writes) == worst
    assert {each.passes for each in found.reads} == read
    assert found.nbytes == nbytes


def by_hand(name: str, row: int, byte: int) -> int:
    """Offset of a byte, with the 128-byte swizzle written out."""
    if name.startswith("two"):
        at = byte // 128 * 4096 + row * 128 + byte % 128
    else:
        at = row * int(name[:3]) + byte
    return at ^ (at // 128 % 8 * 16 if "swizzled" in name else 0)


@pytest.mark.parametrize("name", TABLE)
def test_a_staging_by_hand(name: str) -> None:
    (found,) = [staging for staging in STAGINGS if staging.name == name]
    for chunk, each in enumerate(found.writes):
        at = [by_hand(name, lane, 16 * chunk) for lane in range(32)]
        assert (list(each.offsets), each.passes) == (at, served([*at], 16))
    for row, each in enumerate(found.reads):
        at = [by_hand(name, row, 8 * lane) for lane in range(32)]
        assert (list(each.offsets), each.passes) == (at, served([*at], 8, True))


def test_no_two_bytes_of_a_staging_share_a_place() -> None:
    for staging in STAGINGS:
        places = {staging.place(row, b) for row in range(32) for b in range(256)}
        assert len(places) == 32 * 256


def test_the_errata_agree() -> None:
    padded = next(each for each in STAGINGS if each.name == "272-byte rows")
    plain = STAGINGS[0]
    assert padded.write(0).banks[2] == bank_of_lane_2()
    assert plain.write(0).phases[0].passes == conflict_of_plain_rows()


def test_five_stages_fit_beside_the_smaller_staging_only() -> None:
    said = [(f.stages, f.staging_nbytes, f.nbytes, f.fits) for f in fits()]
    assert said == [
        (4, 69_632, 200_704, True),
        (5, 69_632, 233_472, False),
        (4, 65_536, 196_608, True),
        (5, 65_536, 229_376, True),
    ]


@pytest.mark.parametrize(
    ("offsets", "width", "said"),
    [
        ([0], 2, "width: 2 bytes a lane; need 4, 8 or 16"),
        ([], 4, "0 lanes; a warp has 1 to 32"),
        ([0] * 33, 4, "33 lanes; a warp has 1 to 32"),
        ([0, SMEM], 4, "lane 1: bytes 232,448 to 232,451 are not in the 232,448"),
        ([SMEM - 8], 16, "lane 0: bytes 232,440 to 232,455 are not in"),
        ([-4], 4, "lane 0: bytes -4 to -1 are not in"),
        ([8], 16, "lane 0: byte 8 is no multiple of the 16 bytes of a lane"),
        ([0.5], 4, "lane 0: 0.5; need a whole number"),
    ],
)
def test_a_pattern_that_no_warp_can_have(
    offsets: list[int | None], width: int, said: str
) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        access(offsets, width)


def test_the_last_bytes_of_shared_memory_can_be_read() -> None:
    assert access([SMEM - 16], 16).passes == 1
