"""cache: folders that are filled once, named by a hash of what they are made from."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO


def cache_folder() -> Path:
    """Return the folder of built programs: FP4REF_CACHE, or the user's cache."""
    if own := os.environ.get("FP4REF_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fp4ref"


def cached(
    kind: str, name: str, parts: Sequence[bytes], make: Callable[[Path], None]
) -> Path:
    """Return the folder for `parts`; let `make` fill a new one if there is none.

    It appears whole or not at all, and two processes do not fill it twice.

    Parameters
    ----------
    kind
        What they are: ``"cutlass"`` or ``"nvrtc"``, the folder that holds them.
    name
        Start of the folder's name, for people.
    parts
        Everything that the content depends on.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    root = cache_folder() / kind
    folder = root / f"{name}-{digest.hexdigest()[:16]}"
    if folder.exists():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{folder.name}.lock").open("w") as lock:
        _wait_for(lock)
        if folder.exists():
            return folder
        new = Path(tempfile.mkdtemp(prefix=f"{name}-", suffix=".part", dir=root))
        try:
            make(new)
            if not folder.exists():
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


def _wait_for(lock: IO[str]) -> None:
    """Wait until no other process fills the folder.

    Windows has no flock; there two processes may fill one folder, and the first to be
    whole stays.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
