"""targets: the files that a command writes, and what it never overwrites."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fp4ref.errors import InputError
from fp4ref.files.whole_file import check_target
from fp4ref.trace import FILE_SUFFIX, Trace

MADE_BY_WALK = "fp4ref walk"
"""The mark in a trace that a walk may replace."""


def trace_path(path: Path) -> Path:
    """Return the path of a trace file: the suffix may be left out."""
    return path if path.name.endswith(FILE_SUFFIX) else Path(f"{path}{FILE_SUFFIX}")


def check_outputs(
    outputs: Sequence[Path | None], file: Path | None, force: bool
) -> None:
    """Refuse two outputs in one file, the input as output, and what is not ours."""
    taken = {os.path.realpath(file): "the input"} if file else {}
    for path in outputs:
        if path is None:
            continue
        check_target(path)
        if other := taken.get(os.path.realpath(path)):
            raise InputError(f"{path} is {other} too; name another file")
        taken[os.path.realpath(path)] = "another output"
        _check_ours(path, force)


def _check_ours(path: Path, force: bool) -> None:
    """Refuse to overwrite anything but an earlier walk's trace."""
    if force or not path.exists():
        return
    try:
        if Trace.load(path).meta.get("made_by") == MADE_BY_WALK:
            return
    except InputError:
        pass
    raise InputError(f"{path} exists, and may be yours; use --force to overwrite it")
