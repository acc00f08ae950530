"""triton_table: Triton's and Gluon's kernels on the emulated SM, and what they showed.

``python conformance/triton_table.py`` compiles every case for sm_100a, runs it under
three schedules, lets the race search look once, and writes ``triton.json`` and
``docs/conformance_triton.md``; with ``--only WORD ...`` the cases with one of these
words in their names, the others as recorded. ``--mutants`` plants wrong rules in the
machine and records which kernels see each. Needs triton and no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import gluon_cases
import triton_matmul_cases
import triton_norm_cases
import triton_row_cases
import triton_scaled_cases
import triton_tma_cases
from triton_cases import Case, run_case
from triton_page import PAGE, RECORD, findings, render

from fp4ref.errors import Fp4refError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule

SCHEDULES: tuple[str | int, ...] = ("eager", "late", 1)
SMS = 2


def every_case() -> tuple[Case, ...]:
    """Triton's cases, then Gluon's."""
    groups = (
        triton_row_cases.elementwise,
        triton_row_cases.moves,
        triton_norm_cases.normalisations,
        triton_matmul_cases.matmuls,
        triton_tma_cases.tensor_maps,
        triton_scaled_cases.scaled,
        triton_scaled_cases.attentions,
        gluon_cases.rows,
        gluon_cases.products,
    )
    return tuple(case for group in groups for case in group())


def name_of(case: Case) -> str:
    """Language and name."""
    return f"{case.author}: {case.name}"


def outcome(case: Case, schedules: Sequence[str | int] = SCHEDULES) -> str:
    """Run under each schedule; return "passed", or what went wrong first."""
    for schedule in schedules:
        try:
            run_case(case, Machine(SMS, make_schedule(schedule), "shipped"))
        except AssertionError as error:
            return f"wrong under {schedule}: {error}"
        except Fp4refError as error:
            return f"refused under {schedule}: {str(error).splitlines()[0]}"
    return "passed"


def order(case: Case) -> dict[str, Any]:
    """Let the race search look once, and follow the text alone once."""
    found: dict[str, Any] = {}
    machine = Machine(SMS, make_schedule("late"), "shipped", races="collect")
    try:
        run_case(case, machine)
    except Fp4refError as error:
        found["search"] = str(error).splitlines()[0]
    races = machine.order.findings.races
    for race in races:
        pair = f"{race.first.operation}, {race.second.operation}"
        key = f"{race.severity}: {race.failure.value.name} ({pair})"
        found[key] = found.get(key, 0) + 1
    try:
        run_case(case, Machine(SMS, make_schedule("late"), "ptx"))
        found["by the text"] = "runs"
    except Fp4refError as error:
        found["by the text"] = str(error).splitlines()[0]
    return found


def record(case: Case) -> dict[str, Any]:
    """Everything that is said of one case."""
    begin = time.process_time()
    result = outcome(case)
    opcodes = Counter(each.opcode for each in case.compiled.program.instructions)
    return {
        "author": case.author,
        "name": case.name,
        "what": case.what,
        "compared": case.compared,
        "warps": case.compiled.threads // 32,
        "instructions": sum(opcodes.values()),
        "opcodes": sorted(opcodes),
        "result": result,
        "order": order(case) if result == "passed" else {},
        "seconds": round(time.process_time() - begin, 1),
        "date": date.today().isoformat(),
    }


# -- wrong rules -------------------------------------------------------------------


def _attribute(target: str, change: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return what replaces an attribute of a module, given as ``module:name``."""

    def plant() -> Any:
        module, _, name = target.partition(":")
        __import__(module)
        owner: Any = sys.modules[module]
        *path, last = name.split(".")
        for each in path:
            owner = getattr(owner, each)
        return mock.patch.object(owner, last, change(getattr(owner, last)))

    return plant


def _one_group_less(right: Any) -> Any:
    def wrong(self: Any, lanes: int, pending: int) -> Any:
        return right(self, lanes, pending + 1)

    return wrong


def _no_wait(right: Any) -> Any:
    def wrong(self: Any, lanes: int, pending: int) -> Any:
        return {}

    return wrong


def _next_bit(right: Any) -> Any:
    import numpy as np

    def wrong(*sources: Any) -> Any:
        found = np.atleast_1d(right(*sources)).copy()
        found.view(np.uint32)[...] ^= np.uint32(1 << 8)
        return found

    return wrong


def _swapped_halves(right: Any) -> Any:
    """Swap neighbours in every second call only: in A and B alike it would cancel."""
    import numpy as np

    calls = [0]

    def wrong(data: Any, element: Any) -> Any:
        codes = right(data, element)
        calls[0] += 1
        if element.bits != 16 or calls[0] % 2:
            return codes
        pairs = codes.reshape(len(codes), -1, 2)[:, :, ::-1]
        return np.ascontiguousarray(pairs).reshape(codes.shape)

    return wrong


def _fewer_bits(right: Any) -> Any:
    import numpy as np

    def wrong(a: Any, b: Any, *more: Any, **named: Any) -> Any:
        if a.dtype == np.uint32:
            a, b = a & np.uint32(0xFFFF8000), b & np.uint32(0xFFFF8000)
        return right(a, b, *more, **named)

    return wrong


def _next_target(right: Any) -> Any:
    def wrong(self: Any, branch: Any) -> Any:
        found = right(self, branch)
        return found[1:] + found[:1]

    return wrong


def _other_parity(right: Any) -> Any:
    return lambda unit, address, parity: not right(unit, address, parity)


def _rolled(right: Any) -> Any:
    import numpy as np

    return lambda *given, **named: np.roll(right(*given, **named), 1, axis=0)


