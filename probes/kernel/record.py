"""record: what a Hopper card does with the kernel on the soft tensor core.

``python -m probes.kernel.record make JOB`` compiles everything and writes one file.
``... run JOB OUT`` on the card launches it, each kernel in a process of its own, those
with random sleeps thousands of times;
``--only NAME`` launches one, for compute-sanitizer. ``... read OUT`` writes the record
of the repository. Only `run` needs a card.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import pickle
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import compile_soft
from fp4ref.cuda_kernel.on_device import SOFT_VARIABLES, kernel_call
from fp4ref.device import Compiled, find_gpu
from fp4ref.device.launch import Call, Module
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.trace import Bytes
from probes.kernel import delays, flips
from probes.kernel.mistakes import LATENESS, MISTAKES, PAIR_MISTAKES, race
from probes.kernel.soft_sources import soft_sources

RECORD = Path(__file__).parents[2] / "tests" / "data" / "soft_core_h200.json"
TIMEOUT_S = 100
DELAYS_TIMEOUT_S = 300
AT_A_TIME = 4
"""Processes that launch with sleeps side by side."""
TOOLS = ("memcheck", "racecheck", "synccheck")
RACE = "planted race"
LATE = 20
"""Launches of a pair that is wrong or late."""
SMALL = "small"
"""What the checkers run: one tile, and the same with the planted race."""
LONG_PAIR = "long pair"
"""One tile of two CTAs that uses its stages again and again."""
SMALL_PAIR = "small pair"
"""What they run too: one tile of two CTAs."""


@dataclass
class Launch:
    """A kernel, its arguments, and for each run what is written to its variables."""

    cubin: bytes
    call: Call
    outputs: tuple[str, ...]
    settings: list[dict[str, bytes]] = field(default_factory=lambda: [{}])


def launch_of(
    compiled: Compiled, problem: GemmProblem, settings: list[dict[str, bytes]]
) -> Launch:
    """Describe the launch of a problem."""
    names = [each.name for each in problem.machine.gmem.allocations]
    outputs = tuple(name for name in ("D", "SFD") if name in names)
    return Launch(compiled.cubin, kernel_call(problem, soft=True), outputs, settings)


def tile_problem() -> GemmProblem:
    """Return the problem that mistakes and flips run."""
    a, b = flips.operands()
    return GemmProblem(Machine(1), a, b, None, None, GemmConfig(), 1.0)


def make(job: Path) -> None:
    """Compile every kernel and write the job."""
    problem, config = tile_problem(), GemmConfig()
    plain = compile_soft(config)
    launches = {SMALL: launch_of(plain, problem, [{}, {}])}
    for each in MISTAKES:
        made = compile_soft(config, changed=each.changed())
        launches[each.name] = launch_of(made, problem, [{}])
    words = [np.array(f.word, np.uint32).tobytes() for f in flips.flips()]
    launches["flips"] = launch_of(
        compile_soft(config, flips=True), problem, [{"soft_flip": w} for w in words]
    )
    launches[RACE] = launch_of(compile_soft(config, changed=race()), problem, [{}])
    pair = delays.small_pair()
    launches[SMALL_PAIR] = launch_of(compile_soft(pair.config), pair, [{}, {}])
    pair = delays.long_pair()
    launches[LONG_PAIR] = launch_of(compile_soft(pair.config), pair, [{}] * LATE)
    for change in (*PAIR_MISTAKES, *LATENESS):
        made = compile_soft(pair.config, changed=change.changed())
        launches[change.name] = launch_of(made, pair, [{}] * LATE)
    for name, each_problem in delays.problems():
        made = compile_soft(each_problem.config, delays=True)
        launches[name] = launch_of(made, each_problem, delays.settings())
    job.mkdir(parents=True, exist_ok=True)
    data = {"nvrtc": plain.nvrtc, "sources": soft_sources(), "launches": launches}
    (job / "job.pickle").write_bytes(pickle.dumps(data))
    print(f"{len(launches)} kernels in {job / 'job.pickle'}")


def digest(found: dict[str, Bytes], outputs: tuple[str, ...]) -> str:
    """Sixteen digits of the SHA-256 of D and SFD."""
    data = b"".join(found[name].tobytes() for name in outputs)
    return hashlib.sha256(data).hexdigest()[:16]


def run_one(launch: Launch) -> list[str]:
    """Run every setting of a launch; return a digest for each."""
    module, found = Module(launch.cubin), []
    for setting in launch.settings:
        for name in SOFT_VARIABLES:
            module.fill(name)
        for name, data in setting.items():
            module.fill(name, data)
        found.append(digest(module.run(launch.call), launch.outputs))
    return found


def run(job: Path, out: Path) -> None:
    """Run every kernel but the race, then the checkers on the small ones."""
    data = pickle.loads((job / "job.pickle").read_bytes())
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "probes.kernel.record", "run", str(job), str(out)]
    answers: dict[str, Any] = {}

    def launch(name: str) -> None:
        slow = name.startswith(delays.NAME)
        limit = DELAYS_TIMEOUT_S if slow else TIMEOUT_S
        lines = _child([*command, "--only", name], limit).splitlines()
        answers[name] = json.loads(lines[-1]) if lines else []
        print(name, len(answers[name]), flush=True)

    names = [name for name in data["launches"] if name != RACE]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(launch, names))
    for tool in TOOLS:
        for name in (SMALL, SMALL_PAIR, *((RACE,) if tool == "racecheck" else ())):
            checker = ["compute-sanitizer", "--tool", tool]
            if tool == "racecheck":
                checker += ["--racecheck-report", "hazard", "--print-limit", "400"]
            said = _child([*checker, *command, "--only", name], TIMEOUT_S)
            (out / f"{tool}-{name.replace(' ', '-')}.txt").write_text(said)
            print(tool, name, said.splitlines()[-1:], flush=True)
    gpu = find_gpu()
    facts = {
        "card": gpu.card,
        "driver": gpu.driver,
        "date": datetime.date.today().isoformat(),
        "compiler": f"NVRTC {data['nvrtc']}",
        "sources": data["sources"],
    }
    (out / "answers.json").write_text(json.dumps(facts | {"answers": answers}))


def _child(command: list[str], timeout_s: int) -> str:
    """Return what a process prints; its error if it fails or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return json.dumps(["hangs"])
    if done.returncode and not done.stdout:
        return json.dumps([done.stderr.strip().splitlines()[-1]])
    return done.stdout


