"""test_lab: JupyterLab in a real browser: run notebook 00, step, rewind, read back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import local_page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAME = "00_start_here.ipynb"
PICTURE = "data_flow.svg"
TOKEN = "fp4ref-test"
READY = """() => {
  const c = window.jupyterapp?.shell.currentWidget?.sessionContext;
  return c?.isReady && c.session?.kernel?.status === 'idle' }"""


def of_make_lab() -> list[str]:
    """JupyterLab and its options, as the Makefile starts it."""
    text = (NOTEBOOKS.parent / "Makefile").read_text("utf-8")
    (words,) = re.findall("^LAB := (.*)$", text, re.MULTILINE)
    return words.split()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab server on a copy of the notebooks; its address."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is in the extra 'lab'")
    root = tmp_path_factory.mktemp("lab")
    for name in (NAME, PICTURE):
        shutil.copy(NOTEBOOKS / name, root / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", *of_make_lab(), "--allow-root", "--no-browser"),
        *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
        f"--ServerApp.root_dir={root}",
        "--expose-app-in-browser",
    ]
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_DATA_DIR": str(root / "data"),
    }
    environment.pop("FP4REF_STATIC", None)
    log = (root / "log").open("w")
    server = subprocess.Popen(
        command,
        cwd=NOTEBOOKS.parent,
        env=environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=2)
                break
            except OSError:
                assert server.poll() is None, (root / "log").read_text()[-2000:]
                time.sleep(0.5)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:  # its kernels may be slow to end
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(20)
        finally:
            log.close()


def index_of(page: Any, cell: str) -> int:
    """Position of the cell with an id."""
    index: int = page.evaluate(
        """(id) => {
      const cells = window.jupyterapp.shell.currentWidget.content.model.cells;
      for (let i = 0; i < cells.length; i++) if (cells.get(i).id === id) return i;
      return -1 }""",
        cell,
    )
    assert index >= 0, f"{NAME} has no cell {cell!r}"
    return index


@pytest.mark.rotating(1)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_step_rewind_and_read_back(chromium: Any, lab: str, theme: str) -> None:
    with local_page(
        chromium, color_scheme=theme, viewport={"width": 1280, "height": 900}
    ) as page:
        page.goto(f"{lab}/lab/tree/{NAME}?token={TOKEN}&reset")
        page.wait_for_function(READY, timeout=90_000)
        if theme == "dark":
            page.evaluate(
                """() => window.jupyterapp.commands.execute(
                'apputils:change-theme', {theme: 'JupyterLab Dark'})"""
            )
        page.evaluate(
            "void window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )
        player = page.locator(".jp-OutputArea .fp4ref-player").first
        player.wait_for(timeout=120_000)
        assert page.get_by_text("Jupyter news").all_inner_texts() == []
        picture = page.locator(".jp-RenderedMarkdown img")
        assert picture.evaluate("(i) => i.complete && i.naturalWidth") == 360
        if folder := os.environ.get("FP4REF_SCREENSHOTS"):
            picture.scroll_into_view_if_needed()
            page.wait_for_timeout(1500)  # Lab draws what it scrolls to a little later
            page.screenshot(path=f"{folder}/lab-{theme}-data-flow.png")
        player.scroll_into_view_if_needed()
        start = int(player.get_attribute("data-step"))
        for _ in range(5):
            player.locator("[data-act=forward]").click()
        page.wait_for_function(
            "(want) => document.querySelector('.fp4ref-player').dataset.step == want",
            arg=str(start + 5),
        )
        python_reads(page, start + 5)
        player.locator("[data-act=rewind]").click()
        page.wait_for_function(
            "document.querySelector('.fp4ref-player').dataset.step === '0'"
        )
        python_reads(page, 0)
        player.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        python_reads(page, 2)
        shown = "document.querySelector('.fp4ref-player')"
        back = page.evaluate(f"getComputedStyle({shown}).backgroundColor")
        assert (back == "rgb(255, 255, 255)") == (theme == "light"), back
        if folder := os.environ.get("FP4REF_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/lab-{theme}.png")


def python_reads(page: Any, want: int) -> None:
    """Wait until Python has the step: a widget sends one change at a time."""
    for _ in range(20):
        if (step := read_step(page)) == want:
            return
        page.wait_for_timeout(250)
    raise AssertionError(f"Python reads step {step}, the player shows {want}")


def read_step(page: Any) -> int:
    """Run the cell that prints the step as Python sees it."""
    index = index_of(page, "read-step")
    page.evaluate(
        """async (i) => {
      const notebook = window.jupyterapp.shell.currentWidget.content;
      notebook.activeCellIndex = i;
      notebook.deselectAll();
      await window.jupyterapp.commands.execute('notebook:run-cell') }""",
        index,
    )
    text = page.evaluate(
        """(i) => {
      const cell = window.jupyterapp.shell.currentWidget.content.widgets[i];
      return cell.model.outputs.get(0).data['application/vnd.jupyter.stdout'] }""",
        index,
    )
    words = "Python reads step: "
    assert str(text).startswith(words), text
    return int(str(text).removeprefix(words))


def test_a_saved_notebook_shows_the_text_when_opened_again(
    chromium: Any, lab: str
) -> None:
    """No kernel, so no widget; and beside a living player the text is hidden."""
    from playwright.sync_api import expect

    with local_page(chromium, viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{lab}/lab/tree/{NAME}?token={TOKEN}&reset")
        page.wait_for_function(READY, timeout=90_000)
        page.evaluate(
            "void window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )
        player = page.locator(".jp-OutputArea .fp4ref-player").first
        player.wait_for(timeout=120_000)
        page.wait_for_function(READY, timeout=90_000)
        assert page.locator(".fp4ref-fallback").count() > 0
        # The players are drawn one after another: the text of the last one goes last.
        expect(page.locator(".fp4ref-fallback:visible")).to_have_count(
            0, timeout=60_000
        )
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(
            """async () => {
          await window.jupyterapp.shell.currentWidget.sessionContext.shutdown() }"""
        )
        page.goto(f"{lab}/lab/tree/{NAME}?token={TOKEN}&reset")
        text = page.locator(".fp4ref-fallback").first
        text.wait_for(state="visible", timeout=90_000)
        text.scroll_into_view_if_needed()
        expect(text).to_contain_text(re.compile(r"Step \d+ of"), timeout=30_000)
        if folder := os.environ.get("FP4REF_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/lab-again.png")
