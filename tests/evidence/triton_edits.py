"""triton_edits: mistakes that are put into the text of a kernel of Triton."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One mistake, put into the text.

    Attributes
    ----------
    old, new
        A pattern, of which every match is replaced.
    finding
        What is said first, or one of several.
    at
        Opcode of a line that is named.
    """

    old: str
    new: str
    finding: str
    at: str


EDITS = {
    "the wait for the MMA left out": Edit(
        r"mbarrier\.try_wait\S+ complete, \[\S+\], \S+;",
        "setp.eq.b32 complete, 0, 0;",
        "mbarrier invalidated while in use|async lifetime not drained",
        "mbarrier.inval|tcgen05",
    ),
    "two arrivals awaited, one comes": Edit(
        r"(mbarrier\.init\S+ \[\S+\]), 1;", r"\1, 2;", "DeadlockError", "try_wait"
    ),
    "no proxy fence": Edit(
        r"fence\.proxy\.async\S*;", "", "missing proxy fence|MissingProxyFence", "mma"
    ),
    "no wait for the scales": Edit(
        r"tcgen05\.wait::st\S*;", "", "async lifetime not drained", "tcgen05"
    ),
    "TMEM never freed": Edit(
        r"(@%\w+ )?tcgen05\.dealloc\S+ [^;]*;", "", "ExitFault", "tcgen05.alloc"
    ),
    "the barrier is never initialised": Edit(
        r"@%\w+ mbarrier\.init[^;]*;", "", "MbarrierFault", "mbarrier|tcgen05.commit"
    ),
    "the commit left out": Edit(
        r"@%\w+ tcgen05\.commit[^;]*;", "", "DeadlockError", "mbarrier.try_wait"
    ),
    "too many columns": Edit(
        r"(tcgen05\.alloc\S+ \[[^]]*\]), \d+;",
        r"\1, 96;",
        "TmemAllocationFault",
        "tcgen05.alloc",
    ),
    "a wrong instruction descriptor": Edit(
        r"mov\.b32 (\s*%r\d+), 13526\d+;",
        r"mov.b32 \1, 135267457;",
        "DescriptorFault",
        "tcgen05.mma",
    ),
    "every lane issues the MMA": Edit(
        r"@%p\d+ (tcgen05\.mma)", r"\1", "IssueFault", "tcgen05.mma"
    ),
}
