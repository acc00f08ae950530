"""silicon: what an H200 did with the kernel, from the records of the repository.

The card has no tcgen05, TMEM, cluster launch control or E2M1. The kernel's own sources
ran there with soft bodies for these (``kernel/soft_hardware``). Everything here is read
from what was recorded; `run_on_a_card` is the one thing that asks a card again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.cuda_kernel.sources import HARDWARE, SOFT_HARDWARE
from fp4ref.device.diagnosis import why_not
from fp4ref.device.driver import DeviceError, find_gpu
from fp4ref.errors import InputError
from fp4ref.evidence.faults.gallery import GALLERY
from fp4ref.execution.runs import Run, run
from fp4ref.lessons.exercises.lesson_13 import checkout, probes_module
from fp4ref.tensors.block_scaled import BlockScaled

SHOWN = "f16_k_major, B128, rows of the pattern"
"""The recorded launch whose third descriptor is drawn: its tile starts at row 3."""
SHOWN_TILE = 2


class Part(NamedTuple):
    """A unit that the kernel uses, and the file whose body ran on the card."""

    name: str
    file: str
    real: bool
    why: str


PARTS = (
    Part("TMA", f"{HARDWARE}/tma.cuh", True, "loads, stores, swizzle, edges"),
    Part("mbarriers", f"{HARDWARE}/mbarrier.cuh", True, "phases, bytes, waits"),
    Part("clusters", f"{HARDWARE}/cluster.cuh", True, "multicast, remote arrivals"),
    Part("shared memory", f"{HARDWARE}/smem.cuh", True, "proxies, fences, races"),
    Part("FP8 conversion", f"{HARDWARE}/cvt.cuh", True, "E4M3 of the scales"),
    Part("tcgen05", f"{SOFT_HARDWARE}/tcgen05.cuh", False, "a queue, and a warp"),
    Part("TMEM", f"{SOFT_HARDWARE}/tmem.cuh", False, "words of global memory"),
    Part("launch control", f"{SOFT_HARDWARE}/clc.cuh", False, "a table of clusters"),
    Part("E2M1 and UE8M0", f"{SOFT_HARDWARE}/cvt.cuh", False, "rounded in integers"),
    Part("4-bit maps", f"{SOFT_HARDWARE}/tensor_map.cuh", False, "maps of bytes"),
    Part("pairs", f"{SOFT_HARDWARE}/relay.cuh", False, "a relay tells the leader"),
)
"""What is the card's own, and what stands in for what it lacks."""


@cache
def record(name: str) -> Any:
    """Return a record of the repository: ``"card_family"``, ``"soft_core_h200"``.

    Raises
    ------
    InputError
        The repository is not at hand.
    """
    return json.loads((checkout() / "tests" / "data" / f"{name}.json").read_text())


def card() -> str:
    """Name the card, its driver and the day of the record."""
    found = record("soft_core_h200")
    return f"{found['card']}, driver {found['driver']}, {found['date']}"


def age() -> str:
    """Say whether the kernel's code is still what the card ran; empty if it is."""
    ran = record("soft_core_h200")["sources"]
    today = probes_module("kernel.soft_sources").soft_sources()
    if ran == today:
        return ""
    return (
        f"The kernel's code has changed since: the card ran sources {ran}, today's "
        f"are {today}."
    )


def digest(d: NDArray[Any]) -> str:
    """Return sixteen digits of the SHA-256 of an array, as the records have."""
    return hashlib.sha256(np.ascontiguousarray(d).tobytes()).hexdigest()[:16]


def operands() -> tuple[BlockScaled, BlockScaled]:
    """Return A and B of the tile that mistakes and flips ran: 128 x 128 x 512."""
    a, b = probes_module("kernel.flips").operands()
    return a, b


def run_on_a_card(a: BlockScaled, b: BlockScaled) -> tuple[str, Run | None]:
    """Run the kernel on a GPU of this machine.

    Returns
    -------
    what happened
        The card, or a sentence that says why the record stands in for it.
    run
        None without a card.
    """
    reason = why_not(find_gpu())
    if not reason:
        try:
            return f"live: {find_gpu()}", run(a, b, backend="device")
        except (DeviceError, InputError) as error:
            reason = str(error)
    return f"recorded: {card()} (no card here: {reason.partition(' (')[0]})", None


