"""lesson_21: exercises of the records of a card; the answers come from the machine."""

from __future__ import annotations

from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode
from fp4ref.lessons.exercise import exercise
from fp4ref.lessons.silicon import PARTS

_ASKED = ("TMA", "mbarriers", "clusters", "tcgen05", "TMEM", "launch control")


def _real() -> dict[str, bool]:
    return {each.name: each.real for each in PARTS if each.name in _ASKED}


@exercise(
    "21.1",
    title="What was the card's own",
    frames=("6.4", "6.6.9"),
    hints=(
        "What Hopper has, the kernel used as it is.",
        "ptxas refuses tcgen05 and clusterlaunchcontrol for sm_90.",
    ),
    # All; none of the asynchronous ones; TMEM taken for shared memory; clusters new.
    wrong=(
        dict.fromkeys(_ASKED, True),
        _real() | {"TMA": False, "mbarriers": False},
        _real() | {"TMEM": True},
        _real() | {"clusters": False},
    ),
)
def real() -> dict[str, bool]:
    """Ask the list of parts."""
    return _real()


@exercise(
    "21.2",
    title="A chunk with a base offset",
    frames=("6.6.9",),
    hints=(
        "The row bits are 7 to 9 of the address: 0x1680 >> 7 & 7.",
        "The base offset is subtracted from them, modulo 8.",
        "What is left is XORed into the number of the chunk.",
    ),
    # Without the offset; added; not swizzled; the row for the chunk.
    wrong=(0, 5, 2, 6),
)
def chunk() -> int:
    """Ask the machine's addressing."""
    desc = SmemDescriptor(0x1680 + 5 * 16, 16, 1024, SwizzleMode.B128, 3)
    return int(desc.offsets(1, 16)[0, 0]) % 128 // 16
