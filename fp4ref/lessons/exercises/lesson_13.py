"""lesson_13: outside evidence on this machine, and the exercises about it.

Recordings of Hopper cards are in the package; what was asked of the cards, and the
table of other people's kernels, are in the repository.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fp4ref
from fp4ref.cache import cache_folder
from fp4ref.cutlass.example_table import find_example
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.cutlass.toolchain import find_toolchain
from fp4ref.errors import HardwareFault, InputError
from fp4ref.evidence import fidelity
from fp4ref.evidence.fidelity import Evidence
from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.hardware.tensor_map import DataType
from fp4ref.layout import SwizzleMode
from fp4ref.lessons.exercise import exercise

EQUAL = "every byte as recorded"
STOPPED = "stopped where the card stopped"
REFUSED = "refused: not modelled"
FORBIDDEN = "refused: PTX forbids it, the card answers"
LISTED = "differs, and is listed"
WRONG = "DIFFERS"


def checkout() -> Path:
    """Return the repository's root.

    Raises
    ------
    InputError
        Neither the package nor the working directory is in a checkout.
    """
    for folder in (Path(fp4ref.__file__).parents[1], Path.cwd(), Path.cwd().parent):
        if (folder / "conformance" / "results.json").is_file():
            return folder
    raise InputError(
        "the recorded table is in the repository and not in the package; open this "
        "notebook from a checkout of fp4ref"
    )


def recorded_results() -> list[dict[str, Any]]:
    """Return the rows that ``make conformance`` wrote last."""
    text = (checkout() / "conformance" / "results.json").read_text()
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def run_if_built(name: str, m: int, n: int, k: int, **options: Any) -> CutlassRun:
    """Execute one of CUTLASS's examples, but do not build it.

    Raises
    ------
    InputError
        It has not been built on this machine, or cannot be.
    """
    find_toolchain()
    stem = Path(find_example(name).source).stem
    built = cache_folder().glob(f"cutlass/{stem}-{'[0-9a-f]' * 16}")
    if not any(built):
        _refuse_to_build(name)
    return execute_example(name, m, n, k, progress=_refuse_to_build, **options)


def _refuse_to_build(what: str) -> None:
    raise InputError(
        f"not built here ({what}); `fp4ref cutlass 72b` builds it, in a minute or two"
    )


class Outcome(NamedTuple):
    """What became of one recorded case."""

    probe: str
    case: str
    verdict: str
    nbytes: int


def probes_module(module: str) -> Any:
    """Import from ``probes``, which is in the repository."""
    root = str(checkout())
    if root not in sys.path:
        sys.path.append(root)
    return import_module(f"probes.{module}")


def recording(probe: str) -> Any:
    """Return the transcript of a probe."""
    return probes_module("transcript").load(probe)


def replay(*names: str, backend: str = "emulator") -> Iterator[Outcome]:
    """Do what the cards did, and compare every byte.

    Parameters
    ----------
    names
        Probes; all of them if none is named.
    backend
        ``"emulator"``, or ``"ptx"``: the probe's own compiled code on the emulated SM.
    """
    probe_module = probes_module("probe")
    for name, probe in probe_module.probes().items():
        if names and name not in names:
            continue
        recorded = recording(name)
        for case in probe.cases:
            if backend == "ptx" and case.on_ptx:
                continue
            try:
                if backend == "ptx":
                    found = probe_module.run_on_ptx(recorded.ptx, case)
                else:
                    found = probe.emulate(case)
            except HardwareFault as fault:
                kind = type(fault).__name__
                verdict = _refusal(kind, case, recorded)
                yield Outcome(name, case.name, verdict, 0)
            else:
                yield Outcome(name, case.name, *_compared(found, case, recorded))


def _refusal(kind: str, case: Any, recorded: Any) -> str:
    if kind != case.refusal:
        return WRONG
    if case.name in recorded.meta["errors"]:
        return STOPPED
    return REFUSED if kind == "NotModelled" else FORBIDDEN


def _compared(found: Any, case: Any, recorded: Any) -> tuple[str, int]:
    if case.refusal or case.name in recorded.meta["errors"]:
        return (LISTED if case.unlike else WRONG), 0
    wanted = {name: recorded.output(case.name, name) for name in case.outputs}
    nbytes = sum(data.size for data in wanted.values())
    if all(np.array_equal(found[name], data) for name, data in wanted.items()):
        return EQUAL, nbytes
    return (LISTED if case.unlike else WRONG), nbytes


def replay_maps() -> Counter[str]:
    """Encode the recorded tensor maps again, and count what the driver agrees with."""
    tensor_map = probes_module("tensor_map")
    recorded = recording("tensor_map").arrays
    counts: Counter[str] = Counter()
    for row, each in enumerate(tensor_map.table()):
        accepted = recorded["status"][row] == 0
        words = tensor_map.words(each)
        if DataType.U4_ALIGN8B <= each.data_type <= DataType.U6_ALIGN16B:
            counts["4- and 6-bit types, which Hopper lacks"] += not accepted
        elif each.swizzle == SwizzleMode.B128_ATOM_32B:
            counts["swizzle with 32-byte atoms, which Hopper lacks"] += not accepted
        elif words is None and not accepted:
            counts["refused by both"] += 1
        elif words == recorded["words"][row].tobytes() and accepted:
            counts["accepted by both, 128 bytes equal"] += 1
        else:
            counts[WRONG] += 1
    return counts


def _rests_on(rule: str) -> Evidence:
    (found,) = (each for each in fidelity.RULES if each.rule == rule)
    return found.evidence


_RULES = {
    "credit": "complete_tx only, never an arrival",
    "truncation": "the result is truncated, not rounded to nearest",
    "scales": "the scales of row r are in column r / 32",
    "order": "ordering 'shipped': in order",
}


def _evidence() -> dict[str, Evidence]:
    return {name: _rests_on(rule) for name, rule in _RULES.items()}


@exercise(
    "13.1",
    title="What each rule rests on",
    frames=("5.4.4", "6.6.4", "6.6.9"),
    hints=(
        "Hopper has TMA and mbarriers. It has neither Tensor Memory nor FP4.",
        "'Needed by an outside kernel' means that the kernel fails if this rule alone "
        "is made wrong.",
        "`fidelity.select(operation='tcgen05.mma')` lists rules with their evidence.",
    ),
    why="The table names the strongest evidence that a rule has.",
    wrong=(
        _evidence() | {"truncation": Evidence.MEASURED},
        _evidence() | {"truncation": Evidence.DOCUMENTED},
        _evidence() | {"credit": Evidence.DOCUMENTED},
        _evidence() | {"scales": Evidence.MEASURED},
        _evidence() | {"order": Evidence.DOCUMENTED},
    ),
)
def evidence() -> dict[str, Evidence]:
    """Evidence of four rules."""
    return _evidence()


SCRIPT = "expect and arrive at once"
TEST_WAIT = 32


@exercise(
    "13.2",
    title="Four answers of an H200",
    frames=("5.3", "6.4"),
    hints=(
        "Count both: arrivals from 2 down, bytes up by expect and down by complete.",
        "0x9000 - 0x8000 + 0x10 - 0x1010 is 0, and both arrivals are in: the first "
        "phase, of parity 0, is complete.",
        "Expecting 0 bytes is an arrival and nothing else. Two of them complete the "
        "second phase.",
    ),
    wrong=(
        # The parity taken for that of the phase in progress.
        [False, True, True, False],
        # A phase that expects no bytes never completes.
        [True, False, True, False],
        # Bytes and arrivals counted, but 0x1010 taken to be too much.
        [False, True, False, True],
        # The token as an address.
        [0x400, 0x400, 0x400, 0x400],
    ),
)
def answers_of_the_card() -> list[bool]:
    """Read them from the recording."""
    (case,) = (
        each
        for each in probes_module("probe").probes()["mbarrier"].cases
        if each.name == SCRIPT
    )
    operations = case.call.buffers["script"].view(np.uint32)[::2]
    answers = recording("mbarrier").output(SCRIPT, "results").view(np.uint32)
    return [bool(each) for each in answers[operations == TEST_WAIT]]


@cache
def _smallest_k() -> int:
    rng = np.random.default_rng(13)
    k = 0
    while True:
        k += TILE_K
        a, b = (
            fp4ref.quantize(rng.standard_normal((TILE_M, k), np.float32))
            for _ in range(2)
        )
        try:
            fp4ref.run(a, b, config=GemmConfig.nvfp4(scale_buffers=1), schedule="late")
        except HardwareFault:
            return k


@exercise(
    "13.3",
    title="When one set of scale columns is not enough",
    frames=("6.6.4",),
    hints=(
        "The fault needs a copy that comes after an MMA. Which copy is the first?",
        "Within a k-tile all copies are issued before the MMAs.",
        "So it is the first copy of the second k-tile.",
    ),
    why=(
        "There is one set of columns: the first copy of the second k-tile writes "
        "where MMAs of the first may still read."
    ),
    # One k-tile; when the ring wraps; when the document's 20 stages would.
    wrong=(256, 1536, 5376),
)
def smallest_k() -> int:
    """Run longer and longer products until the machine objects."""
    return _smallest_k()
