"""outside_witnesses: which outside witness sees each rule of the machine made wrong.

A witness knows nothing of this machine: a recording of an H200, what NVIDIA's
compute-sanitizer, ptxas or CuTe's headers say, what other checkers' tests and public
reports say of small programs, or a kernel of CUTLASS, Triton or Gluon, compiled here,
with its meaning in NumPy. A rule is made wrong as the fidelity
table says; the witnesses that execute the changed statement are tried, the cheapest
first, until one gives another result. Rules whose row already names its witness, a
measurement or an outside kernel, are proved by ``test_fidelity.py``.

``python tests/evidence/outside_witnesses.py`` goes on where the record ends; ``--again
id ...`` tries rows again. ``--quick`` asks no kernels, which need triton. Why a rule
has no witness is written into the record by hand, as "why".
"""

from __future__ import annotations

import argparse
import builtins
import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FOLDERS = ("cutlass", "device", "evidence", "hardware", "mutants", "ptx")
sys.path[:0] = [
    *(str(TESTS / each) for each in ("", *FOLDERS)),
    *(str(ROOT), str(ROOT / "conformance")),
]

from mutate import _compiled, _forget, _function, _source, applied  # noqa: E402
from touching import CALL, spots  # noqa: E402

from fp4ref.errors import Fp4refError  # noqa: E402
from fp4ref.evidence.fidelity import (  # noqa: E402
    RULES,
    WITNESSED_FILE,
    Evidence,
    Rule,
)

FILE = Path(str(files("fp4ref").joinpath("data", WITNESSED_FILE)))
NAMED = (Evidence.MEASURED, Evidence.OUTSIDE_KERNEL)
LIMIT = 120.0
"""CPU seconds of one witness under a wrong rule."""

Part = tuple[str, Callable[[], str]]

CASES = (
    *("host TMA f16, 1 stage", "device TMA f16", "MXFP8 E4M3, 1 stage"),
    *("matmul f16, 32x32x32, 3 stages, 4 warps", "row sums f32, cp.async"),
    *("host TMA bf16, warps specialised, 2 stages", "NVFP4, 2 stages"),
    *("column sums f32", "histogram", "matmul f16, warps specialised"),
    *("MXFP8 E5M2 x E4M3, 2 stages", "attention f16, D = 64, 1 stages"),
    *("NVFP4, TMA and tcgen05.mma", "host TMA f16, persistent, flattened"),
    *("device TMA E4M3", "matmul bf16, N-major B, bias, ReLU"),
    *("bf16 x MXFP4", "MXFP4, 4 stages", "host TMA f16, 3 stages"),
    *("matmul tf32, 128x64x32, 3 stages, 4 warps",),
)
"""Kernels that use different operations; the others of conformance repeat them."""


# -- the witnesses -----------------------------------------------------------------


def recordings() -> Iterator[Part]:
    """Yield what an H200 did, by the emulator and by the recorded PTX."""
    from recordings import BACKENDS, differences

    from probes.probe import probes

    for name in probes():
        for backend in BACKENDS:
            yield (
                f"H200 recording {name}, {backend}",
                lambda n=name, b=backend: "; ".join(differences(n, b, outside=True))[
                    :200
                ],
            )


def transfers() -> Iterator[Part]:
    """Yield where CuTe's Copy_Traits have rows of copies and halves of registers."""
    import test_cp_shapes as copies
    import test_tmem_packed as packed

    def rows(shape: str) -> str:
        copies.test_rows_land_where_cute_has_them(shape, "eager")
        return ""

    def halves(shape: str, repeat: int) -> str:
        packed.test_a_register_is_two_low_halves(shape, repeat, 0)
        return ""

    for shape in copies.CUTE:
        yield f"CuTe's Copy_Traits, tcgen05.cp.{shape}", lambda s=shape: rows(s)
    for shape, repeat in packed.CUTE:
        yield (
            f"CuTe's Copy_Traits, packed {shape}.x{repeat}",
            lambda s=shape, r=repeat: halves(s, r),
        )


def tools() -> Iterator[Part]:
    """Yield what compute-sanitizer, ptxas and CuTe's headers say of small texts."""
    import cute_facts
    import outside_texts

    from fp4ref.cutlass.toolchain import find_toolchain
    from probes import sanitizer

    for name in (each for each in sanitizer.CASES if each not in sanitizer.UNSEEN):
        for search in (True, False) if name in sanitizer.UNTRACED else (True,):
            yield (
                f"compute-sanitizer, {name}{'' if search else ', no search'}",
                lambda n=name, s=search: sanitizer.difference(n, s),
            )
    for name in outside_texts.PAIRS:
        yield (
            f"ptxas, {name}",
            lambda n=name: "; ".join(outside_texts.disagreements(n)),
        )
    for name in outside_texts.GUARDRAILS:
        yield (
            f"ptxas -g-tmem-access-check, {name}",
            lambda n=name: "; ".join(outside_texts.guarded(n)),
        )
    yield "ptxas, modifiers", lambda: "; ".join(outside_texts.modifiers())[:200]
    found = find_toolchain()
    for question in cute_facts.QUESTIONS:
        title = question.__name__.replace("_", " ")
        yield (
            f"CuTe's headers, {title}",
            lambda q=question: "; ".join(q(found))[:200],
        )


