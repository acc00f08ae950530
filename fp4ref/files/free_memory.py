"""free_memory: refuse in words what this machine has no memory for.

An allocation that is too large often succeeds, and the process is killed when it uses
it. So what needs much memory asks first.
"""

from __future__ import annotations

import os
from pathlib import Path

from fp4ref.errors import InputError

_CGROUP = Path("/sys/fs/cgroup")


def free_nbytes() -> int | None:
    """Return what this process may still allocate; None where nobody says."""
    found = [_free_of_machine(), _free_of_container(), _free_of_limit()]
    known = [nbytes for nbytes in found if nbytes is not None]
    return max(0, min(known)) if known else None


def require_memory(nbytes: int, what: str, remedy: str) -> None:
    """Raise `InputError` unless `nbytes` bytes are free.

    Parameters
    ----------
    what
        The subject of the sentence, for example ``"this walk"``.
    remedy
        What to do about it.
    """
    free = free_nbytes()
    if free is not None and nbytes > free:
        raise InputError(
            f"{what} needs about {in_words(nbytes)} of memory, and "
            f"{in_words(free)} are free. {remedy}"
        )


def in_words(nbytes: int) -> str:
    """Return a size in MB or GB, for a sentence."""
    if nbytes < 10**9:
        return f"{-(-nbytes // 10**6)} MB"
    return f"{nbytes / 1e9:,.1f} GB" if nbytes < 10**15 else f"{nbytes:.2g} bytes"


def _free_of_machine() -> int | None:
    """Read Linux's own estimate; elsewhere take all that is installed."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _free_of_container() -> int | None:
    try:
        most = (_CGROUP / "memory.max").read_text().strip()
        used = (_CGROUP / "memory.current").read_text().strip()
    except OSError:
        return None
    return int(most) - int(used) if most.isdigit() and used.isdigit() else None


def _free_of_limit() -> int | None:
    """Address space that ``ulimit -v`` leaves."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return None
    return most - pages * resource.getpagesize()
