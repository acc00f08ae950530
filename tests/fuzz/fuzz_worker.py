"""fuzz_worker: runs cases one after another, within limits, and tells what it saw.

A process of its own: it may use 2 GB of addresses, and whoever started it ends it when
it says nothing for too long. One line of JSON a case.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import fuzz_cases
from fuzz_bytes import altered
from fuzz_cases import Case, Files
from fuzz_files import TraceParts, odd_ptx
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.cuda_kernel.build import packaged
from fp4ref.errors import Fp4refError
from fp4ref.lessons import classroom, grader
from fp4ref.lessons.transport import MIME, encode
from fp4ref.ptx import Program, parse
from fp4ref.walk import numbers

MOST_NBYTES = 2 << 30
APPS = {"fp4ref": app, "classroom": classroom.app}
PATH_IN_WARNING = re.compile(r"\.py:\d+: \w*(Warning|Error)|encountered in ")


class Seen:
    """What the case at hand has reached."""

    worked = False
    rng = random.Random()


def watch() -> None:
    """Note when a command begins its work, and run no notebook's code."""
    quantise = numbers._quantise

    def noting(*args: Any) -> Any:
        Seen.worked = True
        return quantise(*args)

    numbers._quantise = noting
    grader.execute = send_odd_answers


def send_odd_answers(notebook: Any, *_: Any, **__: Any) -> float:
    """Stand in for the kernel: each probe gets an answer, right in form or not."""
    rng = Seen.rng
    for cell in notebook.cells:
        if "_transport.send" in cell.source:
            values = (1, [1.5, "a"], {"a": (1, 2)}, b"x", None, ...)
            data: Any = {"value": encode(rng.choice(values))}
            if rng.random() < 0.8:
                data = altered(rng, [data])
                data = data[0] if data else None
            cell.outputs = [{"output_type": "display_data", "data": {MIME: data}}]
    return 0.0


def make_traces(runner: CliRunner) -> list[TraceParts]:
    """Record two small walks; the first compiles the model, before the limit."""
    made = []
    for words in (("--output", "f32"), ("--output", "nvfp4", "--schedule", "5")):
        size = ("--size", "3x40x96", "--no-kernel", "--force")
        assert runner.invoke(app, ["walk", *size, *words]).exit_code == 0
        made.append(TraceParts(Path("walk.fp4trace.npz").read_bytes()))
    return made


def set_folder(files: Files) -> None:
    """Leave these files alone in the working directory."""
    for found in Path().iterdir():
        shutil.rmtree(found) if found.is_dir() else found.unlink()
    for name, data in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)


def run_command(runner: CliRunner, case: Case) -> dict[str, Any]:
    """Run one command line and judge what came out."""
    set_folder(case.files)
    result = runner.invoke(APPS[case.program], list(case.words))
    problems = list(problems_of(case, result))
    if result.exception and not isinstance(result.exception, SystemExit):
        problems.append("".join(traceback.format_exception(result.exception))[-1500:])
    worked = Seen.worked or case.plain or result.exit_code == 0
    words = [word[:60] for word in case.words]
    return {"what": [case.program, *words], "status": result.exit_code} | {
        "worked": worked,
        "problems": problems,
    }


def problems_of(case: Case, result: Any) -> Any:
    """Yield each rule that a run breaks."""
    output = result.output
    if result.exit_code not in (0, 1, 2):
        yield f"exit status {result.exit_code}"
    if "Traceback (most recent call last)" in output:
        yield "a traceback is printed"
    if PATH_IN_WARNING.search(output):
        yield f"a warning of the code: {output[:300]}"
    if result.exit_code == 2 and len(result.stderr.strip()) < 15:
        yield f"status 2 and no sentence: {output[:300]!r}"
    if case.words and case.words[0] == "walk" and result.exit_code == 1:
        yield f"a walk differs: {output[-600:]}"
    if "--json" in case.words and result.exit_code in (0, 1):
        yield from problems_of_json(result)
    for name, data in case.files.items():
        kept = Path(name).read_bytes() == data
        if not kept and ("--force" not in case.words or data != b"precious"):
            yield f"{name} was overwritten"
    if left := list(Path().rglob(".fp4ref-*")):
        yield f"{left[0]} was left behind"


def problems_of_json(result: Any) -> Any:
    """Yield what is wrong with a JSON that a program should read."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        found = json.loads(result.stdout, parse_constant=refuse)
    except ValueError as error:
        if "Usage:" not in result.stdout:
            yield f"no JSON ({error}): {result.stdout[:200]}"
        return
    ok = found.get("ok") if isinstance(found, dict) else None
    if ok is not None and ok != (result.exit_code == 0):
        yield f"ok is {ok} and the exit status {result.exit_code}"


def run_ptx(rng: random.Random, long: str) -> dict[str, Any]:
    """Parse a text, and load its kernels."""
    text, problems, status = odd_ptx(rng, long), [], 0
    try:
        module = parse(text)
        for entry in module.entries:
            Program.of(module, entry)
    except Fp4refError as error:
        status = 2
        if len(str(error)) < 15:
            problems.append(f"no sentence: {error}")
    except Exception as error:
        problems.append("".join(traceback.format_exception(error))[-1500:])
    return {"what": ["ptx"], "status": status, "worked": True, "problems": problems}


def main(seed: int, first: int, count: int) -> None:
    """Run cases `first` to `first + count`."""
    runner = CliRunner()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        watch()
        traces = make_traces(runner)
        makers = [
            (18, fuzz_cases.walk_arguments),
            (20, fuzz_cases.walk_file),
            (24, fuzz_cases.trace_commands(traces)),
            (14, fuzz_cases.other_arguments),
            (6, fuzz_cases.class_files),
            (3, fuzz_cases.class_arguments),
            (15, None),
        ]
        weights = [weight for weight, _ in makers]
        long = packaged("f32.ptx")
        resource.setrlimit(resource.RLIMIT_AS, (MOST_NBYTES, MOST_NBYTES))
        for index in range(first, first + count):
            print(json.dumps({"begin": index}), flush=True)
            rng = random.Random(f"{seed}:{index}")
            Seen.worked, Seen.rng = False, rng
            [(_, make)] = rng.choices(makers, weights)
            found = run_command(runner, make(rng)) if make else run_ptx(rng, long)
            print(json.dumps({"index": index, **found}), flush=True)
        set_folder({})
    print(json.dumps({"peak": peak_nbytes()}), flush=True)


def peak_nbytes() -> int:
    """Most memory that this program has held.

    Not `ru_maxrss` where the kernel tells better: it counts the process that started
    this one, which is a long run of tests.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [row for row in status.read_text().splitlines() if "VmHWM" in row]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