def verdicts() -> Iterator[Part]:
    """Yield what other people say of small programs, where the machine agrees."""
    import outside_verdicts
    from outside_programs import agreed, differences

    for name, program in outside_verdicts.PROGRAMS.items():
        for search in (True, False):
            said = agreed(program, search)
            yield (
                f"{name}{'' if search else ', no search'}",
                lambda p=program, a=said, s=search: "; ".join(differences(p, a, s)),
            )


LATE, TRACED, RACES = ("late", ""), ("eager", ", traced"), ("eager", ", races")
PROGRAMS = (
    ("72b", (160, 192, 288), None, (LATE, TRACED)),
    ("72a", (256, 1024, 256), None, (LATE, TRACED)),
    ("72a", (256, 192, 1024), None, (LATE,)),
    ("72a", (256, 192, 256), 8, (RACES,)),
    ("72c", (256, 256, 256), None, (LATE, TRACED)),
    ("70-fp8", (256, 256, 128), None, (LATE, TRACED)),
    ("73", (400, 264, 72), 6, (LATE,)),
    ("73", (132, 520, 8), 6, (RACES,)),
    ("74", (144, 120, 144), None, (LATE,)),
    ("tutorial-01", (128, 256, 64), None, (LATE,)),
)
"""Examples of CUTLASS with M, N and K, SMs, and how each is run.

They are of one CTA and of pairs; on 6 SMs a preferred cluster of 4 CTAs stands beside a
regular one of 2. In what its authors ship there is no race.
"""


def programs(only: Sequence[str] = ()) -> Iterator[Part]:
    """Yield what CUTLASS's examples say of their own results, and what races."""
    from fp4ref.cutlass.example_table import find_example
    from fp4ref.cutlass.execute import execute_example, execute_on
    from fp4ref.hardware.machine import Machine
    from fp4ref.hardware.schedule import make_schedule

    def results(name: str, shape: Sequence[int], sms: int | None, *how: str) -> str:
        schedule, trace = how[0], how == TRACED
        run = execute_example(name, *shape, schedule=schedule, trace=trace, sms=sms)
        return "" if run.result.passed else f"not passed: {run.result.problems}"[:160]

    def races(name: str, shape: Sequence[int], sms: int | None, *how: str) -> str:
        sms = sms or max(2, find_example(name).cluster)
        machine = Machine(sms, make_schedule(how[0]), "shipped", races="collect")
        passed = execute_on(machine, name, *shape).passed
        return errors(machine) if passed else "not passed"

    for name, shape, sms, ways in PROGRAMS:
        if only and name not in only:
            continue
        for how in ways:
            check = races if how == RACES else results
            yield (
                f"CUTLASS {name} {'x'.join(map(str, shape))}, {''.join(how)}",
                lambda c=check, n=name, m=shape, s=sms, h=how: c(n, m, s, *h),
            )


def errors(machine: Any) -> str:
    """Return the races of a run; of what is allowed a kernel says nothing."""
    found = [
        (r.severity, r.failure.value.name, r.first.operation, r.second.operation)
        for r in machine.order.findings.races
        if r.severity == "error"
    ]
    return "race search: " + str(sorted(set(found)))[:200]


def kernels(only: Sequence[str]) -> Iterator[Part]:
    """Yield Triton's and Gluon's kernels: their results, then what races."""
    import triton_table
    from triton_cases import run_case

    from fp4ref.hardware.machine import Machine
    from fp4ref.hardware.schedule import make_schedule

    def results(case: Any, schedule: str, ordering: Any) -> str:
        run_case(case, Machine(2, make_schedule(schedule), ordering))
        return ""

    def races(case: Any) -> str:
        machine = Machine(2, make_schedule("late"), "shipped", races="collect")
        run_case(case, machine)
        return errors(machine)

    for case in triton_table.every_case():
        if case.name in (only or CASES):
            name = triton_table.name_of(case)
            case.compiled  # noqa: B018  before a rule is wrong
            for schedule in ("late", "eager"):
                yield (
                    f"{name}, {schedule}",
                    lambda c=case, s=schedule: results(c, s, "shipped"),
                )
            yield f"{name}, races", lambda c=case: races(c)
            yield f"{name}, by the text", lambda c=case: results(c, "late", "ptx")


