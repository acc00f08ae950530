"""exit_status: sentences and statuses of the command line; nothing lost on the way."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.commands import doctor as doctor_module
from fp4ref.commands import walk as walk_module
from fp4ref.errors import ExitFault
from fp4ref.files import free_memory
from fp4ref.hardware.machine import MOST_SMS
from fp4ref.trace import Trace
from fp4ref.trace import file as trace_file

SMALL = ["walk", "--size", "1x1x32", "--no-kernel"]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str):
        return CliRunner().invoke(app, list(words))

    return run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sms", "100000"], f"the largest Blackwell GPU {MOST_SMS}. Ask for"),
        (["--sms", "-1"], "ask for at least 1"),
        (["--seed", "-1"], "seed -1: a seed is 0 or more"),
        (["--tiles", "0,0", "--tiles", "0,0,0"], "tile 0,0 is named twice"),
        (["--tiles", "9,0"], "tile 9,0: y has 1 x 1 tiles, from 0,0 to 0,0"),
        (["--tiles", "0,0,1"], "tile 0,0,1: y has 1 x 1 tiles"),
        (["--tiles", "a"], "'a': give a tile as m,n, for example 5,0"),
        (["--schedule", "soon"], "say 'eager', 'late', 'timed' or an integer seed"),
        (["--output", "bf16", "--example", "72b"], "give --output or --example"),
        (["--example", "nonsense"], "known is 72b"),
        (["--trace", "no/where"], "cannot write no/where.fp4trace.npz: no such folder"),
        (["--player", "."], ". is a folder; name a file"),
        (["--player", "x" * 300], "name too long"),
        (["--player", os.devnull, "--force"], "is a pipe or a device; name a file"),
        (["--svg", "a", "--player", "./a"], "a is another output too"),
        (["--size", "99999999x99999999x32"], "more than 268,435,456 elements"),
        (["--size", "1x1x-32"], "every size is at least 1"),
    ],
)
def test_every_option_of_walk_has_its_sentence(
    cli, words: list[str], sentence: str
) -> None:
    result = cli(*SMALL, *words)
    assert result.exit_code == 2, result.output
    assert sentence.lower() in " ".join(result.stderr.split()).lower()
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cutlass", "72b", "--m", "-1"], "every extent is 1 or more"),
        (["cutlass", "72b", "--k", "9999999999"], "at most 2,147,483,647"),
        (["cutlass", "72b", "--n", "40"], "72b takes multiples of 1 x 32 x 32"),
        (["cutlass", "tutorial-01", "--m", "64"], "multiples of 128 x 256 x 64"),
        (["cutlass", "[/b]"], "no CUTLASS example '[/b]'; known: 70-fp8"),
        (["cutlass", "72b", "--sms", "1000"], "160 or fewer"),
        (["cutlass", "72a", "--sms", "4"], "its clusters need 8, one for each CTA"),
        (["cutlass", "72a", "--n", "100"], "72a takes multiples of 1 x 8 x 32"),
        (["frames", "--code"], "--code: name the frame too"),
        (["frames", "--trace", "x"], "--trace: name the frame too"),
        (["frames", "6.6.9", "--json", "--code"], "give --json, or --trace"),
        (["frames", "6.6.9", "--trace", "x"], "x: no such file"),
        (["frames", "[/b]"], "no frame '[/b]'; ids run from 1.1"),
        (["compare", ".", "."], ". is a folder; name a file"),
        (["sass", "--nope"], "No such option"),
        (["doctor", "extra"], "unexpected extra argument"),
    ],
)
def test_every_command_has_its_sentence(cli, words: list[str], sentence: str) -> None:
    result = cli(*words)
    assert result.exit_code == 2, result.output
    assert sentence in " ".join(result.stderr.split())


def test_what_needs_too_much_memory_is_not_begun(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_memory, "free_nbytes", lambda: 10**9)
    monkeypatch.setattr("fp4ref.walk.numbers._quantise", None)
    result = cli("walk", "--size", "4096x4096x4096")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "a walk of 1,024 tiles of 4,096 x 4,096 x 4,096 on 2 SMs needs about" in said
    assert "1.0 GB are free. Run some tiles only (--tiles 0,0)" in said


def test_the_input_is_no_output(cli) -> None:
    x = np.ones((2, 32), np.float32)
    np.savez("x.npz", x=x, w=x)
    before = Path("x.npz").read_bytes()
    result = cli("walk", "x.npz", "--player", "x.npz", "--force")
    assert result.exit_code == 2
    assert "x.npz is the input too; name another file" in result.stderr
    assert Path("x.npz").read_bytes() == before


def test_a_warning_is_a_sentence(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def doctor() -> str:
        warnings.warn("something is odd", UserWarning, stacklevel=1)
        return "fine"

    monkeypatch.setattr(doctor_module, "doctor", doctor)
    result = cli("doctor")
    assert (result.exit_code, result.stdout) == (0, "fine\n")
    assert result.stderr == "warning: something is odd\n"


def failing(error: BaseException):
    """Return a function that raises."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (ExitFault("a CTA exited with work in flight"), 1, "ExitFault: a CTA exited"),
        (MemoryError(), 2, "memory ran out; take smaller sizes or fewer tiles"),
        (OSError(28, "No space left on device"), 1, "cannot print: No space left"),
        (OSError(5, "Input/output error", "file"), 1, "file: Input/output error"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C; no file is left half written"),
    ],
)
def test_statuses(
    cli,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    sentence: str,
) -> None:
    assert cli(*SMALL).exit_code == 0
    before = Path("walk.fp4trace.npz").read_bytes()
    monkeypatch.setattr(walk_module, "walk", failing(error))
    result = cli(*SMALL)
    assert result.exit_code == status
    assert result.stderr.startswith(sentence)
    assert sentence or not result.stderr
    assert Path("walk.fp4trace.npz").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["walk.fp4trace.npz"]