_HAZARD = re.compile(r"hazard detected at __shared__ (0x[0-9a-f]+)")
_PLACE = re.compile(r"=     at (?:(\w+)\(.* in (\S+):\d+|(\w+\+0x\w+)$)", re.M)
"""A function and its file, or an address where the compiler names no line."""


def read(out: Path) -> None:
    """Write the record of the repository from what `run` left."""
    found = json.loads((out / "answers.json").read_text())
    answers = found.pop("answers")
    names = [each.name for each in MISTAKES]
    of_pairs = [LONG_PAIR, *(each.name for each in (*PAIR_MISTAKES, *LATENESS))]
    record = found | {
        "right": answers[SMALL],
        "mistakes": {name: answers[name] for name in names},
        "flips": answers["flips"],
        "pair": answers[SMALL_PAIR],
        "pairs": {name: answers[name] for name in of_pairs},
        "delays": {
            name.removeprefix(delays.NAME): dict(Counter(found))
            for name, found in answers.items()
            if name.startswith(delays.NAME)
        },
        "checkers": {},
    }
    for path in sorted(out.glob("*check-*.txt")):
        text = path.read_text()
        summary = [line for line in text.splitlines() if "SUMMARY" in line]
        record["checkers"][path.stem] = {
            "summary": [line.rpartition("= ")[2] for line in summary],
            "hazards": sorted(set(_HAZARD.findall(text))),
            "places": dict(
                Counter(" in ".join(filter(None, p)) for p in _PLACE.findall(text))
            ),
        }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(RECORD.name, {key: len(value) for key, value in record.items()})


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.kernel.record")
    parser.add_argument("what", choices=("make", "run", "read"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=Path("."))
    parser.add_argument("--only")
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder)
    elif given.what == "read":
        read(given.folder)
    elif given.only:
        launches = pickle.loads((given.folder / "job.pickle").read_bytes())["launches"]
        print(json.dumps(run_one(launches[given.only])))
    else:
        run(given.folder, given.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