# -- the whole kernel


class KernelRuns(NamedTuple):
    """Launches of the whole kernel.

    Attributes
    ----------
    launches
        In all.
    delayed
        With a random sleep at every wait, arrival and operation.
    sets
        For each case the different sets of bits that came; 1 is right.
    wrong
        Cases with more than one set of bits.
    """

    cases: int
    launches: int
    delayed: int
    sets: tuple[int, ...]
    wrong: int


def kernel_runs() -> KernelRuns:
    """Count what the card ran."""
    family, slept = record("card_family"), record("soft_core_h200")["delays"]
    delayed = sum(sum(counts.values()) for counts in slept.values())
    sets = [len(found) for found in (*family["cases"].values(), *slept.values())]
    return KernelRuns(
        len(sets),
        len(family["cases"]) * family["runs"] + delayed,
        delayed,
        tuple(sets),
        sum(each != 1 for each in sets),
    )


# -- matrix descriptors


class Places(NamedTuple):
    """Where the elements of one tile were read; byte offsets, (K, N) elements."""

    by_card: NDArray[np.int64]
    by_machine: NDArray[np.int64]
    nbytes: int


def places(case: str = SHOWN, tile: int = SHOWN_TILE) -> Places:
    """Return where the card, and the machine, read each element of one tile."""
    module = probes_module("descriptors")
    kind, mode, tiles = module.TILES[case]
    recorded = probes_module("transcript").load("descriptors").output(case, "places")
    shape = (len(tiles), kind.k, module.N)
    by_card = recorded.view(np.uint16).reshape(shape)[tile].astype(np.int64)
    by_machine = module.places(kind, mode, tiles[tile]).astype(np.int64)
    return Places(by_card * kind.nbytes, by_machine * kind.nbytes, kind.nbytes)


def descriptors() -> dict[str, tuple[int, int]]:
    """Count descriptors by sort: all, and those read equal at every element."""
    module = probes_module("descriptors")
    found: dict[str, tuple[int, int]] = {}
    for case, (kind, _, tiles) in module.TILES.items():
        sort = "base offset" if case.endswith("base offset") else kind.entry
        equal = 0
        for tile in range(len(tiles)):
            each = places(case, tile)
            equal += bool((each.by_card == each.by_machine).all())
        known, same = found.get(sort, (0, 0))
        found[sort] = (known + len(tiles), same + equal)
    return found


ROW_NBYTES = 128
CHUNK_NBYTES = 16


