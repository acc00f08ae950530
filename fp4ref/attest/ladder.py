"""ladder: every rung in a process of its own, with a limit in seconds.

A rung that hangs is ended, one that faults is named, and the next one starts. The file
is written after each rung, so that what ends the ladder loses one rung.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.attest.catalogue import question
from fp4ref.attest.question import Words
from fp4ref.attest.verdict import compared
from fp4ref.device.compile import HOPPER, INSTALL, has_tcgen05, nvrtc_version
from fp4ref.device.driver import find_gpu
from fp4ref.errors import InputError
from fp4ref.evidence.attested import Facts, facts, facts_of
from fp4ref.evidence.transcript import RungAnswer, Transcript

Say = Callable[[RungAnswer], None]
INSTEAD = "fp4ref attest --backend ptx climbs the same ladder without a GPU"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker left."""

    state: str
    detail: str
    nvrtc: str
    seconds: float
    words: dict[str, Words]


def rungs(only: Iterable[str] = (), seeded: Iterable[str] = ()) -> list[Facts]:
    """Return the rungs to climb: those named, or all but the seeded ones; and these.

    Raises
    ------
    InputError
        There is no such rung.
    """
    wanted = {facts_of(name).name for name in only}
    if not wanted:
        wanted = {each.name for each in facts().values() if not each.seeded}
    wanted |= {facts_of(f"seeded-{name}").name for name in seeded}
    return [each for each in facts().values() if each.name in wanted]


# -- one rung ----------------------------------------------------------------------


def attempt(name: str, backend: str, limit_s: float) -> Outcome:
    """Run one rung in a process of its own, and end it after `limit_s`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.npz"
        command = [sys.executable, "-m", "fp4ref.attest.worker", name, backend]
        worker = subprocess.Popen(
            [*command, str(out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        start = time.perf_counter()
        try:
            _, said = worker.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(worker)
            detail = f"ended after {limit_s:g} s"
            return Outcome("hung", detail, "", time.perf_counter() - start, {})
        except BaseException:
            _end(worker)
            raise
        seconds = time.perf_counter() - start
        if not out.exists():
            lines = said.decode(errors="replace").strip().splitlines()
            why = lines[-1] if lines else "nothing said"
            detail = f"its process ended with {worker.returncode}: {why}"
            return Outcome("faulted", detail[:500], "", seconds, {})
        return _outcome(out)


def _outcome(out: Path) -> Outcome:
    with np.load(out, allow_pickle=False) as loaded:
        arrays = dict(loaded)
    meta = json.loads(str(arrays.pop("_meta")))
    return Outcome(
        meta["state"], meta["detail"], meta["nvrtc"], meta["seconds"], arrays
    )


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Kill a worker and what it started; one that the driver holds is left behind."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(worker.pid, signal.SIGKILL)
        else:
            worker.kill()
        worker.wait(timeout=10)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    if worker.stderr:
        worker.stderr.close()


# -- the ladder --------------------------------------------------------------------


class Ladder:
    """One climb on one backend.

    Parameters
    ----------
    limit_s
        Seconds for each rung; None takes each rung's own.

    Raises
    ------
    InputError
        There is no such backend, GPU or compiler; the message says what runs instead.
    """

    def __init__(self, backend: str, limit_s: float | None = None) -> None:
        if backend not in ("ptx", "device"):
            raise InputError(f"--backend {backend!r:.40}: say ptx or device")
        self.backend, self.limit_s = backend, limit_s
        if nvrtc_version() is None:
            raise InputError(
                f"the rungs are compiled, and NVRTC is not installed; run: {INSTALL}"
            )
        self.facts = self._facts()

    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "backend": self.backend,
            "card": "",
            "compute_capability": "",
            "driver": "",
            "nvrtc": nvrtc_version(),
            "clocks_mhz": {},
            "fp4ref": _version(),
            "date": datetime.date.today().isoformat(),
        }
        if self.backend == "ptx":
            return found
        gpu = find_gpu()
        if not gpu:
            raise InputError(f"--backend device: {gpu.missing}. {INSTEAD}")
        major, minor = gpu.capability
        if not has_tcgen05(gpu.capability) and gpu.capability != HOPPER:
            raise InputError(
                f"--backend device: {gpu.card} has compute capability {major}.{minor}; "
                f"the rungs need 10.x (tcgen05), or 9.0 for a part of them. {INSTEAD}"
            )
        checked = attempt_check(self.limit_s or 60)
        return found | {
            "card": gpu.card,
            "compute_capability": f"{major}.{minor}",
            "driver": gpu.driver,
            "clocks_mhz": checked,
        }

    def how(self, rung: Facts) -> str:
        """Return ``emulated``, ``measured``, ``soft`` or ``cannot``."""
        if self.backend == "ptx":
            return "emulated"
        hopper = self.facts["compute_capability"] == "9.0"
        return rung.on_hopper if hopper else "measured"

    def answer(self, rung: Facts) -> RungAnswer:
        """Try one rung."""
        how = self.how(rung)
        if how == "cannot":
            return RungAnswer(rung.name, "cannot", detail=rung.why)
        asked = question(rung.name)
        backend = "device-soft" if how == "soft" else self.backend
        outcome = attempt(rung.name, backend, self.limit_s or rung.limit_s)
        parts = compared(asked, outcome.words) if outcome.state == "ran" else ()
        state = outcome.state
        if state == "ran":
            states = {part.state for part in parts}
            state = next(
                each for each in ("differs", "agrees", "recorded") if each in states
            )
        return RungAnswer(
            rung.name,
            state,
            how,
            outcome.seconds,
            outcome.detail,
            asked.digest(),
            parts,
        )

    def climb(self, chosen: list[Facts], out: Path | None, say: Say) -> Transcript:
        """Try the rungs one after the other, writing the file after each.

        After Ctrl-C the file is whole, and has the rungs that were not tried.
        """
        waiting = [RungAnswer(each.name, "not run") for each in chosen]
        found = Transcript(self.facts, tuple(waiting))
        try:
            for number, each in enumerate(chosen):
                waiting[number] = self.answer(each)
                say(waiting[number])
                last = number == len(chosen) - 1
                found = replace(found, rungs=tuple(waiting), complete=last)
                if out:
                    found.write(out)
        except KeyboardInterrupt:
            if out:
                found.write(out)
            raise
        return found


def attempt_check(limit_s: float) -> dict[str, int]:
    """Ask the card for a context and some memory, in a process of its own.

    Returns its clocks in MHz.

    Raises
    ------
    InputError
        It is busy, too full, or does not answer.
    """
    command = [sys.executable, "-m", "fp4ref.attest.card_check"]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=limit_s, check=False, text=True
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"--backend device: the GPU gave no context in {limit_s:g} s. {INSTEAD}"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["the driver said nothing"]
        raise InputError(f"--backend device: {lines[-1]}. {INSTEAD}")
    clocks: dict[str, int] = json.loads(done.stdout)
    return clocks


def _version() -> str:
    try:
        return version("fp4ref")
    except PackageNotFoundError:
        return "a checkout"
