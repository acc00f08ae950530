"""soak_pieces: every long test is in one piece, and a failure is not lost."""

from __future__ import annotations

import subprocess

import pytest
import soak_pieces

IDS = [f"tests/a.py::test_a[{i}]" for i in range(5)] + ["tests/b.py::test_b"]


def ended(status: int, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, "\n".join(lines), "")


def test_pieces_have_each_test_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_pieces, "pytest", lambda *_: ended(0, *IDS, "", "6 tests"))
    pieces = soak_pieces.collected([], "", 2)
    assert [len(piece.ids) for piece in pieces] == [2, 2, 1, 1]
    assert [each for piece in pieces for each in piece.ids] == IDS
    assert str(pieces[0]) == "tests/a.py::test_a[0] and 1 more"


def test_a_failed_piece_is_told_and_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        if "--collect-only" in arguments:
            return ended(0, *IDS)
        return ended(int(IDS[3] in arguments), "what it said")

    monkeypatch.setattr(soak_pieces, "pytest", run)
    monkeypatch.setattr("sys.argv", ["soak_pieces.py", "--size", "1"])
    assert soak_pieces.main() == 1
    said = capsys.readouterr().out
    assert f"{IDS[3]}  FAILED\nwhat it said" in said
    assert "6 tests in 6 pieces, 1 pieces failed" in said
