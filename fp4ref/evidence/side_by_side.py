"""side_by_side: what the emulator and the kernel did at the same hardware event.

`compare` says whether two runs agree; this shows each event with the Python statement
and the CUDA statement that issued it, and the bytes that both wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import HardwareEvent, Key, hardware_events
from fp4ref.evidence.statement import Line, line
from fp4ref.execution.runs import Run


@dataclass(frozen=True, slots=True)
class Pair:
    """One hardware event of both runs.

    Attributes
    ----------
    frames
        Ids of the frame index, outermost first, from the emulator's event.
    python, cuda
        The statements that issued it; None where a run has no such event.
    nbytes
        What the emulator wrote.
    different
        Bytes that differ; all of them if a run lacks the event.
    """

    key: Key
    frames: tuple[str, ...]
    python: Line | None
    cuda: Line | None
    nbytes: int
    different: int

    @property
    def ok(self) -> bool:
        """Whether both wrote the same bytes."""
        return self.different == 0

    def __str__(self) -> str:
        if self.python is None or self.cuda is None:
            verdict = "in one run only"
        elif self.different:
            verdict = f"{self.different} of {self.nbytes:,} bytes differ"
        else:
            verdict = f"{self.nbytes:,} bytes, equal"
        frame = f"frame {self.frames[-1]}: " if self.frames else ""
        return "\n".join(
            [
                f"{frame}{self.key}: {verdict}",
                f"    {self.python or '-'}",
                f"    {self.cuda or '-'}",
            ]
        )


def side_by_side(emulator: Run, kernel: Run) -> list[Pair]:
    """Pair the hardware events of two runs of one problem, in the emulator's order.

    Events that only the kernel has come last.

    Raises
    ------
    InputError
        A run has no trace, or the runs are not an emulator's and a kernel's.
    """
    backends = (emulator.meta.get("backend"), kernel.meta.get("backend"))
    if backends != ("emulator", "ptx"):
        raise InputError(
            f"side by side: the backends are {backends[0]} and {backends[1]}; pass a "
            "run of 'emulator', then one of 'ptx'"
        )
    if emulator.trace is None or kernel.trace is None:
        raise InputError("a run without a trace has no events; use trace=True")
    mine, theirs = hardware_events(emulator.trace), hardware_events(kernel.trace)
    return list(_pairs(mine, theirs))


def _pairs(
    mine: dict[Key, HardwareEvent], theirs: dict[Key, HardwareEvent]
) -> Iterator[Pair]:
    for key in [*mine, *(key for key in theirs if key not in mine)]:
        a, b = mine.get(key), theirs.get(key)
        frames = a.event.frames if a else ()
        nbytes = (a or theirs[key]).data.size
        if a is None or b is None or a.data.shape != b.data.shape:
            different = nbytes
        else:
            different = int(np.count_nonzero(a.data != b.data))
        yield Pair(
            key,
            frames,
            line(a.event.source) if a else None,
            line(b.event.kernel_source) if b else None,
            nbytes,
            different,
        )


def of_frame(pairs: Sequence[Pair], frame: str) -> list[Pair]:
    """Those that happened in a frame."""
    return [pair for pair in pairs if frame in pair.frames]
