"""trace: any step forward or back, one file, damage, Perfetto, ranges."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "hardware"))
from on_machine import MBAR, TILE, launch, machine, random_bytes

from fp4ref.errors import TraceError
from fp4ref.hardware import mbarrier, smem, tma, tmem
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.trace import Barrier, Range, Recorder, Trace


@pytest.fixture(scope="module")
def run():
    """A copy kernel with TMEM traffic under the late schedule."""
    on = machine("late", trace=True)
    source = on.gmem.upload("S", random_bytes(1024))
    target = on.gmem.allocate("D", 1024)
    maps = [
        TensorMap(DataType.UINT8, at, (128, 8), (128,), (64, 3))
        for at in (source, target)
    ]

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        warp.smem.labels[MBAR] = "full"
        yield from tmem.alloc(warp, MBAR + 8, 64)
        for k in range(4):
            with warp.frame("5.4", "5.5"):
                mbarrier.arrive_expect_tx(warp, MBAR, 192)
                tma.load(warp, maps[0], (16 * k, k), TILE, MBAR)
                yield from mbarrier.try_wait(warp, MBAR, k & 1)
            tmem.st(warp, k, np.full((32, 2), k, np.uint32), "32x32b", 2)
            yield from tmem.wait_st(warp)
            tma.store(warp, maps[1], (16 * k, k), TILE)
            tma.commit_group(warp)
            yield from tma.wait_group(warp, 0)
        smem.st(warp, TILE + 5, random_bytes(3))
        warp.note("done", rounds=4)
        tmem.dealloc(warp, 0, 64)

    launch(on, body)
    return on, on.recorder.trace


def recompute(trace, step):
    """Memory after `step` from the images, by one pass, byte by byte."""
    memory = {s: image.copy() for s, image in trace.images.items()}
    known = {s: np.full(i.size, s == "gmem") for s, i in trace.images.items()}
    for event in trace.events[: step + 1]:
        for where, delta in zip(event.writes, trace.deltas[event.step], strict=True):
            for row in range(where.rows):
                at = where.start - trace.base[where.space] + row * where.pitch
                memory[where.space][at : at + where.nbytes] ^= delta[row]
                known[where.space][at : at + where.nbytes] = True
    return memory, known


def test_any_step_in_any_order(run):
    _, trace = run
    steps = list(range(-1, len(trace))) + list(range(len(trace) - 1, -2, -1))
    rng = random.Random(1)
    steps += [rng.randrange(-1, len(trace)) for _ in range(200)]
    want = {s: recompute(trace, s) for s in set(steps)}
    for step in steps:
        state = trace.at(step)
        memory, known = want[step]
        assert state.step == step
        for space in memory:
            np.testing.assert_array_equal(state.memory[space], memory[space])
            np.testing.assert_array_equal(state.written[space], known[space])


def test_the_last_step_is_what_the_machine_holds(run):
    on, trace = run
    state = trace.at(len(trace) - 1)
    np.testing.assert_array_equal(state.memory["gmem"], on.gmem.data)
    np.testing.assert_array_equal(state.memory["smem0"], on.sms[0].smem.data)
    np.testing.assert_array_equal(state.memory["tmem0"], on.sms[0].tmem.data)


def test_a_state_is_a_copy(run):
    _, trace = run
    state = trace.at(5)
    state.memory["smem0"][:] = 0
    assert trace.at(5).memory["smem0"].any()


def test_never_written_bytes_are_marked(run):
    _, trace = run
    written = trace.at(len(trace) - 1).written
    assert written["smem0"][TILE - 0x400 :][:192].all()
    assert not written["smem0"][TILE - 0x400 + 192 :].any()
    cells = written["tmem0"].reshape(128, 512, 4).all(2)
    assert cells[:32, :5].all()
    assert cells.sum() == 32 * 5
    assert not trace.at(-1).written["smem0"].any()
    assert trace.at(-1).written["gmem"].all()


def test_read_of_a_state(run):
    _, trace = run
    rows = trace.at(len(trace) - 1).read(Range("tmem0", 0, 8, 2, 2048))
    assert rows.shape == (2, 8)
    np.testing.assert_array_equal(rows.view("<u4"), [[0, 1], [0, 1]])


@pytest.mark.parametrize("step", [-2, 1 << 20])
def test_steps_outside(run, step):
    _, trace = run
    with pytest.raises(TraceError, match="steps run from -1"):
        trace.at(step)


@pytest.mark.parametrize("step", ["x", 1.5, None, True])
def test_a_step_is_a_whole_number(run, step):
    _, trace = run
    with pytest.raises(TraceError, match=r"step: .*; need a whole number"):
        trace.at(step)


def test_events_say_who_what_and_where(run):
    _, trace = run
    [load, *_] = trace.select(operation="cp.async.bulk.tensor.2d.load", agent="tma")
    issue = trace.events[load.issued]
    assert (issue.kind, load.kind) == ("issue", "land")
    assert issue.agent == "warp0"
    assert load.frames == issue.frames == ("5.4", "5.5")
    assert load.source == issue.source
    assert load.source.startswith("test_trace.py:")
    assert load.writes[0] == Range("smem0", TILE, 192)
    assert load.barrier == (Barrier("smem0", MBAR, "full", (0, 0, 192), (1, 1, 0)),)
    assert load.reads[0].nbytes == 64
    [waited, *_] = trace.select(operation="mbarrier.try_wait")
    assert 0 <= waited.issued <= load.step < waited.step
    assert [e.step for e in trace] == list(range(len(trace)))
    assert trace.select(frame="5.5", cta=(0, 0, 0))
    assert not trace.select(cta=(1, 0, 0))
    assert trace.select(operation="done")[0].kind == "note"


def equal(a, b):
    assert a.events == b.events
    assert (a.base, a.meta) == (b.base, b.meta)
    assert set(a.images) == set(b.images)
    for space, image in a.images.items():
        np.testing.assert_array_equal(image, b.images[space])
    assert len(a.deltas) == len(b.deltas)
    for x, y in zip(a.deltas, b.deltas, strict=True):
        for p, q in zip(x, y, strict=True):
            np.testing.assert_array_equal(p, q)


def test_save_and_load(run, tmp_path):
    _, trace = run
    trace.meta["shape"] = [1, 2]
    path = trace.save(tmp_path / "copy")
    assert path.name == "copy.fp4trace.npz"
    assert trace.save(path) == path
    again = Trace.load(path)
    equal(trace, again)
    np.testing.assert_array_equal(
        again.at(9).memory["gmem"], trace.at(9).memory["gmem"]
    )


def test_an_empty_trace(tmp_path):
    path = Trace().save(tmp_path / "empty")
    equal(Trace(), Trace.load(path))


def test_a_folder_that_does_not_exist(run, tmp_path):
    _, trace = run
    with pytest.raises(TraceError, match="cannot write"):
        trace.save(tmp_path / "no" / "such" / "file")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(TraceError, match="no such file"):
        Trace.load(tmp_path / "none.fp4trace.npz")


def damaged(path, data):
    path.write_bytes(data)
    with pytest.raises(TraceError):
        Trace.load(path)


def test_files_of_another_kind(run, tmp_path):
    path = tmp_path / "x.fp4trace.npz"
    damaged(path, b"")
    damaged(path, b"hello")
    damaged(path, b"PK\x03\x04")
    damaged(path, random_bytes(5000).tobytes())
    np.save(tmp_path / "array.npy", np.zeros(3))
    damaged(path, (tmp_path / "array.npy").read_bytes())
    np.savez(path, other=np.zeros(3))
    damaged(path, path.read_bytes())
    with pytest.raises(TraceError):
        Trace.load(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b'{"version": 1}',
        b'{"version": 1, "meta": {}, "base": {}, "events": [1]}',
        b'{"version": 1, "meta": {}, "base": {}, "events": [{"step": 0}]}',
        b"\xff",
    ],
)
def test_headers_of_another_kind(tmp_path, header):
    path = tmp_path / "x.npz"
    np.savez(
        path, header=np.frombuffer(header, np.uint8), payload=np.zeros(0, np.uint8)
    )
    damaged(path, path.read_bytes())


def test_another_version(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(
        path,
        header=np.frombuffer(b'{"version": 99}', np.uint8),
        payload=np.zeros(0, np.uint8),
    )
    with pytest.raises(TraceError, match="trace format 99"):
        Trace.load(path)


def test_a_payload_cut_short(run, tmp_path):
    _, trace = run
    path = trace.save(tmp_path / "copy")
    with np.load(path) as file:
        parts = dict(file)
    parts["payload"] = parts["payload"][:-1]
    np.savez(path, **parts)
    with pytest.raises(TraceError, match="cut short"):
        Trace.load(path)


def test_flipped_and_missing_bytes(run, tmp_path):
    _, trace = run
    path = trace.save(tmp_path / "copy")
    good = path.read_bytes()
    rng = random.Random(0)
    for _ in range(60):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        with contextlib.suppress(TraceError):
            equal(trace, Trace.load(path))
    for _ in range(10):
        damaged(path, good[: rng.randrange(len(good))])


def test_perfetto(run):
    _, trace = run
    loaded = json.loads(json.dumps(trace.to_perfetto()))
    rows = loaded["traceEvents"]
    names = {r["tid"]: r["args"]["name"] for r in rows if r["name"] == "thread_name"}
    spans = [r for r in rows if r["ph"] == "X"]
    assert len(spans) == len(trace)
    for event, span in zip(trace, spans, strict=True):
        assert span["name"] == event.operation
        assert names[span["tid"]] == event.agent
        assert span["ts"] + span["dur"] == event.step + 1
        begins = event.issued if event.issued >= 0 else event.step
        assert span["ts"] == begins
        assert span["args"]["step"] == event.step
    assert {"warp0", "tma", "tma.read", "tmem"} == set(names.values())


@given(
    st.tuples(*[st.integers(0, 60)] * 2, st.integers(1, 20), st.integers(1, 5)),
    st.tuples(*[st.integers(0, 60)] * 2, st.integers(1, 20), st.integers(1, 5)),
    st.tuples(st.integers(0, 25), st.integers(0, 25), st.booleans()),
)
def test_overlap_of_ranges(a, b, pitches):
    def make(values, pitch):
        start, more, nbytes, rows = values
        return Range("smem0", start + more, nbytes, rows, pitch)

    def covered(r):
        return {
            r.start + i * r.pitch + j for i in range(r.rows) for j in range(r.nbytes)
        }

    p, q, same = pitches
    x, y = make(a, p), make(b, p if same else q)
    want = bool(covered(x) & covered(y))
    assert x.overlaps(y) == y.overlaps(x) == want
    assert not x.overlaps(y._replace(space="smem1"))
    assert x.end == max(covered(x)) + 1
    assert x.size == x.rows * x.nbytes


def test_observers_see_events_as_they_come():
    recorder = Recorder()
    seen = []
    recorder.observers.append(lambda e: seen.append((e.step, len(recorder.trace))))
    for _ in range(3):
        recorder.end(0, (0, 0, 0), "warp0", "x", "sync", {})
    assert seen == [(0, 1), (1, 2), (2, 3)]
