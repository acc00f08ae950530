"""commands: exit statuses, JSON, and what is never overwritten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.evidence.fidelity import Standing
from fp4ref.frames import FRAMES, Verdict
from fp4ref.trace import Trace

SMALL = ["walk", "--size", "130x40x96"]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str):
        return CliRunner().invoke(app, list(words))

    return run


def test_walk_leaves_a_trace_that_can_be_read_and_compared(cli) -> None:
    assert cli(*SMALL).exit_code == 0
    assert cli(*SMALL, "--schedule", "late", "--trace", "late").exit_code == 0
    trace = Trace.load("walk.fp4trace.npz")
    assert trace.meta["shape"] == {"m": 130, "n": 40, "k": 96, "l": 1}
    result = cli("compare", "walk.fp4trace.npz", "late.fp4trace.npz")
    assert result.exit_code == 0
    assert result.stdout.startswith("equal")


def test_compare_names_the_first_difference(cli) -> None:
    cli(*SMALL, "--schedule", "eager")
    cli(*SMALL, "--schedule", "eager", "--seed", "1", "--trace", "other")
    result = cli("compare", "walk.fp4trace.npz", "other.fp4trace.npz")
    assert result.exit_code == 1
    assert result.stdout.startswith("different\nA at m 0")
    as_json = cli("compare", "walk.fp4trace.npz", "other.fp4trace.npz", "--json")
    assert json.loads(as_json.stdout)["ok"] is False


def test_walk_json_is_only_json(cli) -> None:
    result = cli(*SMALL, "--json", "--tiles", "1,0")
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["tiles_run"] == 1
    assert report["bits_compared"] == 2 * 40


def test_walk_exits_with_one_when_a_bit_differs(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fp4ref.walk import numbers as module

    right = module.expected

    def wrong(*args, **kwargs):
        want = right(*args, **kwargs)
        want.d.view(np.uint32)[0, 0] ^= 1
        return want

    monkeypatch.setattr(module, "expected", wrong)
    assert cli(*SMALL).exit_code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["walk", "none.npz"], "no such file"),
        (["walk", "none.npz", "--size", "1x1x32"], "not both"),
        (["walk", "--size", "1x1"], "give MxNxK"),
        (["walk", "--size", "axbxc"], "give MxNxK"),
        (["walk", "--size", "1x1x40"], "multiple of 32"),
        (["walk", "--size", "1x1x48"], "multiple of 32"),
        (["walk", "--size", "0x1x32"], "at least 1"),
        (["walk", "--size", "1x1x32", "--tiles", "9,9"], "tile"),
        (["walk", "--size", "1x1x32", "--tiles", "5"], "give a tile as m,n"),
        (["walk", "--size", "1x1x32", "--sms", "0"], "at least 1"),
        (["walk", "--size", "1x1x32", "--schedule", "soon"], "'eager', 'late'"),
        (["walk", "--size", "1x1x32", "--output", "fp5"], "say one of"),
        (["walk", "--size", "1x1x32", "--example", "80"], "known is 72b"),
        (["walk", "--trace", "no/where"], "no such folder"),
        (["compare", "a", "b"], "no such file"),
        (["frames", "9.9"], "9.9"),
        (["cutlass", "99"], "known: 70-fp8, 71, 72a"),
        (["cutlass", "72b", "--ordering", "none"], "say ptx or shipped"),
    ],
)
def test_bad_input_gives_the_rule_and_status_two(
    cli, words: list[str], message: str
) -> None:
    result = cli(*words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_only_a_walks_own_trace_is_replaced(cli) -> None:
    assert cli(*SMALL).exit_code == 0
    assert cli(*SMALL).exit_code == 0
    mine = Path("walk.fp4trace.npz")
    mine.write_bytes(b"something of mine")
    result = cli(*SMALL)
    assert result.exit_code == 2
    assert "--force" in result.output
    assert mine.read_bytes() == b"something of mine"
    assert cli(*SMALL, "--force").exit_code == 0
    Path("picture.svg").write_text("mine")
    assert cli(*SMALL, "--svg", "picture.svg").exit_code == 2
    assert Path("picture.svg").read_text() == "mine"


def test_the_perfetto_file_has_every_event(cli) -> None:
    cli(*SMALL, "--perfetto", "p.json", "--svg", "p.svg")
    rows = json.loads(Path("p.json").read_text())["traceEvents"]
    events = len(Trace.load("walk.fp4trace.npz"))
    assert sum(row["ph"] == "X" for row in rows) == events
    assert Path("p.svg").read_text().startswith("<svg")


def test_the_player_page_needs_nothing_else(cli) -> None:
    assert cli(*SMALL, "--player", "p.html").exit_code == 0
    page = Path("p.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "fp4ref-fallback" in page
    assert cli(*SMALL, "--player", "p.html").exit_code == 2


def test_frames_lists_and_explains(cli) -> None:
    cli("walk", "--size", "128x128x256", "--example", "72b")
    listed = json.loads(cli("frames", "--json").stdout)
    assert len(listed) == 94
    words = " ".join(cli("frames").stdout.split())
    for verdict in Verdict:
        assert f"{verdict.value} {verdict.meaning}" in words
    one = cli("frames", "4.4")
    assert "0x100" in one.stdout
    traced = cli("frames", "6.6.9", "--trace", "walk.fp4trace.npz")
    assert "8 in walk.fp4trace.npz" in " ".join(traced.stdout.split())
    derived = cli("frames", "6.11", "--trace", "walk.fp4trace.npz")
    assert derived.exit_code == 0


def test_a_frame_shows_both_sides_of_its_code(cli) -> None:
    shown = cli("frames", "6.6.4", "--code").stdout
    assert "def copy(" in shown
    assert "kernel/gemm/multiply/scale_copies.cuh" in shown
    assert "tcgen05_cp<" in shown


@pytest.mark.parametrize("frame_id", list(FRAMES))
def test_every_frame_shows_its_code(cli, frame_id: str) -> None:
    assert cli("frames", frame_id, "--code").exit_code == 0


def test_fidelity_gives_rules_and_shares(cli) -> None:
    rules = json.loads(cli("fidelity", "--json").stdout)
    assert len(rules) >= 60
    for rule in rules:
        assert {"operation", "rule", "evidence", "source", "checked_by"} <= set(rule)
        assert set(rule["mutation"]) == {"code", "right", "wrong"}
    printed = cli("fidelity").stdout
    assert "measured on silicon" in printed
    assert "CUTLASS 72b" in printed
    assert "--json" in printed
    needed = [rule for rule in rules if rule["default_gemm"]]
    assert f"needs {len(needed)} of the {len(rules)} rules" in printed
    for each in Standing:
        count = sum(rule["standing"] == each.value for rule in needed)
        assert f"{count:4}  {each.value}" in printed


def test_sass_shows_the_figures_of_the_packaged_kernels(cli) -> None:
    found = json.loads(cli("sass", "--json").stdout)["kernels"]
    assert set(found) == {
        f"fp4ref {name}" for name in ("f32", "bf16", "f16", "nvfp4", "example_72b")
    }
    for facts in found.values():
        assert facts["spill_instructions"] == 0
        assert facts["registers"] <= 128
        assert 13 < facts["per_k_tile"] < 69
    assert "13 are mandatory" in cli("sass").stdout


def test_doctor_says_what_runs(cli) -> None:
    assert "the emulator" in cli("doctor").stdout
    found = json.loads(cli("doctor", "--json").stdout)
    assert found["can_run"]
    assert found["packages"]["numpy"] == np.__version__


def test_importing_the_package_imports_no_cuda_and_no_numba() -> None:
    code = (
        "import sys, fp4ref; "
        "roots = {m.split('.')[0] for m in sys.modules}; "
        "bad = roots & {'cuda', 'numba', 'rich'}; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_command_line_needs_nothing_that_only_unix_has() -> None:
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('fcntl', 'resource', 'termios', 'pwd'))\n"
        "import fp4ref.commands, fp4ref.cutlass, fp4ref.device.compile"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_certify_proves_a_trace_and_searches_a_ring(cli) -> None:
    assert cli(*SMALL).exit_code == 0
    result = cli("certify", "walk.fp4trace.npz", "--ring", "mainloop")
    assert result.exit_code == 0
    assert result.stdout.startswith("certified: no deadlock, no overrun")
    assert "mainloop: clean." in result.stdout
    found = json.loads(
        cli("certify", "walk.fp4trace.npz", "--explore", "--json").stdout
    )
    assert found["verdict"] == "clean"
    assert all(each["interleavings"] > 0 for each in found["explored"])


def test_certify_of_a_trace_without_barriers_is_a_sentence(cli) -> None:
    Trace().save("empty")
    result = cli("certify", "empty.fp4trace.npz")
    assert result.exit_code == 2
    assert "no mbarrier events" in result.stderr


@pytest.mark.parametrize("path", [".", "..", "/", ""])
@pytest.mark.parametrize("command", [each.name for each in app.registered_commands])
def test_a_path_without_a_name_is_bad_input(cli, command: str, path: str) -> None:
    """``Path(".").with_suffix`` raises; no command may come so far."""
    result = cli(command, path)
    listed = command == "frames" and not path
    assert result.exit_code == (0 if listed else 2), result.output
    assert isinstance(result.exception, SystemExit) or listed
