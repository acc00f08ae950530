"""The index: 91 frames, each a function that exists, each claim with its truth."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import InputError
from fp4ref.frames import (
    FRAMES,
    Frame,
    FrameError,
    FrameKind,
    Verdict,
    derive,
    events_of,
    frame,
    resolve,
    show,
)
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.why import Deduced
from fp4ref.hardware.sm import Warp
from fp4ref.lessons.errata import ERRATA
from fp4ref.trace import Trace

ROOT = Path(__file__).parents[2]

KINDS = {kind: [f for f in FRAMES.values() if f.kind is kind] for kind in FrameKind}

CONTEXTS = ["5 ctx", "6 ctx", "7 ctx"]
"""Entries of the warp loops: they have no number in the document."""


def ids(entries: list[Frame]) -> list[str]:
    return [entry.id for entry in entries]


def operand(seed: int) -> fp4ref.BlockScaled:
    rng = np.random.default_rng(seed)
    return fp4ref.BlockScaled(
        rng.integers(0, 16, (2048, 2048)).astype(np.uint8),
        rng.integers(0x20, 0x50, (2048, 128)).astype(np.uint8),
        format="nvfp4",
    )


@pytest.fixture(scope="session")
def operands() -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    return operand(5), operand(0)


def traced(
    operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled], schedule: str | int
) -> Trace:
    a, b = operands
    config = GemmConfig.example_72b()
    found = fp4ref.run(a, b, config=config, tiles=[(5, 0)], schedule=schedule)
    assert found.trace is not None
    return found.trace


@pytest.fixture(scope="session")
def trace(operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]) -> Trace:
    """Tile (5, 0) of the default GEMM."""
    return traced(operands, "eager")


@pytest.fixture(scope="session")
def late_trace(operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]) -> Trace:
    return traced(operands, "late")


# The index itself.


def test_there_are_91_numbered_frames_and_three_contexts() -> None:
    numbered = [id for id in FRAMES if id not in CONTEXTS]
    assert len(numbered) == len(set(numbered)) == 91
    assert [id for id in FRAMES if id in CONTEXTS] == CONTEXTS
    by_part = Counter(entry.part for entry in FRAMES.values())
    assert by_part == {1: 10, 2: 4, 3: 7, 4: 5, 5: 19, 6: 25, 7: 14, 8: 10}


def test_kinds_and_verdicts_are_counted() -> None:
    kinds = {kind.value: len(entries) for kind, entries in KINDS.items()}
    assert kinds == {"event": 58, "constructed": 24, "derived": 9, "cond": 3}
    verdicts = Counter(entry.verdict.value for entry in FRAMES.values())
    assert verdicts == {"wrong": 58, "right": 15, "nearly": 21}


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_a_frame_is_right_exactly_if_the_errata_have_nothing_about_it(
    entry: Frame,
) -> None:
    about = [each.id for each in ERRATA.values() if entry.id in each.frames]
    assert (entry.verdict is Verdict.RIGHT) == (about == [])


def test_each_verdict_says_when_a_frame_has_it() -> None:
    assert [Verdict(each.value) for each in Verdict] == list(Verdict)
    meanings = [each.meaning for each in Verdict]
    assert len(set(meanings)) == 3
    assert all(text.endswith(".") for text in meanings)


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_an_entry_is_complete(entry: Frame) -> None:
    assert entry.part == int(entry.id[0])
    assert entry.title
    assert entry.claim.endswith((".", ":"))
    assert re.match(r"PTX ISA: |include/(cute|cutlass)/\S+\.(hpp|inl|h)$", entry.source)
    assert re.match(r"include/(cute|cutlass)/\S+\.(hpp|inl)$", entry.cutlass)
    assert re.match(r"\d\d_[a-z_0-9]+$", entry.notebook)
    if entry.verdict is not Verdict.RIGHT:
        assert entry.truth.endswith(".")
        assert entry.truth != entry.claim
    assert bool(entry.operations) == (entry.kind is FrameKind.EVENT)
    assert all(text == " ".join(text.split()) for text in (entry.claim, entry.truth))


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_the_kernel_twin_exists_and_has_the_same_stem(entry: Frame) -> None:
    module = entry.emulator.split(":")[0]
    if not entry.kernel:
        # Summaries, and the pair of CTAs that this kernel does not use.
        assert entry.kind is FrameKind.DERIVED or entry.id == "8.4"
        return
    assert (ROOT / entry.kernel).is_file()
    if module != "fp4ref.gemm.nvfp4_gemm":
        assert Path(entry.kernel).stem in module.split(".")


def test_an_unknown_frame_is_refused_with_near_ids() -> None:
    with pytest.raises(InputError, match=r"no frame '6.6.99'; near it: 6\.6\.9"):
        frame("6.6.99")
    with pytest.raises(InputError, match=r"ids run from 1\.1 to 8\.10"):
        frame("no such thing at all")


def test_the_index_is_read_only_when_it_is_used() -> None:
    code = (
        "import sys, fp4ref.frames as f; assert '_frames' not in vars(f.FRAMES);"
        "assert 'fp4ref.frames.values' not in sys.modules; len(f.FRAMES);"
        "assert '_frames' in vars(f.FRAMES)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_entry_is_json() -> None:
    entry = frame("6.10").to_dict()
    assert entry["kind"] == "event"
    assert entry["verdict"] == "wrong"
    assert entry["operations"] == ["tcgen05.commit"]


# The functions.


def order(id: str) -> list[int]:
    return [int(n) for n in id.split(".")]


def names(text: str, id: str) -> bool:
    """Whether a docstring names a frame, alone, in a list or in a range."""
    for phrase in re.findall(r"Frames? ([\d., andtoc]+x?)", text):
        for part in re.split(r",|\band\b", phrase):
            ends = [end.strip(" .") for end in part.split("to")]
            if id in ends:
                return True
            is_range = len(ends) == 2 and "ctx" not in id
            if is_range and order(ends[0]) <= order(id) <= order(ends[1]):
                return True
    return False


def part_of(module: Any) -> set[int]:
    """Parts that a module's first line names; ``1 to 8`` and ``1, 3 and 4`` too."""
    line = (module.__doc__ or "").splitlines()[0]
    match = re.match(r"Parts? ([\d ,andto]+)\. ", line)
    if not match:
        return set()
    numbers = [int(n) for n in re.findall(r"\d", match[1])]
    if " to " in match[1]:
        return set(range(numbers[0], numbers[-1] + 1))
    return set(numbers)


