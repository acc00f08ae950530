"""recordings: compare what an executor does with what a card did."""

from __future__ import annotations

import numpy as np

from fp4ref.errors import HardwareFault
from probes.probe import Case, Outputs, Probe, probes, run_on_ptx
from probes.transcript import Transcript, load

BACKENDS = ("emulator", "ptx")
TRAPS = ("TmaFault", "MisalignedAddress", "MbarrierFault")


def execute(backend: str, probe: Probe, case: Case, transcript: Transcript) -> Outputs:
    if backend == "emulator":
        return probe.emulate(case)
    return run_on_ptx(transcript.ptx, case)


def first_difference(got: np.ndarray, recorded: np.ndarray) -> str:
    """'' if equal, else the first byte that differs, with both values."""
    if got.shape != recorded.shape:
        return f"{got.size} bytes, recorded {recorded.size}"
    different = np.flatnonzero(got != recorded)
    if different.size == 0:
        return ""
    at = int(different[0])
    values = f"{got[at]:#04x}, recorded {recorded[at]:#04x}"
    return f"{different.size} bytes, first {at}: {values}"


def differences(
    name: str, backend: str, only: str = "", outside: bool = False
) -> list[str]:
    """One line for every case in which `backend` is not what the card did.

    With `outside` the card alone is asked: what it does all the same, though PTX
    forbids it, is left out, and any fault stands for an error, but for one that says of
    itself that an address is misaligned.
    """
    probe, transcript = probes()[name], load(name)
    errors = transcript.meta["errors"]
    found = []
    for case in probe.cases:
        if only not in case.name or (backend == "ptx" and case.on_ptx):
            continue
        if outside and case.refusal and case.name not in errors:
            continue
        try:
            got = execute(backend, probe, case, transcript)
        except HardwareFault as fault:
            alike = outside and _alike(fault, errors.get(case.name, ""))
            if not alike and type(fault).__name__ != case.refusal:
                found.append(f"{case.name}: {type(fault).__name__}: {fault.what}")
            continue
        if case.refusal:
            found.append(f"{case.name}: not refused with {case.refusal}")
        elif case.name in errors and not case.unlike:
            found.append(f"{case.name}: ran, but the card: {errors[case.name]}")
        elif not case.unlike:
            for output in case.outputs:
                line = first_difference(
                    got[output], transcript.output(case.name, output)
                )
                if line:
                    found.append(f"{case.name}, {output}: {line}")
    return found


def _alike(fault: HardwareFault, error: str) -> bool:
    """Whether a fault may be what a card's error stands for."""
    misaligned = "MISALIGNED" in error
    return bool(error) and misaligned is (type(fault).__name__ == "MisalignedAddress")