def _neighbour_rows(right: Any) -> Any:
    def wrong(*given: Any) -> Any:
        held = right(*given)
        return held._replace(row=held.row ^ 1)

    return wrong


def _lower(right: Any) -> Any:
    return lambda name, *, keeps_nan: right(
        "min" if name == "max" else "max", keeps_nan=keeps_nan
    )


MUTANTS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "cp.async.wait_group waits for one group less": (
        _attribute("fp4ref.hardware.copy_groups:CopyGroups.take", _one_group_less),
        ("matmul bf16, 16x16x64", "NVFP4, 2 stages", "Gluon: row sums"),
    ),
    "cp.async.wait_group does not wait": (
        _attribute("fp4ref.hardware.copy_groups:CopyGroups.take", _no_wait),
        ("matmul bf16, 16x16x64", "NVFP4, 2 stages", "Gluon: row sums"),
    ),
    "halves of a 32-bit word swapped in one of A and B": (
        _attribute("fp4ref.hardware.mma_elements:unpack_codes", _swapped_halves),
        ("host TMA f16, 1 stage", "device TMA f16", "attention f16, D = 64, 1"),
    ),
    "kind::tf32 takes 8 mantissa bits": (
        _attribute("fp4ref.hardware.mma_unscaled:mma_unscaled", _fewer_bits),
        ("matmul tf32, 128x128x32", "matmul tf32, 128x64x32"),
    ),
    "scales of a row belong to the next": (
        _attribute("fp4ref.hardware.mma_mxf8f6f4:read_scales", _rolled),
        ("MXFP8 E4M3, 1 stage", "MXFP8 x MXFP4"),
    ),
    "scales of NVFP4 belong to the next row": (
        _attribute("fp4ref.hardware.tcgen05:read_scales", _rolled),
        ("NVFP4, 2 stages", "MXFP4, 4 stages", "Gluon: NVFP4"),
    ),
    "mbarrier parity inverted": (
        _attribute(
            "fp4ref.hardware.mbarrier_unit:MbarrierUnit.has_completed", _other_parity
        ),
        ("host TMA f16, 1 stage", "Gluon: matmul f16, warps"),
    ),
    "mma.sync has rows of A exchanged": (
        _attribute("fp4ref.ptx.instructions.mma_sync:tall", _neighbour_rows),
        ("matmul f16, 32x32x32", "matmul bf16, 16x16x64"),
    ),
    "A in TMEM has its rows rolled": (
        _attribute("fp4ref.hardware.mma_elements:ElementCells.codes", _rolled),
        ("attention f16, D = 64, 1",),
    ),
    "ex2.approx has a wrong bit": (
        _attribute("fp4ref.ptx.instructions.quotients:ex2_approx_ftz", _next_bit),
        ("softmax f32", "SiLU f32", "cross entropy"),
    ),
    "the reciprocal in div.full has a wrong bit": (
        _attribute("fp4ref.ptx.instructions.quotients:rcp_approx_ftz", _next_bit),
        ("softmax f32", "SiLU f32"),
    ),
    "redux.sync of floats gives min for max": (
        _attribute("fp4ref.ptx.instructions.lanes:smallest_or_largest", _lower),
        ("quantise to E4M3", "softmax f32"),
    ),
    "brx.idx goes to the next target": (
        _attribute("fp4ref.ptx.text.program:Program.targets", _next_target),
        ("host TMA f16, warps specialised", "Gluon: matmul f16, warps"),
    ),
}
"""What is planted, and words of the names of the kernels that are run with it."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let the machine have one wrong rule."""
    plant, _ = MUTANTS[name]
    with plant():
        yield


def mutants(cases: Sequence[Case]) -> dict[str, list[str]]:
    """Return which of the named kernels see each wrong rule."""
    seen: dict[str, list[str]] = {}
    for name, (_, words) in MUTANTS.items():
        seen[name] = []
        for case in cases:
            if any(word in name_of(case) for word in words):
                case.compiled  # noqa: B018  before the machine is changed
                with planted(name):
                    if outcome(case, ("late",)) != "passed":
                        seen[name].append(name_of(case))
        print(f"{name}: {len(seen[name])} kernels see it", flush=True)
    return seen


def recorded() -> dict[str, Any]:
    """Read the last run; empty before the first."""
    if not RECORD.exists():
        return {"triton": "", "rows": [], "mutants": {}}
    data: dict[str, Any] = json.loads(RECORD.read_text())
    return data


def _write(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def main() -> int:
    """Run the command line; 1 if a row did not pass."""
    import triton

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--mutants", action="store_true", help="plant the wrong rules")
    given = parser.parse_args()
    data = recorded()
    before = {f"{row['author']}: {row['name']}": row for row in data["rows"]}
    rows = []
    every = every_case()
    for number, case in enumerate(every):
        name = name_of(case)
        chosen = not given.only or any(word in name for word in given.only)
        if given.mutants or not chosen:
            rows += [before[name]] if name in before else []
            continue
        print(f"{name} ...", flush=True)
        rows.append(record(case))
        print(f"  {rows[-1]['result']}; {findings(rows[-1]['order'])}", flush=True)
        # What a run that is stopped has found; the rest stays as recorded.
        later = [before[n] for n in map(name_of, every[number + 1 :]) if n in before]
        _write(data | {"rows": [*rows, *later]}, RECORD)
    data |= {"triton": triton.__version__, "rows": rows}
    if given.mutants:
        data["mutants"] = mutants([c for c in every_case() if name_of(c) in before])
    _write(data, RECORD)
    PAGE.write_text(render(data))
    return int(any(row["result"] != "passed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
