"""outside_programs: small programs of other people, and what these say of them.

Each is written here again, in our words, after a test of TIRx-Harness (its race and
synchronisation checkers, its simulator), of Triton's ConSan, after a litmus test or a
public report. The verdict of a variant is what its authors' test demands, what was
reported, or, where `source` names no test, what the text of their emulator or header
says; none of those emulators was run here. The machine has to say the same: "error" is
a fault, or a race of severity "error", with the ordering of the PTX text. Other
verdicts are values that the authors expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from on_lanes import machine as machine_of_lanes
from on_lanes import run
from on_machine import launch, machine
from order_cases import box

from fp4ref.errors import HardwareFault
from fp4ref.hardware.machine import Machine

RACECHECK = "TIRx-Harness, tools/tests/analysis_tools/racecheck/"
SYNCCHECK = "TIRx-Harness, tools/tests/analysis_tools/synccheck/"
NUMSIM = "TIRx-Harness, tools/tests/numsim/runtime/"
CONSAN = "Triton ConSan, python/test/gluon/test_consan.py"
PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}

Body = Callable[[Any], Any]


class Told(Protocol):
    """A program in its variants.

    Attributes
    ----------
    source
        Who says it, and the file or the thread.
    says
        Verdict of each variant.
    otherwise
        Variants of which the machine says something else, and why; no witness.
    """

    source: str
    says: Mapping[Any, str]
    otherwise: Mapping[Any, str]

    def verdict(self, variant: Any, search: bool = True) -> str:
        """Return what the machine says of a variant.

        With the search for races what is asynchronous lands at once; without it late,
        and only what is in flight can tell.
        """


@dataclass(frozen=True)
class Program:
    """A program of whole warps; see `Told`.

    Attributes
    ----------
    make
        Returns the warps of a variant. ``machine.tensor_map`` is a map of 8 rows of 128
        bytes, ``map_at`` its place in global memory, ``word`` a word that holds 0, and
        ``said`` a list for values.
    options
        How it is launched.
    """

    source: str
    make: Callable[..., tuple[Body, ...]]
    says: Mapping[Any, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    otherwise: Mapping[Any, str] = field(default_factory=dict)

    def verdict(self, variant: Any, search: bool = True) -> str:
        """Return what the machine says of a variant."""
        options = dict(self.options)
        on: Any = machine(
            "eager" if search else "late",
            sms=options.pop("sms", 1),
            trace=search,
            races="collect" if search else "off",
        )
        on.said, on.tensor_map = [], box(on)
        on.word = on.gmem.upload("word", np.zeros(16, np.uint8))
        data = np.frombuffer(on.tensor_map.to_bytes(), np.uint8)
        on.map_at = on.gmem.upload("map", data)
        try:
            launch(on, *self.make(variant), **options)
        except HardwareFault:
            return "error"
        return _races(on, search) or " ".join(map(str, on.said)) or "clean"


PREPARE = """
    .shared .align 128 .b8 data[256]; .shared .align 8 .b64 bar;
    mov.u32 %r1, bar; mov.u32 %r2, data; mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x;
    mov.u64 %rd1, {x}; mov.u64 %rd2, {flag}; mov.u64 %rd3, {turn}; mov.u64 %rd4, {next};
    setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r4, 0; setp.eq.u32 %p3, %r4, 1;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    bar.sync 0;
"""


@dataclass(frozen=True)
class LaneProgram:
    """A program of threads; see `Told`.

    Attributes
    ----------
    text
        Returns the body of a variant. ``%rd1`` to ``%rd4`` are words of global memory
        that hold 0, ``%r2`` is shared memory, ``%r1`` an mbarrier of one arrival.
    ctas, cluster, threads
        How it is launched.
    """

    source: str
    text: Callable[[Any], str]
    says: Mapping[Any, str]
    ctas: int = 1
    cluster: int = 1
    threads: int = 64
    otherwise: Mapping[Any, str] = field(default_factory=dict)

    def verdict(self, variant: Any, search: bool = True) -> str:
        """Return what the machine says of a variant."""
        on: Any = machine_of_lanes(
            "eager" if search else "late",
            sms=self.ctas,
            trace=search,
            races="collect" if search else "off",
        )
        words = {
            name: on.gmem.upload(name, np.zeros(16, np.uint8))
            for name in ("x", "flag", "turn", "next")
        }
        text = f"{PREPARE.format(**words)}{self.text(variant)}\nEND:"
        grid, cluster = (self.ctas, 1, 1), (self.cluster, 1, 1)
        try:
            run(text, on=on, threads=self.threads, grid=grid, cluster=cluster)
        except HardwareFault:
            return "error"
        return _races(on, search) or "clean"


def _races(on: Machine, search: bool) -> str:
    if not search:
        return ""
    found = on.order.findings.races
    return "error" if any(race.severity == "error" for race in found) else ""


def differences(
    program: Told, variants: Iterable[Any], search: bool = True
) -> list[str]:
    """Say of which variants the authors and the machine say different things."""
    found = []
    for variant in variants:
        ours, says = program.verdict(variant, search), program.says[variant]
        if ours != says:
            found.append(f"{variant}: they say {says}, the machine {ours}")
    return found


def agreed(program: Told, search: bool = True) -> list[Any]:
    """Return the variants of which both say the same: those can be a witness."""
    return [v for v in program.says if program.verdict(v, search) == program.says[v]]
