"""default_gemm: which rules of the fidelity table the default GEMM needs.

A rule is needed if the job, with that rule alone made wrong, is another: other codes,
other bits of D, another event, or a fault. The job is that of ``fp4ref walk``: quantise
a part of its layer and run the default configuration, in the emulator and as PTX; then
operands whose sums have to be rounded, on the machine and by the integer model, whose
bits the machine has by another road. ``python tests/evidence/default_gemm.py`` breaks
every rule in turn and writes the record; with ids it prints what these rows do.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "gemm"), str(TESTS / "evidence")]

from mutate import applied  # noqa: E402
from recorded import digest  # noqa: E402
from wide_operands import integer_product, wide_pair  # noqa: E402

import fp4ref  # noqa: E402
from fp4ref.evidence.fidelity import NEEDED_FILE, RULES, Rule  # noqa: E402
from fp4ref.walk import load_problem  # noqa: E402

FILE = Path(str(files("fp4ref").joinpath("data", NEEDED_FILE)))
COLUMNS = 136
"""Of y: four tiles on two SMs, and an edge."""
WIDE = ((40, 8, 256), (64, 64, 512))
BACKENDS: tuple[Any, ...] = ("emulator", "ptx")


def job() -> Iterator[tuple[str, str]]:
    """Yield each part's name and what it gave; the first that differs is enough."""
    problem = load_problem()
    x, w = problem.x, problem.w[:COLUMNS]
    a, b = (fp4ref.quantize(each, global_scale="auto") for each in (x, w))
    codes = [each.tobytes() for q in (a, b) for each in (q.codes, q.scales)]
    yield "the operands", hashlib.sha256(b"".join(codes)).hexdigest()
    for size in WIDE:
        wide = wide_pair(0, *size, specials=False)
        yield f"wide operands, {size}", digest(fp4ref.run(*wide))
        model = integer_product(*wide).tobytes()
        yield f"their sums, {size}", hashlib.sha256(model).hexdigest()
    for backend in BACKENDS:
        run = fp4ref.run(a, b, backend=backend, schedule=0)
        yield f"{backend}, D or an event", digest(run)


def change(rule: Rule, right: dict[str, str]) -> str:
    """What the job has otherwise without the rule; '' if nothing."""
    with applied(rule.mutation):
        parts = job()
        while True:
            try:
                name, found = next(parts)
            except StopIteration:
                return ""
            except Exception as error:  # a wrong rule may do anything
                return type(error).__name__
            if found != right[name]:
                return name


def changes(rules: Sequence[Rule]) -> dict[str, str]:
    """Break each rule in turn, and say what the job has otherwise."""
    right = dict(job())
    return {rule.id: change(rule, right) for rule in rules}


if __name__ == "__main__":
    if wanted := sys.argv[1:]:
        print(json.dumps(changes([rule for rule in RULES if rule.id in wanted])))
    else:
        needed = {id: seen for id, seen in changes(RULES).items() if seen}
        FILE.write_text(json.dumps(needed, indent=1) + "\n", encoding="utf-8")
