"""browser: the real Chromium by Playwright, and pages that may not go outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOCAL = ("file:", "data:", "blob:", "http://127.0.0.1", "ws://127.0.0.1", "about:")


def why_not() -> str:
    """Say why no browser can run here; empty if one can."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "Playwright is not installed; it is in the extra 'dev'"
    if executable() or any(_DOWNLOADED.glob("chromium-*")):
        return ""
    return (
        "Chromium is not installed; apt-get install chromium, or "
        ".venv/bin/playwright install chromium"
    )


_DOWNLOADED = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / (
    "ms-playwright"
)


def executable() -> str | None:
    """Path of the system's Chromium; None leaves the choice to Playwright."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for n in names if (found := shutil.which(n))), None)


@contextmanager
def launch() -> Iterator[Any]:
    """Run a headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def local_page(browser: Any, **options: Any) -> Iterator[Any]:
    """Open a page; a request that leaves the machine or a script error fails."""
    context = browser.new_context(**options)
    page = context.new_page()
    wrong: list[str] = []
    page.on(
        "request",
        lambda r: None if r.url.startswith(LOCAL) else wrong.append(f"asked {r.url}"),
    )
    page.on("pageerror", lambda e: wrong.append(f"script error {e}"))
    yield page
    context.close()
    assert not wrong, wrong
