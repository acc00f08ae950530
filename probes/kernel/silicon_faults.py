"""silicon_faults: the gallery's kernels with a mistake, on a Hopper card.

``python -m probes.kernel.silicon_faults make JOB`` compiles each on the soft tensor
core, with sleeps and with waits that give up. ``... run JOB OUT`` on the card launches
each `LAUNCHES` times, every time with other sleeps; where some of them are wrong it
looks for the fewest sleeps that are enough. ``... read OUT`` writes the record of the
repository. Only `run` needs a card.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.attest.on_ptx import DUMP
from fp4ref.cuda_kernel.on_device import SOFT_VARIABLES
from fp4ref.device import find_gpu
from fp4ref.device.compile import nvrtc_version
from fp4ref.device.driver import DeviceError
from fp4ref.device.launch import Call, Module
from probes.kernel.smallest import smallest
from probes.kernel.soft_sources import soft_sources
from probes.kernel.wrong_kernels import Kernel, kernel, launches, twin

RECORD = Path(__file__).parents[2] / "tests" / "data" / "silicon_faults_h200.json"
LAUNCHES = 100
"""The first without sleeps."""
REPEATS = 10
"""Launches of one set of sleeps; it is kept if half as many are wrong as with all."""
REPLAYS = 100
POISONED = 226 << 10
"""Bytes of each SM's shared memory: so many that it has one CTA."""
LOST = 3
"""Launches that hang or end in an error before a kernel is asked no more."""
START_S, IDLE_S = 60, 8
AT_A_TIME = 6
SITES = 4096


# -- make --------------------------------------------------------------------------


def _write(folder: Path, number: int, name: str) -> None:
    (folder / f"{number}.pickle").write_bytes(pickle.dumps(kernel(name)))


def make(job: Path) -> None:
    """Compile every launch, each to a file of its own."""
    job.mkdir(parents=True, exist_ok=True)
    names = list(launches())
    with ProcessPoolExecutor() as pool:
        futures = [pool.submit(_write, job, i, name) for i, name in enumerate(names)]
        for each in futures:
            each.result()
    (job / "names.json").write_text(json.dumps(names))
    print(f"{len(names)} kernels in {job}")


# -- on the card -------------------------------------------------------------------