def test_docstrings_are_read_right() -> None:
    assert names("Fill one stage. Frames 5.4.1 to 5.4.9.", "5.4.3")
    assert not names("Fill one stage. Frames 5.4.1 to 5.4.9.", "5.5")
    assert names("Wait. Frames 8.1 and 8.3.", "8.3")
    assert not names("Wait. Frames 8.1 and 8.3.", "8.2")
    assert names("Load. Frame 5 ctx.", "5 ctx")
    assert not names("Load. Frame 5 ctx.", "6 ctx")


@pytest.mark.parametrize("entry", FRAMES.values(), ids=list(FRAMES))
def test_a_frame_resolves_to_a_function_that_knows_it(entry: Frame) -> None:
    found = resolve(entry)
    assert callable(found) or isinstance(found, (property, Deduced))
    module = import_module(entry.emulator.split(":")[0])
    doc = found.__doc__ or ""
    assert names(doc, entry.id) or entry.part in part_of(module)


def owner(emulator: str) -> tuple[Any, str]:
    """The module or class in which the frame's name is defined."""
    module, _, path = emulator.partition(":")
    *outer, name = path.split(".")
    found: Any = import_module(module)
    for attribute in outer:
        found = getattr(found, attribute)
    for base in getattr(found, "__mro__", ()):
        if name in vars(base):
            return base, name
    return found, name


