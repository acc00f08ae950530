"""The page of check: what it shows was run, its launch file runs, its gate closes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import check_page
import jsonschema
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.evidence.check import EXIT_STATUS
from fp4ref.lessons.your_kernel import REVERSE, reverse

PAGE = (Path(__file__).parents[2] / "book" / "check.md").read_text()
STEP = {
    "type": "object",
    "oneOf": [{"required": ["uses"]}, {"required": ["run"]}],
    "properties": {
        "uses": {"type": "string", "pattern": r"^[\w-]+/[\w-]+@v\d+$"},
        "run": {"type": "string"},
        "if": {"type": "string"},
        "with": {"type": "object"},
    },
    "additionalProperties": False,
}
WORKFLOW = {
    "type": "object",
    "required": ["name", "on", "permissions", "jobs"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "on": {"const": ["pull_request"]},
        "permissions": {"const": {"contents": "read"}},
        "jobs": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["runs-on", "steps"],
                "properties": {
                    "runs-on": {"pattern": "^ubuntu-"},
                    "timeout-minutes": {"type": "integer"},
                    "steps": {"type": "array", "items": STEP, "minItems": 2},
                },
                "additionalProperties": False,
            },
        },
    },
}
"""Of GitHub's syntax what a gate needs."""


def workflow() -> dict:
    # YAML 1.1 reads the key `on` as true.
    read = yaml.safe_load(check_page.WORKFLOW)
    return {"on" if key is True else key: value for key, value in read.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (kernels / "reverse.ptx").write_text(REVERSE)
    (kernels / "reverse.toml").write_text(check_page.launch_file())
    x = np.arange(64, dtype=np.uint32)
    np.save(kernels / "in.npy", x)
    np.save(kernels / "want.npy", x[::-1])
    return tmp_path


def gate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the step of the workflow that checks, as a shell would."""
    monkeypatch.chdir(folder)
    (step,) = [
        step["run"]
        for step in workflow()["jobs"]["check"]["steps"]
        if step.get("run", "").startswith("fp4ref ")
    ]
    command, _, target = step.partition(" > ")
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    (folder / target).write_text(done.stdout)
    return done.exit_code


def test_the_workflow_is_valid_and_keeps_what_was_said() -> None:
    found = workflow()
    jsonschema.validate(found, WORKFLOW)
    steps = found["jobs"]["check"]["steps"]
    uploads = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert [step["if"] for step in uploads] == ["always()"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found | {"stages": []}, WORKFLOW)


def test_the_gate_is_open_for_a_right_kernel_and_shut_for_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = folder / "kernels"
    assert gate(folder, monkeypatch) == 0
    assert np.load(kernels / "out.npy").tolist() == list(range(64))[::-1]
    (kernels / "out.npy").unlink()
    (kernels / "reverse.ptx").write_text(reverse(barrier=False))
    assert gate(folder, monkeypatch) == 1
    (kernels / "out.npy").unlink()
    (kernels / "reverse.ptx").write_text(REVERSE.replace("sm_100a", "sm_90a"))
    assert gate(folder, monkeypatch) == 2


def test_the_report_is_that_of_the_missing_barrier() -> None:
    found = check_page.example()
    assert found.errors[0].name == "missing synchronisation"
    assert "```text\nreverse, in reverse.ptx\n" in check_page.report()


def test_every_status_has_a_row_and_every_part_is_included() -> None:
    for name, number in EXIT_STATUS.items():
        assert f"| {name} | {number} |" in check_page.statuses()
    included = re.findall(r"\{include\} (\S+)", PAGE)
    assert sorted(included) == sorted(check_page.pages())


def test_the_kinds_of_parameters_of_the_page_are_read(folder: Path) -> None:
    words = re.findall(r"`(\w+) =", PAGE)
    from fp4ref.evidence.check.launch import DTYPES

    known = {*DTYPES, "buffer", "bytes", "zeros", "file", "field", "bits"}
    assert set(words) <= known