class OnCard:
    """A kernel whose launches are told what to sleep."""

    def __init__(self, given: Kernel) -> None:
        self._given, self._module = given, Module(given.cubin)
        self._poison = Call(
            "poison",
            {},
            (np.uint32(POISONED // 4),),
            grid=(find_gpu().sms, 1, 1),
            block=(1024, 1, 1),
            smem_nbytes=POISONED,
        )

    def launch(self, seed: int, left_out: bytes = bytes(SITES // 8)) -> str:
        """Return sixteen digits of what is left, or which wait gave up."""
        module, given = self._module, self._given
        module.run(self._poison)
        for name in (*SOFT_VARIABLES, DUMP, "soft_delay_slept"):
            module.fill(name)
        module.fill("soft_delay_seed", np.uint32(seed).tobytes())
        module.fill("soft_delay_left_out", left_out)
        found = module.run(given.call)
        dump = module.read(DUMP).view(np.uint32)
        if dump[0]:
            _, cta, thread, mbar, parity = (int(each) for each in dump[1:6])
            at = f"{mbar & 0xFFFFFF:#x}"
            return f"gave up: CTA {cta}, warp {thread // 32}, {at}, parity {parity}"
        data = b"".join(found[name].tobytes() for name in given.outputs)
        return hashlib.sha256(data).hexdigest()[:16]

    def slept(self) -> list[list[int]]:
        """Return the sites of the last launch: number, place, operand, warp, ns."""
        words = self._module.read("soft_delay_slept").view(np.uint32).reshape(-1, 4)
        return [[int(i), *map(int, words[i])] for i in np.flatnonzero(words[:, 0])]

    def reduced(self, seed: int, right: str) -> dict[str, Any] | None:
        """Find the fewest sleeps of a seed with which launches are wrong.

        None if they are with fewer than half of the launches, or without sleeps.
        """
        sites = {site[0]: site for site in self.slept_by(seed)}

        def wrong(chosen: list[int], launches: int = REPEATS) -> int:
            bits = np.ones(SITES, np.uint8)
            bits[chosen] = 0
            left_out = np.packbits(bits, bitorder="little").tobytes()
            return sum(self.launch(seed, left_out) != right for _ in range(launches))

        every = list(sites)
        enough = wrong(every) / 2
        if enough < REPEATS / 4 or wrong([]):
            return None
        kept = smallest(lambda chosen: wrong(chosen) >= enough, every)
        return {
            "seed": seed,
            "sleeps": len(every),
            "kept": [sites[each] for each in kept],
            "launches": REPLAYS,
            "wrong": {
                "all": wrong(every, REPLAYS),
                "kept": wrong(kept, REPLAYS),
                "without one of them": [
                    wrong([other for other in kept if other != each], REPLAYS)
                    for each in kept
                ],
                "none": wrong([], REPLAYS),
            },
        }

    def slept_by(self, seed: int) -> list[list[int]]:
        """Return the sites at which a seed sleeps."""
        self.launch(seed)
        return self.slept()


def ask(path: Path, first: int, right: str) -> None:
    """Launch a kernel with each seed from `first`; print a line for each."""
    card = OnCard(pickle.loads(path.read_bytes()))
    wrong = []
    for seed in range(first, LAUNCHES):
        print(json.dumps([seed]), flush=True)
        try:
            said = card.launch(seed)
        except DeviceError as error:
            print(json.dumps([seed, f"error: {str(error).splitlines()[0]}"]))
            return
        print(json.dumps([seed, said]), flush=True)
        if right and said != right:
            wrong.append(seed)
    if first == 0 and wrong and wrong[0] != 0:
        for seed in wrong[:10]:
            print(json.dumps(["reducing"]), flush=True)
            try:
                found = card.reduced(seed, right)
            except DeviceError:
                return
            if found:
                print(json.dumps(["reduced", found]), flush=True)
                return


@dataclass
class Answer:
    """What the launches of one kernel did, by seed."""

    said: dict[int, str] = field(default_factory=dict)
    reduced: dict[str, Any] | None = None

    @property
    def lost(self) -> int:
        """Launches that hung or ended in an error."""
        return sum(each.startswith(("hangs", "error")) for each in self.said.values())


def asked_of_the_card(path: Path, right: str) -> Answer:
    """Launch a kernel in processes of their own, until `LAUNCHES` or `LOST`."""
    found = Answer()
    while len(found.said) < LAUNCHES and found.lost < LOST:
        first = len(found.said)
        _one_process(path, first, right, found)
        if len(found.said) == first:
            found.said[first] = "error: its process ended"
    return found


def _one_process(path: Path, first: int, right: str, found: Answer) -> None:
    """Run one process to its end, or until it says nothing for too long."""
    command = [sys.executable, "-m", "probes.kernel.silicon_faults", "ask"]
    child = subprocess.Popen(
        [*command, str(path), str(first), right],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        assert child.stdout
        for line in child.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=listen, daemon=True).start()
    seed, limit = first, START_S
    while True:
        try:
            line = lines.get(timeout=limit)
        except queue.Empty:
            if seed not in found.said:
                found.said[seed] = "hangs"
            os.killpg(child.pid, signal.SIGKILL)
            break
        if not line:
            break
        match json.loads(line):
            case ["reduced", each]:
                found.reduced = each
            case ["reducing"]:
                limit = START_S
            case [int(number)]:
                seed, limit = number, IDLE_S
            case [int(number), str(said)]:
                found.said[number] = said
    child.wait(timeout=20)


def run(job: Path, out: Path) -> None:
    """Launch the clean kernels, then those with a mistake."""
    out.mkdir(parents=True, exist_ok=True)
    names = json.loads((job / "names.json").read_text())
    paths = {name: job / f"{i}.pickle" for i, name in enumerate(names)}
    answers: dict[str, Answer] = {}
    rights: dict[str, str] = {}

    def answer(name: str) -> None:
        each, wrong = launches()[name]
        answers[name] = asked_of_the_card(
            paths[name], rights[twin(each)] if wrong else ""
        )
        counts = Counter(each[:16] for each in answers[name].said.values())
        print(
            name, dict(counts.most_common(3)), bool(answers[name].reduced), flush=True
        )

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(answer, [name for name in names if not launches()[name][1]]))
        rights |= {name: found.said[0] for name, found in answers.items()}
        list(pool.map(answer, [name for name in names if launches()[name][1]]))
    gpu = find_gpu()
    facts = {
        "card": gpu.card,
        "driver": gpu.driver,
        "date": datetime.date.today().isoformat(),
        "compiler": f"NVRTC {nvrtc_version()}",
        "sources": soft_sources(),
    }
    said = {
        name: {"said": list(found.said.values()), "reduced": found.reduced}
        for name, found in answers.items()
    }
    (out / "silicon_faults.json").write_text(json.dumps(facts | {"answers": said}))


# -- read --------------------------------------------------------------------------


def summary(said: list[str], right: str) -> dict[str, Any]:
    """Count what the launches of one kernel did.

    A launch has the same bits, other bits, waits that gave up, an error, or hangs.
    """
    found: Counter[str] = Counter()
    others, waits, errors = set(), Counter(), Counter()
    for each in said:
        kind, _, rest = each.partition(": ")
        if kind == "gave up":
            waits[rest.partition(", ")[2]] += 1
        elif kind == "error":
            errors[rest] += 1
        elif kind not in ("hangs", right):
            others.add(each)
        named = {
            right: "same",
            "gave up": "gave up",
            "error": "error",
            "hangs": "hangs",
        }
        found[named.get(kind, "other")] += 1
    more: dict[str, Any] = {"sets": len(others)} if others else {}
    if waits:
        more["wait"] = waits.most_common(1)[0][0]
    if errors:
        more["error said"] = errors.most_common(1)[0][0]
    first = said[0].partition(":")[0]
    return (
        dict(found) | more | {"without sleeps": "same" if first == right else "wrong"}
    )


def read(out: Path) -> None:
    """Write the record of the repository from what `run` left."""
    found = json.loads((out / "silicon_faults.json").read_text())
    answers = found.pop("answers")
    record = found | {"clean": {}, "faults": {}, "reduced": {}}
    for name, (each, wrong) in launches().items():
        said = answers[name]["said"]
        if not wrong:
            record["clean"][name] = dict(Counter(said))
            continue
        record["faults"][name] = summary(said, answers[twin(each)]["said"][0])
        if answers[name]["reduced"]:
            record["reduced"][name] = answers[name]["reduced"]
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(RECORD.name, {key: len(value) for key, value in record.items()})


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.kernel.silicon_faults")
    parser.add_argument("what", choices=("make", "run", "read", "ask"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("more", nargs="*")
    given = parser.parse_args()
    match given.what:
        case "make":
            make(given.folder)
        case "run":
            run(given.folder, Path(given.more[0]))
        case "read":
            read(given.folder)
        case "ask":
            ask(given.folder, int(given.more[0]), (given.more[1:] or [""])[0])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
