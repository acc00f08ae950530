"""A long walk shows how far it is, and Ctrl-C ends it with a sentence and no file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs a terminal: POSIX only")


def test_ctrl_c_in_a_long_walk(tmp_path: Path) -> None:
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "fp4ref", "walk", "--no-kernel"]
    walk = subprocess.Popen(
        [*command, "--size", "768x768x512"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=side,
        # A test run in the background ignores the signal, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(side)
    shown, until = b"", time.monotonic() + 120
    while b"/36" not in shown and time.monotonic() < until:
        shown += os.read(terminal, 4096)
    walk.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # of a terminal whose other side is closed
        while more := os.read(terminal, 4096):
            shown += more
    output, _ = walk.communicate(timeout=60)
    os.close(terminal)
    assert b"tiles" in shown
    assert walk.returncode == 130
    assert shown.decode().count("stopped by Ctrl-C; no file is left half written") == 1
    assert output == b""
    assert list(tmp_path.iterdir()) == []