@pytest.mark.parametrize("emulator", sorted({f.emulator for f in FRAMES.values()}))
def test_a_function_that_is_removed_is_missed(
    emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [f for f in FRAMES.values() if f.emulator == emulator]
    monkeypatch.delattr(*owner(emulator))
    for entry in mine:
        with pytest.raises(FrameError, match=f"frame {re.escape(entry.id)} is "):
            resolve(entry)


def test_a_module_that_is_removed_is_missed() -> None:
    entry = replace(frame("1.1"), emulator="fp4ref.gemm.nothing:f")
    with pytest.raises(FrameError, match=r"fp4ref\.gemm\.nothing:f, which does not"):
        resolve(entry)


# EVENT.


def missing(trace: Trace) -> dict[str, set[str]]:
    """Operations that the index promises and the trace does not have."""
    found = {}
    for entry in KINDS[FrameKind.EVENT]:
        seen = {e.operation for e in trace.select(frame=entry.id)}
        if absent := set(entry.operations) - seen:
            found[entry.id] = absent
    return found


def test_every_event_frame_is_emitted_with_its_operations(trace: Trace) -> None:
    assert missing(trace) == {}
    for entry in KINDS[FrameKind.EVENT]:
        assert events_of(trace, entry.id) == trace.select(frame=entry.id) != []


def test_no_event_has_a_label_that_is_not_an_event_frame(trace: Trace) -> None:
    labels = {label for event in trace for label in event.frames}
    assert labels == set(ids(KINDS[FrameKind.EVENT]))


EXACTLY = {
    "5.4.1": {"mbarrier.try_wait.parity", "pipeline.advance"}
    | {"mbarrier.arrive.expect_tx"},
    "5.4.3": {"elect.sync"},
    "5.4.8": {"mbarrier.arrive.expect_tx"},
    "6.4": {"mbarrier.test_wait.parity"},
    "6.6.5": {"tcgen05.mma", "accumulate"},
    "6.7": {"tcgen05.commit"},
    "6.10": {"tcgen05.commit"},
    "7.5": {"tcgen05.ld", "tcgen05.wait::ld"},
    "7.10": {"tcgen05.fence::before_thread_sync", "mbarrier.arrive"},
    "8.5": {"tcgen05.dealloc"},
}


@pytest.mark.parametrize("id", EXACTLY)
def test_a_frame_holds_nothing_else(trace: Trace, id: str) -> None:
    assert {e.operation for e in events_of(trace, id)} == EXACTLY[id]


COUNTS = {"6.7": 8, "6.10": 1, "5.4.4": 8, "5.4.7": 8, "6.6.4": 64, "6.6.9": 32}
COUNTS |= {
    "6.5": 1,
    "6.6.11": 1,
    "6.6.12": 24,
    "7.6": 16,
    "8.1": 4,
    "8.3": 2,
    "7.11": 1,
}


@pytest.mark.parametrize(("id", "count"), COUNTS.items())
def test_a_frame_is_emitted_as_often_as_it_happens(
    trace: Trace, id: str, count: int
) -> None:
    first = frame(id).operations[0]
    found = [e for e in events_of(trace, id) if e.operation == first]
    assert sum(e.kind != "land" for e in found) == count


@pytest.mark.parametrize("label", ["1.8", "2.3", "5.4.8", "6.7", "6.10", "7.10", "8.5"])
def test_a_label_that_is_dropped_is_missed(
    label: str,
    operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Warp.frame
    monkeypatch.setattr(
        Warp, "frame", lambda self, *ids: right(self, *(i for i in ids if i != label))
    )
    assert missing(small_trace(operands)) == {label: set(frame(label).operations)}


def small_trace(
    operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled],
) -> Trace:
    """One tile and eight k-tiles; it has every event frame too."""
    config = GemmConfig.example_72b(tile_n=64)
    a, b = (
        fp4ref.BlockScaled(q.codes[:32], q.scales[:32], format="nvfp4")
        for q in operands
    )
    found = fp4ref.run(a, b, config=config, sms=1).trace
    assert found is not None
    return found


def test_the_small_trace_has_every_frame(
    operands: tuple[fp4ref.BlockScaled, fp4ref.BlockScaled],
) -> None:
    assert missing(small_trace(operands)) == {}


# CONSTRUCTED and COND: the numbers, written out.

SHOWN: dict[str, dict[str, Any]] = {
    "1.1": {
        "stages": 4,
        "most_stages": 4,
        "a_bytes": 16384,
        "b_bytes": 16384,
        "sfa_bytes": 2048,
        "sfb_bytes": 2048,
        "stage_tx_bytes": 36864,
        "stage_bytes": 36992,
        "epilogue_bytes": 4 * 16384 + 2 * 2048,
        "smem_bytes": 218112,
    },
    "1.2": {
        "stages": 4,
        "full_count": 1,
        "empty_count": 1,
        "producer_warp": 2,
        "consumer_warp": 0,
        "transaction_bytes": 36864,
    },
    "1.3": {"full": [0, 8, 16, 24], "empty": [32, 40, 48, 56]},
    "1.5": {"cluster_1x1": 1, "cta_2_1_of_4x4": 0x44F4},
    "1.9": {
        "stages": 2,
        "full_count": 1,
        "empty_count": 128,
        "producer_warp": 0,
        "consumer_warp": 4,
    },
    "2.1": {
        "tiles_m": 16,
        "tiles_n": 16,
        "batches": 1,
        "tiles": 256,
        "grid": [16, 16, 1],
        "raster": "m",
    },
    "3.1": {
        name: {
            "type": "U4_ALIGN8B",
            "dims": [2048, 2048, 1],
            "stride_bytes": [1024, 2097152],
            "box": [256, 128, 1],
            "swizzle": "B128",
            "box_bytes": 16384,
        }
        for name in ("A", "B")
    },
    "3.2": {
        "coordinates": [256, 640, 0],
        "element": {"m": 640, "k": 256},
        "address_is_in": "tensor map",
        "byte_offset": 655488,
    },
    "3.3": {"A": [128, 256, 16, 8, 1], "B": [128, 256, 16, 8, 1]},
    "3.4": {
        name: {
            "type": "UINT16",
            "dims": [256, 32, 16, 1],
            "stride_bytes": [512, 16384, 262144],
            "box": [256, 4, 1, 1],
            "swizzle": "NONE",
            "box_bytes": 2048,
            "scales": [2048, 128],
            "tile": [128, 16],
        }
        for name in ("SFA", "SFB")
    },
    "3.5": {
        "mma": [128, 128, 64],
        "A": [[128, 64], 1, 4, 16, 8, 1],
        "B": [[128, 64], 1, 4, 16, 8, 1],
        "descriptor_high_word": 0x40004040,
        "k_block_step": 2,
    },
    "3.6": {
        "A": [[256 * i, 640, 0] for i in range(8)],
        "smem_A": [1024 + 2 * 2048 + 4 * 16384 + 16384 * i for i in range(4)],
        "stage_of_k_tile": [0, 1, 2, 3, 0, 1, 2, 3],
    },
    "3.7": {
        "cluster_1x1": dict.fromkeys(("A", "SFA", "B", "SFB"), 1),
        "cta_2_1_of_4x4": {"A": 0x4444, "SFA": 0x4444, "B": 0x00F0, "SFB": 0x00F0},
    },
    "4.1": {
        "cta_group": 1,
        "lanes": 128,
        "columns": 512,
        "granularity": 32,
        "bytes": 262144,
    },
    "4.3": {
        "accumulators": 2,
        "accumulator_columns": 128,
        "columns_per_k_block": 4,
        "sfa_columns": 16,
        "sfb_columns": 16,
        "scale_buffers": 2,
    },
    "4.4": {
        "accumulators": [0x000, 0x080],
        "sfa": [0x100, 0x120],
        "sfb": [0x110, 0x130],
        "end": 0x140,
        "second_accumulator_of_warp_5": 0x0020_0080,
    },
    "5.1": {
        "index": 0,
        "phase": 1,
        "count": 0,
        "tile": [5, 0, 0],
        "k_tiles": 8,
        "prologue": 4,
    },
    "5.2": {
        "A_rows": [640, 768],
        "B_rows": [0, 128],
        "k": [[256 * i, 256 * i + 256] for i in range(8)],
    },
    "6.1": {
        "mainloop": {"index": 0, "phase": 0, "count": 0},
        "accumulator": {"index": 0, "phase": 1, "count": 0},
    },
    "6.2": {
        "kind": "mxf4nvf4",
        "scale_vec": "4X",
        "shape": [128, 128, 64],
        "idesc": 0x08200480,
        "k_blocks": 4,
        "sfa": [128, 16],
        "sfb": [128, 16],
    },
    "6.3": {"applies": False, "tile_n": 128, "columns_even_odd": [0, 0]},
    "6.6.7": {
        "elements_per_scale": 16,
        "scales_per_row": 4,
        "scales_of_row_0": [1.0, 2.0, 4.0, 8.0],
        "d": 16.0 * (1 + 2 + 4 + 8),
    },
    "6.6.8": {
        "issuing_threads": 1,
        "warp": 0,
        "tile": [128, 128],
        "instructions_per_k_tile": 4,
    },
    "7.3": {
        "lanes": {"4": [0, 31], "5": [32, 63], "6": [64, 95], "7": [96, 127]},
        "addresses": {"4": 0, "5": 32 << 16, "6": 64 << 16, "7": 96 << 16},
        "registers": 32,
        "subtiles": 4,
    },
    "7.8": {
        "type": "U4_ALIGN8B",
        "dims": [2048, 2048, 1],
        "stride_bytes": [1024, 2097152],
        "box": [32, 128, 1],
        "swizzle": "NONE",
        "box_bytes": 2048,
        "subtiles": 4,
        "corners": [[0, 640, 0], [32, 640, 0], [64, 640, 0], [96, 640, 0]],
    },
    "8.4": {"applies": False, "cta_group": 1, "needs": "cta_group::2"},
    "8.6": {
        "applies": False,
        "accumulator_columns": 256,
        "columns": 512,
        "needs": "tiles of 128 x 256, whose two accumulators overlap",
    },
}


def test_every_constructed_and_conditional_frame_is_shown() -> None:
    shown = ids(KINDS[FrameKind.CONSTRUCTED] + KINDS[FrameKind.COND])
    assert sorted(SHOWN) == sorted(shown)


@pytest.mark.parametrize("id", SHOWN)
def test_a_constructed_frame_shows_the_real_values(id: str) -> None:
    assert show(id) == SHOWN[id]


def test_values_follow_the_configuration() -> None:
    bf16 = GemmConfig(d_format="bf16")
    assert show("1.1", bf16)["stages"] == 5
    assert show("1.9", GemmConfig(accumulator_stages=1))["stages"] == 1
    assert show("2.1", bf16, 300, 129, 96)["grid"] == [3, 2, 1]
    assert show("3.3", bf16, 300, 129, 96)["A"] == [128, 256, 3, 1, 1]
    assert show("5.1", bf16, 300, 129, 96)["tile"] == [2, 0, 0]
    narrow = GemmConfig(tile_n=64)
    assert show("6.3", narrow) == {
        "applies": True,
        "tile_n": 64,
        "columns_even_odd": [0, 2],
    }
    assert show("1.1", narrow)["stage_tx_bytes"] == 28672
    assert show("6.2", narrow)["idesc"] == 0x08100480
    assert show("4.4", GemmConfig(scale_buffers=1))["end"] == 0x120


def test_the_shown_coordinates_are_those_of_the_run(trace: Trace) -> None:
    a = [e for e in events_of(trace, "5.4.4") if e.kind == "issue"]
    assert [e.operands["coords"] for e in a] == show("3.6")["A"]
    stages = [0x400 + offset for offset in show("3.6")["smem_A"]]
    assert [e.operands["smem"] for e in a] == stages * 2
    corners = [
        e.operands["coords"]
        for e in events_of(trace, "7.9")
        if e.kind == "issue" and "coords" in e.operands
    ]
    assert corners == show("7.8")["corners"]


def test_a_problem_without_size_is_refused() -> None:
    with pytest.raises(InputError, match="K is a multiple of 32"):
        show("1.1", k=40)


# DERIVED: closed formulas.

K_TILES, STAGES = 8, 4
MACS = 128 * 128 * 64 * 4 * K_TILES
READ = K_TILES * 36864
WRITTEN = 128 * 128 // 2 + 128 * 128 // 16

DERIVED: dict[str, dict[str, Any]] = {
    "5.8": {
        "k_tiles": K_TILES,
        "bytes": {"A": 131072, "B": 131072, "SFA": 16384, "SFB": 16384},
        "total_bytes": READ,
        "expected_bytes": READ,
        "stages": STAGES,
    },
    "5.9": {"loads": 4 * K_TILES, "in_flight_at_end": 0},
    "6.11": {
        "mmas": 4 * K_TILES,
        "scale_copies": 8 * K_TILES,
        "scale_bytes": 8 * K_TILES * 512,
        "commits": K_TILES + 1,
        "accumulators": 1,
        "accumulator_bytes": 65536,
    },
    "6.12": {
        "macs": MACS,
        "operations": 2 * MACS,
        "read_bytes": READ,
        "written_bytes": WRITTEN,
        "operations_per_byte": 2 * MACS / (READ + WRITTEN),
    },
    "7.12": {
        "warps": 4,
        "tmem_loads": 16,
        "tmem_bytes": 65536,
        "stores": 4,
        "d_bytes": 8192,
        "sfd_bytes": 1024,
        "arrivals": 128,
    },
    "7.13": {
        "tmem_read_bytes": 65536,
        "written_bytes": 9216,
        "ratio": 65536 / 9216,
    },
    "8.8": {
        "ctas": 1,
        "tmem_columns": 512,
        "tmem_bytes": 262144,
        "mbarriers": 2 * STAGES + 2 * 2 + 2 * 2 + 2 * 2,
        "smem_bytes_used": 218112,
        "mainloop_stages_awaited": STAGES,
        "accumulators_awaited": 2,
        "store_tails": 1,
    },
    "8.9": {},
    "8.10": {
        "mmas": 32,
        "macs": MACS,
        "operations": 2 * MACS,
        "read_bytes": READ,
        "written_bytes": WRITTEN,
        "total_bytes": READ + WRITTEN,
        "operations_per_byte": 2 * MACS / (READ + WRITTEN),
        "accumulator_bytes": 65536,
        "tmem_bytes": 262144,
    },
}

SCHEDULED = {"5.8": {"waits"}, "5.9": {"most_in_flight", "most_bytes_in_flight"}}
SCHEDULED |= {"8.9": {"steps", "milestones", "agents"}}
"""Values that depend on when work lands; tested below."""


def test_every_derived_frame_is_tested() -> None:
    assert sorted(DERIVED) == sorted(ids(KINDS[FrameKind.DERIVED]))


@pytest.mark.parametrize("schedule", ["trace", "late_trace"])
@pytest.mark.parametrize("id", DERIVED)
def test_a_derived_frame_equals_its_formula(
    id: str, schedule: str, request: pytest.FixtureRequest
) -> None:
    found = derive(id, request.getfixturevalue(schedule))
    free = SCHEDULED.get(id, set())
    assert set(found) == set(DERIVED[id]) | free
    assert {key: found[key] for key in found if key not in free} == DERIVED[id]


def test_the_loads_of_a_whole_ring_are_in_flight_at_once(
    trace: Trace, late_trace: Trace
) -> None:
    eager, late = derive("5.9", trace), derive("5.9", late_trace)
    assert (eager["most_in_flight"], eager["most_bytes_in_flight"]) == (1, 16384)
    assert late["most_in_flight"] == 4 * STAGES
    assert late["most_bytes_in_flight"] == STAGES * 36864


def test_the_producer_waits_when_the_ring_wraps(
    trace: Trace, late_trace: Trace
) -> None:
    assert derive("5.8", trace)["waits"] == 1
    assert 1 <= derive("5.8", late_trace)["waits"] <= K_TILES - STAGES


def test_the_timeline_is_in_order(trace: Trace, late_trace: Trace) -> None:
    for found in (derive("8.9", trace), derive("8.9", late_trace)):
        steps = list(found["milestones"].values())
        assert -1 not in steps
        assert steps == sorted(set(steps))
        assert all(0 <= a <= b < found["steps"] for a, b in found["agents"].values())
        assert len(found["agents"]) == 8 + 5
    assert derive("8.9", trace)["steps"] == len(trace)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: events_of(t, "3.3"), r"3\.3 .* is of kind constructed; use show"),
        (lambda t: show("6.7"), r"6\.7 .* is of kind event; use events_of"),
        (lambda t: derive("6.3", t), r"6\.3 .* is of kind cond; use show"),
        (lambda t: show("5.8"), r"5\.8 .* is of kind derived; use derive"),
    ],
)
def test_the_wrong_call_names_the_right_one(
    call: Any, message: str, trace: Trace
) -> None:
    with pytest.raises(InputError, match=message):
        call(trace)
