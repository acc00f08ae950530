"""check_jupyter_book: run Jupyter Book's own engine on the sources.

``python book/check_jupyter_book.py [--execute]`` needs ``pip install jupyter-book`` and
Node.js. The engine gets a theme that draws nothing, since its own comes from the web:
what is checked is that it reads myst.yml and every page and resolves every link, with
errors as failures; with ``--execute`` also that it runs the notebooks.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

BOOK = Path(__file__).parent
sys.path[:0] = [str(BOOK)] if str(BOOK) not in sys.path else []

import table_of_contents  # noqa: E402
from generate import generate  # noqa: E402

THEME = """\
jtex: v1
title: no theme
version: 1.0.0
kind: site
build:
  install: node --version
  start: node --version
  render: node --version
"""

COMPLAINTS = ("\N{WARNING SIGN}", "\N{NO ENTRY}")
"""How the engine marks warnings and errors."""

SERVER_CONFIG = "c.ServerApp.allow_root = True\n"
"""The engine starts a Jupyter server for the notebooks; as root it must be told."""


def find_engine() -> list[str] | None:
    """Return the command of Jupyter Book or of its engine, if there is one."""
    for name in ("jupyter-book", "myst"):
        beside = Path(sys.executable).with_name(name)
        found = str(beside) if beside.exists() else shutil.which(name)
        if found:
            return [found]
    return None


def copy_sources(target: Path) -> Path:
    """Copy what the table of contents names, with a theme; return the book's folder."""
    book = target / "book"
    skip = shutil.ignore_patterns("_build", "__pycache__", ".*")
    shutil.copytree(BOOK, book, ignore=skip)
    shutil.copytree(BOOK.parent / "docs", target / "docs")
    theme = target / "theme"
    theme.mkdir()
    (theme / "template.yml").write_text(THEME, "utf-8")
    config = (book / "myst.yml").read_text("utf-8")
    (book / "myst.yml").write_text(f"{config}  template: ../theme\n", "utf-8")
    (target / "jupyter").mkdir()
    (target / "jupyter" / "jupyter_server_config.py").write_text(SERVER_CONFIG, "utf-8")
    return book


def run(
    command: list[str], folder: Path, environment: Mapping[str, str]
) -> tuple[int, int]:
    """Run the engine, show what it says; return its status and count of complaints.

    Its strict mode stops at errors only; a warning is a failure here too.
    """
    complaints = 0
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="")
            complaints += any(sign in line for sign in COMPLAINTS)
    return process.returncode, complaints


def missing_pages(book: Path) -> list[str]:
    """Files of the table of contents of which the engine made no page."""
    made = {path.stem for path in (book / "_build" / "site" / "content").glob("*.json")}
    names = [Path(file).stem for file in table_of_contents.read().files]
    slugs = {name: re.sub(r"^\d+[-_.]|_", _slug, name).lower() for name in names}
    return [name for name, slug in slugs.items() if slug not in made]


def _slug(found: re.Match[str]) -> str:
    """The engine drops a leading number and writes hyphens."""
    return "-" if found[0] == "_" else ""


def main() -> int:
    """Run the engine and report; the exit status is its own."""
    parser = argparse.ArgumentParser(description="Jupyter Book's engine on book/.")
    parser.add_argument("--execute", action="store_true", help="run the notebooks too")
    options = parser.parse_args()
    engine = find_engine()
    if engine is None:
        print("Jupyter Book is not installed; run: pip install jupyter-book")
        return 2
    generate()
    version = subprocess.run([*engine, "--version"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory(prefix="fp4ref-") as folder:
        book = copy_sources(Path(folder))
        command = [*engine, "build", "--html", "--strict", "--ci"]
        command += ["--execute"] if options.execute else []
        settings = {
            "JUPYTER_CONFIG_DIR": str(Path(folder) / "jupyter"),
            "FP4REF_STATIC": "1",
        }
        status, complaints = run(command, book, os.environ | settings)
        missing = missing_pages(book)
    if missing:
        print(f"no page was made of {', '.join(missing)}")
    good = status == 0 and not missing and not complaints
    name = f"{Path(engine[0]).name} {version.stdout.strip()}"
    print(f"{name}, {date.today()}: {'passed' if good else 'failed'}")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
