"""silicon_faults: the gallery's mistakes in the GEMM, on an H200 and on the machine.

Each ran on the card on the soft tensor core, a hundred times with other sleeps each
time, over memory full of NaN. All of it is read from the record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from fp4ref.evidence.faults.catch import gemm_of
from fp4ref.evidence.faults.gallery import GALLERY, Fault
from fp4ref.gemm.plan import Plan, plan
from fp4ref.hardware.shared_memory import BASE as SMEM_BASE
from fp4ref.lessons.silicon import record

RECORD = "silicon_faults_h200"
Often = Literal["always", "sometimes", "never"]
OFTEN: tuple[Often, ...] = ("sometimes", "never", "always")

_SOFT_RULES = ("TmemAllocationFault", "LaneQuarterViolation", "ClcFault")
_SOFT_LINES = re.compile("tcgen05_|tmem_wait")
_SOFT_BARRIERS = 512
"""Bytes from the CTA's shared base at which the soft tensor core's barriers begin."""


class OnSilicon(NamedTuple):
    """A mistake of the gallery on the card.

    Attributes
    ----------
    wrong, launches
        Launches that were not like those without the mistake, of all.
    how
        What was wrong, in words; empty if nothing was.
    machine
        What the machine says each time.
    soft
        Whether the rule is one of a unit that was soft on the card.
    """

    fault: Fault
    wrong: int
    launches: int
    how: str
    machine: str
    soft: bool

    @property
    def often(self) -> Often:
        """How often the card showed it."""
        if self.wrong == 0:
            return "never"
        return "always" if self.wrong == self.launches else "sometimes"

    @property
    def of_data(self) -> bool:
        """Whether it only moves or changes data, and breaks no rule."""
        return self.fault.forms["ptx"].caught.by == "compare"


def on_silicon() -> list[OnSilicon]:
    """Return every mistake that was put on the card, in the gallery's order."""
    found = record(RECORD)["faults"]
    return [_row(GALLERY[name], counts) for name, counts in found.items()]


def _row(fault: Fault, counts: dict[str, Any]) -> OnSilicon:
    form = fault.forms["ptx"]
    launches = {key: counts.get(key, 0) for key in _WORDS}
    total = sum(launches.values())
    caught = form.caught
    machine = {"compare": "another D", "advisory": "an advisory"}.get(
        caught.by, caught.what
    )
    if caught.by == "review":
        machine = f"to be reviewed: {caught.what}"
    return OnSilicon(
        fault,
        total - launches["same"],
        total,
        "; ".join(_how(fault, counts)),
        machine,
        caught.by == "advisory"
        or caught.what in _SOFT_RULES
        or bool(_SOFT_LINES.search(form.change.right)),
    )


_WORDS = {
    "same": "the same bits",
    "other": "other bits",
    "gave up": "a wait without end",
    "hangs": "never ends",
    "error": "an error",
}


def _how(fault: Fault, counts: dict[str, Any]) -> Iterator[str]:
    """Say in words what was wrong, the most frequent first."""
    for key, _ in Counter({k: counts.get(k, 0) for k in _WORDS}).most_common():
        if key == "same" or not counts.get(key):
            continue
        words = _WORDS[key]
        if key == "other" and counts["sets"] > 1:
            words = f"{words}, {counts['sets']} sets"
        if key == "gave up":
            words = f"{words}: {waits_for(fault, counts['wait'])}"
        if key == "error":
            words = f"{words}: {_error(counts['error said'])}"
        yield f"{words} ({counts[key]})"


def _error(said: str) -> str:
    """Return CUDA's word for an error, as words."""
    return said.rpartition("CUDA_ERROR_")[2].lower().replace("_", " ")


def waits_for(fault: Fault, wait: str) -> str:
    """Name the warp and the barrier of ``warp 7, 0x468, parity 0``."""
    warp, address, _ = wait.split(", ")
    return f"{warp} on {barrier(fault, int(address, 16))}"


def barrier(fault: Fault, address: int) -> str:
    """Name a barrier of a mistake's kernel by its shared address."""
    offset = address - SMEM_BASE
    if offset >= _SOFT_BARRIERS:
        return "a barrier of the soft unit"
    return _barriers(plan(gemm_of(fault)["config"]))[offset]


def _barriers(planned: Plan) -> dict[int, str]:
    """Return the barriers of a plan by their offsets."""
    found = {}
    for ring in planned.rings:
        for part, _ in ring.parts():
            row = part.removeprefix(f"{ring.name}_")
            for i in range(ring.stages):
                name = ring.name if row == part else f"{ring.name}.{row}[{i}]"
                found[planned.smem[part] + 8 * i] = name
    return found


# -- the fewest sleeps -------------------------------------------------------------

_PLACES = {
    1: "before an arrival on",
    2: "before expect_tx on",
    3: "before arrive.expect_tx on",
    4: "after arrive.expect_tx on",
    5: "before test_wait on",
    6: "before try_wait on",
    7: "after try_wait on",
}


class Reduced(NamedTuple):
    """A wrong run, reduced to the sleeps that it needs.

    Attributes
    ----------
    sleeps
        How many the seed had.
    kept
        Those that are enough, in words.
    wrong
        Wrong launches of `launches`: with all sleeps, with those kept, with these but
        for one, and without sleeps.
    """

    fault: Fault
    seed: int
    sleeps: int
    kept: tuple[str, ...]
    launches: int
    wrong: dict[str, Any]


def reduced() -> list[Reduced]:
    """Return the wrong runs that were reduced on the card."""
    return [
        Reduced(
            GALLERY[name],
            each["seed"],
            each["sleeps"],
            tuple(sleep(GALLERY[name], site) for site in each["kept"]),
            each["launches"],
            each["wrong"],
        )
        for name, each in record(RECORD)["reduced"].items()
    ]


def sleep(fault: Fault, site: list[int]) -> str:
    """Say where a sleep is: ``warp 5, 919 ns after try_wait on c.full[0]``."""
    _, place, operand, warp, nanoseconds = site
    who = f"warp {warp & 0xFF}, {nanoseconds} ns"
    if place not in _PLACES:
        return f"{who} in the soft unit"
    at = operand >> 1 if place >= 5 else operand
    return f"{who} {_PLACES[place]} {barrier(fault, at & 0xFFFFFF)}"
