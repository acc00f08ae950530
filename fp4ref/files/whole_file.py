"""whole_file: a file is written whole or not at all.

What was there before stays until the new content is complete.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from fp4ref.errors import InputError


def check_target(path: Path) -> None:
    """Raise `InputError` unless a file can be written at `path`."""
    try:
        with _part(path):
            pass
    except OSError as error:
        raise cannot_write(path, error) from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` once it is complete.

    Raises
    ------
    InputError
        It cannot be written; what was there is untouched.
    """
    try:
        target = _target(path)
        with _part(path) as part:
            with open(part, "r+b") as opened:
                yield opened
            if target.exists():
                shutil.copymode(target, part)
            os.replace(part, target)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8; what UTF-8 cannot hold is escaped.

    Raises
    ------
    InputError
        It cannot be written; what was there is untouched.
    """
    with replacing(path) as opened:
        opened.write(text.encode("utf-8", "backslashreplace"))


def cannot_write(path: Path, error: OSError) -> InputError:
    """Return what to tell the person who named `path`."""
    if not path.parent.is_dir():
        return InputError(f"cannot write {path}: no such folder; make it first")
    why = error.strerror or type(error).__name__
    return InputError(f"cannot write {path}: {why}; name another place")


def _target(path: Path) -> Path:
    """Follow links; refuse what a rename would destroy."""
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a pipe or a device; name a file")
    return target


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """Make an empty file beside `path`; remove it unless it was renamed."""
    part = _target(path).parent / f".fp4ref-{token_hex(8)}.part"
    with open(part, "xb"):
        pass
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