def chunks(offsets: NDArray[np.int64], rows: int = 8) -> list[list[str]]:
    """Name what each chunk of 16 bytes holds: row of the tile and half of its K.

    Returns
    -------
    names
        For each of `rows` rows of 128 bytes eight names, such as ``"2b"``; ``""`` for a
        chunk that the tile does not use.
    """
    names = [["" for _ in range(ROW_NBYTES // CHUNK_NBYTES)] for _ in range(rows)]
    k, n = offsets.shape
    for column in range(n):
        for half in range(2):
            offset = int(offsets[half * k // 2, column])
            row, chunk = offset // ROW_NBYTES, offset % ROW_NBYTES // CHUNK_NBYTES
            if row < rows:
                names[row][chunk] = f"{column}{'ab'[half]}"
    return names


# -- mistakes, flips, checkers


class Flips(NamedTuple):
    """Flipped bits, in the order of the record."""

    buffers: tuple[str, ...]
    changed: tuple[bool, ...]
    as_predicted: tuple[bool, ...]


def flips() -> Flips:
    """Compare what 200 flipped bits did on the card with what a formula says."""
    module, found = probes_module("kernel.flips"), record("soft_core_h200")
    asked, right = list(module.flips()), found["right"][0]
    said = [digest(module.expected(each)) for each in asked]
    return Flips(
        tuple(each.buffer.upper() for each in asked),
        tuple(each != right for each in found["flips"]),
        tuple(a == b for a, b in zip(said, found["flips"], strict=True)),
    )


def mistakes() -> dict[str, bool]:
    """Say of each wrong decoder whether the card gave another D with it."""
    found = record("soft_core_h200")
    right = found["right"][0]
    return {name: right not in got for name, got in found["mistakes"].items()}


class Checker(NamedTuple):
    """A tool of compute-sanitizer: what it said of the kernel, and what that means."""

    name: str
    said: str
    means: str


def checkers() -> list[Checker]:
    """Return what the tools said, in the record's numbers."""
    found = record("soft_core_h200")["checkers"]
    small, planted = (found[f"racecheck-{each}"] for each in ("small", "planted-race"))
    answer = _span(small["hazards"])
    extra = sorted(set(planted["hazards"]) - set(small["hazards"]))
    sync = found["synccheck-small"]
    shown = sync["places"]["named_barrier_sync in named_barrier.cuh"]
    nameless = sum(sync["places"].values()) - shown
    counts = [int(line.split(":")[1].split()[0]) for line in sync["summary"]]
    total, unseen = counts if len(counts) == 2 else (counts[0], 0)
    others = f". What the {unseen} others name is not known" if unseen else ""
    return [
        Checker("memcheck", "0 errors", "no access out of bounds or misaligned"),
        Checker(
            "racecheck",
            f"{len(small['hazards'])} bytes, {answer}",
            "the answer of cluster launch control: it is read after "
            "mbarrier.complete_tx, which the tool does not follow",
        ),
        Checker(
            "racecheck, with a planted race",
            f"{', '.join(extra)} besides",
            "the word that two warps write, and nothing orders",
        ),
        Checker(
            "synccheck",
            f"{total} reports, {total - unseen} printed, {unseen} not seen",
            f"of the printed, {shown} lines name named_barrier_sync: bar.sync that "
            f"only some warps meet, as PTX allows with a number of threads; {nameless} "
            f"a bar.sync of that kind in a place without a line{others}",
        ),
    ]


def _span(addresses: Sequence[str]) -> str:
    """First and last of consecutive addresses."""
    numbers = sorted(int(each, 16) for each in addresses)
    return f"{numbers[0]:#x} to {numbers[-1]:#x}"


class Shown(NamedTuple):
    """A mistake that ran on the card, and what the machine says of it."""

    mistake: str
    on_the_card: str
    here: str


def shown() -> list[Shown]:
    """List the mistakes that were put on the card; every other one ran here alone."""
    caught = mistakes()
    rows = [
        Shown(
            name,
            "another D in 1 of 1 launches" if caught[name] else "the same D",
            "another D on the ptx backend",
        )
        for name in caught
    ]
    rows += _pairs()
    rows.append(
        Shown(
            "a word that two warps write",
            "racecheck reports its address",
            "not run here; the gallery's races end in a RaceFault",
        )
    )
    for each in GALLERY.values():
        if found := _SHOWED.search(each.cause):
            rows.append(
                Shown(
                    f"{each.name}: {each.title}",
                    f"wrong in {found[1]} launches",
                    f"{each.forms['ptx'].caught.what} each time",
                )
            )
    return rows


_PAIRS_HERE = {
    "all of B from the own CTA": "another D on the ptx backend",
    "bytes told before they came": "ReadWhileInFlight under seed 3, on ptx; under "
    "seeds 1 and 2 the bytes come in time",
    "a commit that does not wait for the peer's unit": "ReadWhileInFlight under "
    "seed 3, on ptx; under seeds 1 and 2 the unit is in time",
}
"""What the emulated machine does with the soft build; `test_soft_pairs` runs it."""


def _pairs() -> list[Shown]:
    """Wrong pairs of CTAs, and the lateness that shows them; each ran many times."""
    found: dict[str, list[str]] = record("soft_core_h200")["pairs"]
    right = found["long pair"][0]
    rows = []
    for name, got in found.items():
        wrong = sum(each != right for each in got)
        if name != "long pair":
            alone = "" if wrong else " (lateness alone, no mistake)"
            words = f"wrong in {wrong} of {len(got)} launches"
            here = _PAIRS_HERE.get(name, "not run here, where sleeps take no time")
            rows.append(Shown(f"a pair: {name}{alone}", words, here))
    return rows


_SHOWED = re.compile(r"An H200 .* in (\d+ of \d+) launches")
