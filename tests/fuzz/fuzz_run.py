"""fuzz_run: start workers, wait no longer than a case may take, and add up."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("fuzz_worker.py")
CASE_SECONDS = 120
"""Most take 0.05 s; a machine at work with other things may stand still for longer."""


@dataclass
class Tally:
    """What a run of the fuzzer saw.

    Attributes
    ----------
    worked
        Cases that got past the checks of their arguments.
    peak
        Most memory that a worker had, in bytes.
    """

    runs: int = 0
    worked: int = 0
    peak: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Count one case."""
        self.runs += 1
        self.worked += found["worked"]
        kind = found["what"][:2] if found["worked"] else [found["what"][0], "refused"]
        self.kinds[" ".join(kind)] += 1
        self.statuses[found["status"]] += 1
        self.problems += [
            f"case {found['index']}, {' '.join(map(repr, found['what']))}: {problem}"
            for problem in found["problems"]
        ]


def fuzz(seed: int, first: int, count: int) -> Tally:
    """Run `count` cases; a case that hangs or kills its worker is one problem."""
    tally, at, end = Tally(), first, first + count
    while at < end:
        with tempfile.TemporaryFile() as errors:
            at = _run_worker(seed, at, end, tally, errors)
    return tally


def _run_worker(seed: int, at: int, end: int, tally: Tally, errors: Any) -> int:
    """Read what one worker tells; return the case with which to go on."""
    command = [sys.executable, str(WORKER), str(seed), str(at), str(end - at)]
    # Threads of BLAS take addresses, of which the worker has 2 GB.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=errors, env=environment
    ) as worker:
        begun = None
        for line in _lines(worker):
            found = json.loads(line)
            if "peak" in found:
                tally.peak = max(tally.peak, found["peak"])
                return end
            begun = found.get("begin", begun)
            if "what" in found:
                tally.add(found)
        worker.kill()
        status = worker.wait()
    errors.seek(0)
    said = errors.read().decode(errors="replace")[-800:]
    if begun is None:
        raise RuntimeError(f"the worker did not start: {said}")
    tally.problems.append(
        f"case {begun} hung for {CASE_SECONDS} s or ended its process (status "
        f"{status}): {said}"
    )
    return int(begun) + 1


def _lines(worker: subprocess.Popen[bytes]) -> Any:
    """Yield lines until the worker ends or says nothing for too long."""
    assert worker.stdout is not None
    pipe, buffered = worker.stdout.fileno(), b""
    # The first line comes after the model is compiled.
    seconds = 5 * CASE_SECONDS
    while select.select([pipe], [], [], seconds)[0]:
        data = os.read(pipe, 1 << 16)
        if not data:
            return
        *whole, buffered = (buffered + data).split(b"\n")
        yield from whole
        seconds = CASE_SECONDS
