"""trace_file: what no run records is refused by name, part by part."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from fuzz_files import TraceParts, archive, npy

from fp4ref.errors import TraceError
from fp4ref.trace import Trace
from fp4ref.walk import random_problem, walk


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> TraceParts:
    run = walk(random_problem(1, 1, 32), backend="emulator").run
    assert run.trace is not None
    path = run.trace.save(tmp_path_factory.mktemp("trace") / "whole")
    return TraceParts(path.read_bytes())


def refused(parts: TraceParts, path: Path, change: Callable[[Any, Any], None]) -> str:
    """Change header and arrays; return the sentence that refuses the file."""
    header = json.loads(json.dumps(parts.header))
    arrays = dict(parts.arrays)
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    path.write_bytes(archive({f"{n}.npy": npy(a) for n, a in arrays.items()}))
    with pytest.raises(TraceError) as raised:
        Trace.load(path)
    return str(raised.value)


def set_event(name: str, value: Any) -> Callable[[Any, Any], None]:
    def change(header: Any, _: Any) -> None:
        header["events"][3][name] = value

    return change


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sm", -1),
        ("cta", [0, 0]),
        ("kind", "lands"),
        ("operands", []),
        ("frames", [1]),
        ("issued", 4),
        ("after", [-1]),
        ("after", [3]),
        ("after", [1 << 40]),
        ("after", [0.0]),
        ("after", [True]),
        ("after", ["0"]),
        ("after", {"0": 1}),
        ("agent", None),
        ("source", 7),
        ("reads", [["gmem", 0, 1, 1, 0]]),
        ("writes", [["smem0", 1 << 60, 1, 1, 0]]),
        ("writes", [["smem0", 1024, 1, 1 << 40, 1]]),
        ("writes", [["smem9", 1024, 1, 1, 0]]),
        ("writes", [["smem0", 1024, 1]]),
        ("barrier", [["smem0", 0, "full", [0, 0], [0, 0, 0]]]),
    ],
)
def test_an_event_that_no_run_records(
    parts: TraceParts, tmp_path: Path, name: str, value: Any
) -> None:
    said = refused(parts, tmp_path / "x.npz", set_event(name, value))
    assert f"x.npz was altered or damaged: event 3 has {name} {value!r}"[:60] in said
    assert said.endswith("; make the trace again")


def test_events_out_of_order_and_of_another_form(
    parts: TraceParts, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    assert "event 3 has another step" in refused(parts, path, set_event("step", 4))
    assert "event 3 has an unknown more" in refused(parts, path, set_event("more", 1))
    assert "event 3 has another type" in refused(parts, path, set_event("cta", 1))

    def without_agent(header: Any, _: Any) -> None:
        del header["events"][3]["agent"]

    assert "event 3 has no 'agent'" in refused(parts, path, without_agent)

    def base(header: Any, _: Any) -> None:
        header["base"]["gmem"] = "0"

    assert "the base of gmem is '0'" in refused(parts, path, base)


def test_arrays_of_another_form(parts: TraceParts, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"

    def typed(_: Any, arrays: Any) -> None:
        arrays["image_gmem"] = arrays["image_gmem"].astype(np.int64)

    def without_payload(_: Any, arrays: Any) -> None:
        del arrays["payload"]

    def longer(_: Any, arrays: Any) -> None:
        arrays["payload"] = np.append(arrays["payload"], np.uint8(0))

    assert "no trace: image_gmem is not a row of bytes" in refused(parts, path, typed)
    assert "no trace: it has no payload" in refused(parts, path, without_payload)
    assert "bytes of no event" in refused(parts, path, longer)


def test_the_parts_are_right_before(parts: TraceParts, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with pytest.raises(pytest.fail.Exception):
        refused(parts, path, lambda *_: None)
    assert len(Trace.load(path)) == len(parts.header["events"])
