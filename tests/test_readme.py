"""The README's Python runs, and its commands and paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((n, 512), np.float32) for n in (150, 40))
    exec(compile(code, "README.md", "exec"), {"x": x, "w": w})
    assert capsys.readouterr().out.startswith("equal:")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`fp4ref (\w+)", TEXT))))
def test_every_command_exists(name: str) -> None:
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#:]+)\)|`(fp4ref/\w+)`", TEXT))
def test_every_path_exists(path: tuple[str, str]) -> None:
    assert (ROOT / "".join(path)).exists()


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", TEXT, re.MULTILINE))
def test_every_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_it_fits_on_a_screen_and_a_half() -> None:
    assert len(TEXT.splitlines()) <= 75
