"""fp4ref certify: every file that it cannot certify is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fp4ref
from fp4ref.commands import app


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of one tile with two stages and two k-tiles."""
    a, b = (fp4ref.quantize(np.ones((n, 512), np.float32)) for n in (128, 64))
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=2)
    trace = fp4ref.run(a, b, config=config, sms=1).trace
    assert trace is not None
    return trace.save(tmp_path_factory.mktemp("recorded") / "run")


def refused(*words: str) -> str:
    """Return the one sentence that the command says, with exit status 2."""
    result = CliRunner().invoke(app, ["certify", *words])
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Traceback" not in result.stderr
    sentence = " ".join(result.stderr.split())
    assert sentence
    return sentence


def changed(
    recorded: Path, path: Path, change: Callable[[dict[str, Any]], None]
) -> str:
    """Write the trace with another header; return its name."""
    with np.load(recorded) as parts:
        arrays = dict(parts)
    header = json.loads(arrays.pop("header").tobytes())
    change(header)
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(path, allow_pickle=False, header=text, **arrays)
    return str(path)


def test_a_whole_trace_is_certified(recorded: Path) -> None:
    result = CliRunner().invoke(app, ["certify", str(recorded)])
    assert result.exit_code == 0
    assert result.stdout.startswith("certified: no deadlock, no overrun")


@pytest.mark.parametrize("version", [0, 2, None, "old"])
def test_a_trace_of_another_release(recorded: Path, tmp_path: Path, version) -> None:
    name = changed(recorded, tmp_path / "old.npz", lambda h: h.update(version=version))
    assert refused(name).endswith(
        f"has trace format {version}, this release reads format 1; make the trace again"
    )


def no_barriers(header: dict[str, Any]) -> None:
    for event in header["events"]:
        event["barrier"] = []


def no_barriers_at_all(header: dict[str, Any]) -> None:
    for event in header["events"]:
        del event["barrier"]


def no_plan(header: dict[str, Any]) -> None:
    del header["meta"]["plan"]


def a_plan_of_another_release(header: dict[str, Any]) -> None:
    del header["meta"]["plan"]["smem"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (no_barriers, "no mbarrier events: nothing in it synchronises; make one with"),
        (no_plan, "does not hold its kernel's plan"),
        (no_barriers_at_all, "event 0 has no 'barrier'; make the trace again"),
        (a_plan_of_another_release, "not one that this release reads"),
    ],
)
def test_a_trace_that_does_not_say_what_orders_it(
    recorded: Path, tmp_path: Path, change: Any, said: str
) -> None:
    assert said in refused(changed(recorded, tmp_path / "part.npz", change))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("text.txt", b"hello", "is no trace: it is no zip archive"),
        ("empty.npz", b"", "is no trace: it is empty"),
        ("half.npz", None, "is no trace: it is damaged or cut short"),
    ],
)
def test_what_is_no_trace(
    recorded: Path, tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(recorded.read_bytes()[:5000] if data is None else data)
    sentence = refused(str(path))
    assert said in sentence
    assert "write one with `fp4ref walk`" in sentence


def test_a_folder_other_arrays_and_a_missing_file(tmp_path: Path) -> None:
    assert "is a folder; name a file" in refused(str(tmp_path))
    assert "no such file" in refused(str(tmp_path / "missing.npz"))
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    assert "no header and no payload" in refused(str(tmp_path / "other.npz"))


def test_a_program_too_large_to_explore_has_its_limit_and_nearest_choices(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fp4ref.evidence.protocol.exploration.MOST_STEPS", 100)
    sentence = refused(str(recorded), "--explore")
    for words in ("steps, and 100 are the most", "one tile", "ring='mainloop'"):
        assert words in sentence
    result = CliRunner().invoke(app, ["certify", str(recorded), "--ring", "mainloop"])
    assert result.exit_code == 0


def test_a_search_that_is_cut_short_is_incomplete_and_not_ok(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = fp4ref.evidence.protocol.explore.__kwdefaults__ | {"most_states": 50}
    monkeypatch.setattr(fp4ref.evidence.protocol.explore, "__kwdefaults__", few)
    result = CliRunner().invoke(app, ["certify", str(recorded), "--explore"])
    assert result.exit_code == 1
    assert "incomplete: 50 states were visited and more are left" in result.stdout


def test_an_unknown_ring_has_those_that_there_are(recorded: Path) -> None:
    assert "take 'mainloop', 'clc'" in refused(str(recorded), "--ring", "main")