def outcome(run: Callable[[], str], limit: float = LIMIT) -> str:
    """Return what a witness gives, or how it is stopped; a slip says nothing."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return run()
    except (AssertionError, Fp4refError) as error:
        said = str(error).strip().partition("\n")[0][:160]
        return f"{type(error).__name__}: {said}"
    except TimeoutError:
        return "no end"
    except Exception as error:  # a wrong rule may do anything
        return f"slip: {type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


# -- which of them execute a rule --------------------------------------------------


def _line(rule: Rule, source: str) -> int:
    return source[: source.index(rule.mutation.right)].count("\n") + 1


@contextmanager
def watched(rules: Sequence[Rule]) -> Iterator[set[str]]:
    """Collect the rules whose statements are executed."""
    touched: set[str] = set()
    by_code: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_code[rule.mutation.code].append(rule)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(builtins, CALL, touched.add, raising=False)
        for code, of_code in by_code.items():
            _, function = _function(code)
            source = _source(function)
            lines = source.splitlines(True)
            calls = []
            for rule in of_code:
                for each in spots(source, _line(rule, source)):
                    call = f"{' ' * each.col_offset}{CALL}({rule.id!r})\n"
                    calls.append((each.lineno, call))
            for at, call in sorted(calls, reverse=True):
                lines.insert(at - 1, call)
            text = "".join(lines)
            patch.setattr(function, "__code__", _compiled(text, function))
        _forget()
        yield touched
    _forget()


# -- the record --------------------------------------------------------------------


def wanted() -> list[Rule]:
    """Return the rules of the machine whose row names no outside witness."""
    return [
        rule
        for rule in RULES
        if rule.mutation.code.startswith("fp4ref.hardware")
        and not (rule.evidence in NAMED or rule.killed_by)
    ]


def seen(rule: Rule, parts: Sequence[tuple[Part, str, float]]) -> dict[str, Any]:
    """Make one rule wrong; which of the witnesses sees it first, or who was tried."""
    tried = []
    with applied(rule.mutation):
        for (name, run), right, spent in parts:
            found = outcome(run, min(LIMIT, 10 + 10 * spent))
            if found != right and not found.startswith("slip"):
                return {"witness": name, "shows": found or "another result"}
            tried.append(name)
    return {"witness": "", "tried": tried}


def chosen(record: dict[str, Any], again: Sequence[str]) -> list[Rule]:
    """Return the rules without a row; or those of `again` without a witness."""
    rules = {rule.id: rule for rule in wanted()}
    if not again:
        return [rule for id, rule in rules.items() if id not in record]
    return [rules[id] for id in again if not record.get(id, {}).get("witness")]


def main() -> None:
    """Go on with the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", nargs="*", default=[], metavar="ID")
    parser.add_argument("--slow", action="store_true", help="kernels alone")
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--quick", action="store_true", help="no kernels")
    parser.add_argument("--cutlass", nargs="+", default=[], metavar="EXAMPLE")
    parser.add_argument("--verdicts", action="store_true", help="other people's alone")
    parser.add_argument("--others", type=Path, metavar="FOLDER", help="by hand, alone")
    given = parser.parse_args()
    record: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    rules = chosen(record, given.again)
    quick = [] if given.slow or given.cutlass else [*verdicts()]
    if not (given.slow or given.cutlass or given.verdicts):
        quick = [*recordings(), *tools(), *transfers(), *quick]
    if given.others:
        import outside_kernels

        quick, slow = [], list(outside_kernels.kernels(given.others))
    elif given.cutlass:
        slow = list(programs(given.cutlass))
    elif given.quick or given.verdicts:
        slow = []
    else:
        slow = [*programs(), *kernels(given.only)]
    parts = [*quick, *slow]
    known: list[tuple[Part, str, float, set[str]]] = []
    for part in parts:
        before = time.process_time()
        with watched(rules) as touched:
            right = outcome(part[1])
        spent = time.process_time() - before
        print(f"{part[0]}: {len(touched)} rules, {spent:.1f} s {right}", flush=True)
        known.append((part, right, spent, set(touched)))
    known.sort(key=lambda each: each[2])
    end = time.monotonic() + given.seconds
    for rule in rules:
        if time.monotonic() > end:
            break
        of_rule = [(*each[:3],) for each in known if rule.id in each[3]]
        earlier = record.get(rule.id, {})
        record[rule.id] = found = seen(rule, of_rule)
        if not found["witness"]:
            tried = [*earlier.get("tried", []), *found["tried"]]
            why = earlier.get("why", "not looked for yet")
            found.update(tried=[*dict.fromkeys(tried)], why=why)
        print(rule.id, record[rule.id], flush=True)
        text = json.dumps(dict(sorted(record.items())), indent=1)
        FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
