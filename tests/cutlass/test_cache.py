"""test_cache: where built things are kept, and that they are built once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fp4ref.cache import cache_folder, cached

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


@pytest.fixture
def root(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path))
    return tmp_path / "things"


def test_the_cache_is_the_users_unless_said_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("FP4REF_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "fp4ref"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/fp4ref")
    monkeypatch.setenv("FP4REF_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


@on_linux
def test_a_folder_is_filled_once(root):
    filled = []

    def make(folder: Path) -> None:
        (folder / "file").write_text("content")
        filled.append(folder)

    first = cached("things", "thing", [b"a", b"b"], make)
    assert cached("things", "thing", [b"a", b"b"], make) == first
    assert len(filled) == 1
    assert (first / "file").read_text() == "content"
    assert first.parent == root
    assert first.name.startswith("thing-")


@on_linux
def test_every_part_counts(root):
    keys = [[b"a", b"b"], [b"ab"], [b"", b"ab"], [b"b", b"a"]]
    made = {cached("things", "thing", parts, lambda folder: None) for parts in keys}
    assert len(made) == 4


@on_linux
def test_a_folder_half_filled_never_appears(root):
    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        assert not list(root.glob("thing-????????????????"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("things", "thing", [b"a"], fail)
    assert [p.suffix for p in root.iterdir()] == [".lock"]
    assert cached("things", "thing", [b"a"], lambda folder: None).is_dir()