def test_a_full_disk_leaves_the_old_trace(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli(*SMALL).exit_code == 0
    before = Path("walk.fp4trace.npz").read_bytes()

    def half(opened, **_: object) -> None:
        opened.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_file.np, "savez_compressed", half)
    result = cli(*SMALL)
    assert result.exit_code == 2
    assert result.stderr == (
        "cannot write walk.fp4trace.npz: No space left on device; name another place\n"
    )
    assert Path("walk.fp4trace.npz").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["walk.fp4trace.npz"]


def test_a_link_stays_a_link_and_rights_stay(cli) -> None:
    assert cli(*SMALL, "--trace", "real").exit_code == 0
    real, link = Path("real.fp4trace.npz"), Path("link.fp4trace.npz")
    real.chmod(0o640)
    link.symlink_to(real.name)
    before = real.read_bytes()
    assert cli(*SMALL, "--seed", "1", "--trace", "link").exit_code == 0
    assert link.is_symlink()
    assert real.read_bytes() != before
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["[/b]", "\udcff", "a b", "ü"])
def test_names_of_any_kind_are_printed(cli, name: str) -> None:
    Path(name.strip("/")).parent.mkdir(exist_ok=True)
    name = name.replace("/", "")
    assert cli(*SMALL, "--trace", name, "--player", f"{name}.html").exit_code == 0
    x = np.ones((2, 32), np.float32)
    np.savez(f"{name}.npz", x=x, w=x)
    assert cli("walk", f"{name}.npz", "--no-kernel", "--json").exit_code == 0
    shown = cli("frames", "6.6.9", "--trace", f"{name}.fp4trace.npz")
    assert shown.exit_code == 0
    assert " in " in shown.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full")
@pytest.mark.parametrize("words", [["doctor"], ["--help"]])
def test_a_full_output_is_a_sentence(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fp4ref", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "cannot print: No space left on device\n"


def test_the_statuses_are_in_the_help(cli) -> None:
    said = " ".join(cli("--help").stdout.replace("│", "").split())
    assert "Exit status: 0 right, 1 a difference or a fault, 2 bad input." in said


def test_a_trace_that_was_altered_is_named(cli) -> None:
    import json

    assert cli(*SMALL).exit_code == 0
    trace = Trace.load("walk.fp4trace.npz")
    loads = (e for e in trace if e.operation.endswith(".load") and e.issued >= 0)
    load = next(e for e in loads if e.operands["tensor"] == "A")
    del load.operands["coords"]
    trace.save("cut")
    result = cli("compare", "walk.fp4trace.npz", "cut.fp4trace.npz")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "walk.fp4trace.npz or cut.fp4trace.npz was altered or damaged: an event lacks "
        "what its operation needs (KeyError: 'coords'); make the trace again"
    )
    as_json = cli("compare", "walk.fp4trace.npz", "walk.fp4trace.npz", "--json")
    assert json.loads(as_json.stdout)["ok"] is True
