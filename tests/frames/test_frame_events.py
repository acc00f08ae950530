"""EVENT frames: each is emitted, with its operations and as often as it happens."""

from __future__ import annotations

import numpy as np
import pytest
from frame_kinds import KINDS, ids

import fp4ref
from fp4ref.frames import FRAMES, FrameKind, events_of, frame
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Trace


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


def ones(rows: int) -> fp4ref.BlockScaled:
    """A matrix of 64 columns."""
    return fp4ref.quantize(np.ones((rows, 64), np.float32))


ASKED = {id: entry for id, entry in FRAMES.items() if entry.asks}


def test_masks_and_conditional_frames_name_their_configuration() -> None:
    cond = set(ids(KINDS[FrameKind.COND]))
    assert set(ASKED) == {"1.5", *cond}


@pytest.mark.parametrize("id", ASKED)
def test_a_frame_is_emitted_by_the_configuration_that_it_names(id: str) -> None:
    config = GemmConfig.nvfp4(**ASKED[id].asks)
    a = b = ones(256)
    sms = fp4ref.plan(config).cluster_size
    run = fp4ref.run(a, b, config=config, sms=sms)
    assert run.trace is not None
    assert events_of(run.trace, id) == run.trace.select(frame=id) != []
    assert ASKED[id].kind is not FrameKind.EVENT


@pytest.mark.parametrize("id", ASKED)
def test_the_default_emits_none_of_them(trace: Trace, id: str) -> None:
    assert events_of(trace, id) == []


def test_the_masks_are_told_by_every_cta() -> None:
    """CUTLASS's masks of a 4 x 2 cluster: a row is every fourth, a column is four."""
    config = GemmConfig.nvfp4(**ASKED["1.5"].asks)
    run = fp4ref.run(ones(512), ones(256), config=config, sms=8)
    assert run.trace is not None
    told = {
        event.cta: (event.operands["row"], event.operands["column"])
        for event in events_of(run.trace, "1.5")
    }
    assert told == {
        (m, n, 0): (0b10001 << m, 0b1111 << 4 * n) for m in range(4) for n in range(2)
    }
