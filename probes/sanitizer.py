"""sanitizer: what NVIDIA's compute-sanitizer says of small kernels, and the machine.

The tool watches a Hopper card and knows nothing of the machine. ``python -m
probes.sanitizer OUT`` builds ``sanitizer.cu`` with nvcc, runs each kernel under its
tool and writes the verdicts and the PTX. The machine runs that PTX under ``late``, with
the search for races or without. Needs a card, nvcc and compute-sanitizer.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("sanitizer.cu")
FILE = "sanitizer.json"
CASES = {
    "last_word": ("memcheck", 1),
    "past_the_end": ("memcheck", 1),
    "never_written": ("initcheck", 1),
    "copy_waited_for": ("racecheck", 1),
    "copy_not_waited_for": ("racecheck", 1),
    "own_arrival": ("racecheck", 2),
    "arrival_of_another": ("racecheck", 2),
    "used_before_init": ("racecheck", 2),
    "lanes_in_step": ("racecheck", 1),
    "lanes_alone": ("racecheck", 1),
    "init_twice": ("synccheck", 1),
    "init_after_inval": ("synccheck", 1),
    "never_initialised": ("synccheck", 1),
    "bytes_expected": ("synccheck", 1),
    "none_expected": ("synccheck", 1),
    "store_fenced": ("racecheck", 1),
    "store_unfenced": ("racecheck", 1),
    "source_waited_for": ("racecheck", 1),
    "source_too_early": ("racecheck", 1),
}
"""Kernel: the tool that is asked, and warps."""

KINDS = {
    "Invalid": ("OutOfBounds",),
    "Uninitialized": ("UninitialisedRead",),
    "Race": ("race", "ReadWhileInFlight"),
    "Barrier": ("MbarrierFault",),
}
"""First word of a verdict, and what the machine calls it."""

UNTRACED = tuple(
    name for name in CASES if CASES[name][0] != "racecheck" or "copy" in name
)
"""Kernels whose fault is seen without the search for races, too."""

UNSEEN = {
    "used_before_init": "race: mbarrier used before",
    "init_twice": "MbarrierFault",
    "bytes_expected": "ExitFault",
    "store_unfenced": "MissingProxyFence",
    "source_too_early": "ReadWhileInFlight",
}
"""Wrong kernels of which the tools are silent, and what the machine says."""

_FOUND = re.compile(
    r"= (?:Warning: |Error: )?((?:Invalid|Uninitialized|Race|Barrier) .+)"
)


def sources() -> str:
    """SHA-256 over the CUDA files."""
    files = (SOURCE, SOURCE.with_name("probe.cuh"))
    return sha256(b"".join(each.read_bytes() for each in files)).hexdigest()


def record(out: Path) -> None:
    """Ask the tools about every kernel."""
    flags = ["nvcc", "-std=c++17", "-arch=sm_90a", f"-I{SOURCE.parent}", str(SOURCE)]
    version = ["compute-sanitizer", "--version"]
    said = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    verdicts = {}
    with tempfile.TemporaryDirectory() as folder:
        program, ptx = Path(folder, "program"), Path(folder, "ptx")
        subprocess.run([*flags, "-o", program], check=True)
        subprocess.run([*flags, "-ptx", "-o", ptx], check=True)
        for name, (tool, warps) in CASES.items():
            command = ["compute-sanitizer", "--tool", tool, program, name, str(warps)]
            told = subprocess.run(command, capture_output=True, text=True).stdout
            verdicts[name] = _FOUND.findall(told)[:1]
        text = ptx.read_text()
    found = {
        "tool": said.strip().splitlines()[-1],
        "sources": sources(),
        "verdicts": verdicts,
        "ptx": text,
    }
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


@cache
def recorded() -> dict[str, Any]:
    """Return what the tools said."""
    file = resources.files("fp4ref.data") / "transcripts" / FILE
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def difference(name: str, search: bool = True) -> str:
    """Say where tool and machine differ on a kernel; '' if they find the same."""
    told, ours = recorded()["verdicts"][name], machine_says(name, search)
    kinds = KINDS[told[0].split()[0]] if told else ("",)
    same = ours.partition(":")[0] in kinds
    return (
        "" if same else f"told: {told or 'nothing'}; the machine: {ours or 'nothing'}"
    )


def machine_says(name: str, search: bool = True) -> str:
    """Run a kernel's PTX on the machine; '' if it finds nothing wrong."""
    import numpy as np

    from fp4ref.errors import HardwareFault
    from fp4ref.hardware.machine import Machine
    from fp4ref.hardware.schedule import make_schedule
    from fp4ref.ptx import launch
    from probes.probe import program

    machine = Machine(1, make_schedule("late"), races="collect" if search else "off")
    at = machine.gmem.upload("in", np.ones(126, np.uint8))
    out = machine.gmem.allocate("out", 256)
    block = at.to_bytes(8, "little") + out.to_bytes(8, "little")
    threads = (32 * CASES[name][1], 1, 1)
    entry = program(recorded()["ptx"], name)
    try:
        launch(machine, entry, (1, 1, 1), threads, block, smem_nbytes=1024)
    except HardwareFault as fault:
        return f"{type(fault).__name__}: {fault.what}"
    if not search:
        return ""
    races = [race for race in machine.order.findings.races if race.severity == "error"]
    return f"race: {races[0].failure.value.name}" if races else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the record")
    record(parser.parse_args().out)
