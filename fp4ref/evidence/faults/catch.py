"""catch: run a mistake, or its clean twin, and say what catches it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.errors import HardwareFault
from fp4ref.evidence.comparison import compare
from fp4ref.evidence.difference import Difference
from fp4ref.evidence.faults.change import changed_emulator, changed_kernel
from fp4ref.evidence.faults.formulas import arguments, formula
from fp4ref.evidence.faults.gallery import GEMM, Fault, FormName
from fp4ref.evidence.faults.operands import operands
from fp4ref.evidence.faults.place import EXIT, places
from fp4ref.evidence.faults.small_program import FOLDER, run_program
from fp4ref.execution.runs import Run, run
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.node import Node
from fp4ref.hardware.order.race import Race
from fp4ref.trace import Trace


@dataclass(frozen=True, slots=True)
class Catch:
    """What a run of a mistake showed.

    Attributes
    ----------
    fault
        What the machine refused, or None.
    difference
        The first byte that is not the clean run's, or None.
    advisories
        What the run relied on, and how often.
    reviews
        What the PTX text leaves open.
    places
        Statements that the report names.
    compared
        Whether the hardware events were compared with the clean run's.
    trace
        Every event, up to the fault if there is one.
    """

    fault: HardwareFault | None = None
    difference: Difference | None = None
    advisories: Mapping[str, int] | None = None
    reviews: tuple[Race, ...] = ()
    places: tuple[str, ...] = ()
    compared: bool = False
    trace: Trace | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing was said."""
        said = self.fault or self.difference or self.advisories or self.reviews
        return not said

    def report(self) -> str:
        """Return what the machine or the comparison says."""
        if self.fault:
            where = [f"  at: {place}" for place in self.places[:1]]
            return "\n".join([str(self.fault), *where])
        if self.difference:
            return f"different from the clean run\n{self.difference}"
        if self.reviews:
            return "\n".join(map(str, self.reviews))
        if self.advisories:
            return "\n".join(f"{n} x {what}" for what, n in self.advisories.items())
        same = ", and every byte is the clean run's" if self.compared else ""
        return f"the run ends without a word{same}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        found: dict[str, Any] = {
            "caught": not self.silent,
            "report": self.report(),
            "places": list(self.places),
            "advisories": dict(self.advisories or {}),
            "reviews": [race.to_dict() for race in self.reviews],
        }
        if self.fault:
            found["fault"] = self.fault.to_dict()
        if self.difference:
            found["difference"] = self.difference.to_dict()
        return found


def run_twin(each: Fault, backend: FormName, schedule: str | int = "eager") -> Catch:
    """Run the same code without the mistake."""
    return _caught(each, backend, schedule, wrong=False)


def run_fault(each: Fault, backend: FormName, schedule: str | int = "eager") -> Catch:
    """Run a mistake in one of its forms.

    Raises
    ------
    InputError
        It has no such form, or NVRTC is not installed.
    """
    each.form(backend)
    return _caught(each, backend, schedule, wrong=True)


def _caught(
    each: Fault, backend: FormName, schedule: str | int, *, wrong: bool
) -> Catch:
    try:
        if each.subject != GEMM:
            change = each.form(backend).change if wrong else None
            machine = run_program(each.subject, backend, change, schedule)
            recorded = machine.recorder.trace if machine.recorder else None
            return Catch(advisories=dict(machine.advisories), trace=recorded)
        found = _run_gemm(each, backend, schedule, wrong=wrong)
    except HardwareFault as error:
        trace = error.trace if isinstance(error.trace, Trace) else None
        return Catch(error, places=_in_full(each, places(error)), trace=trace)
    clean = _clean(each, backend if wrong else "emulator")
    difference = compare(clean, found).first_difference
    named: tuple[str, ...] = ()
    if difference:
        event = difference.events[1] or difference.events[0]
        named = (event.source or event.kernel_source if event else EXIT,)
    reviews = tuple(race for race in found.races if race.severity == "review")
    if reviews and not difference:
        named = tuple(side.source for side in (reviews[0].first, reviews[0].second))
    named = _in_full(each, named)
    return Catch(
        None,
        difference,
        dict(found.advisories),
        reviews,
        named,
        compared=True,
        trace=found.trace,
    )


def _in_full(each: Fault, named: tuple[str, ...]) -> tuple[str, ...]:
    """Give places their whole path; compiled code knows the last part only."""
    found = []
    for place in named:
        if place == EXIT:
            found.append(place)
            continue
        file, _, line = place.rpartition(":")
        if file == "PTX":
            file = f"{FOLDER}/{each.subject}.ptx"
        elif file.endswith((".cu", ".cuh")):
            root = kernel_root()
            path = next((root / "kernel").rglob(file))
            file = path.relative_to(root).as_posix()
        found.append(f"{file}:{line}")
    return tuple(found)


def _run_gemm(
    each: Fault, backend: FormName, schedule: str | int, *, wrong: bool
) -> Run:
    """Run the GEMM of a row."""
    config = _config(each)
    changed: AbstractContextManager[None] = nullcontext()
    if wrong:
        change = each.form(backend).change
        changed = (
            changed_emulator(change)
            if backend == "emulator"
            else changed_kernel(change, config)
        )
    with changed:
        return run(**gemm_of(each), backend=backend, schedule=schedule, sms=each.sms)


def gemm_of(each: Fault) -> dict[str, Any]:
    """Return the operands and configuration of a row's GEMM, as `run` takes them."""
    config = _config(each)
    a, b = operands(each.shape, config.operands)
    m, n, _ = each.shape
    bias = None
    if config.epilogue.bias:
        bias = np.linspace(1, 2, n, dtype=np.float32)
    c, tree = None, config.epilogue.fusion
    if config.epilogue.c_format and (config.epilogue.beta or tree):
        c = np.linspace(-2, 2, m * n, dtype=np.float32).reshape(m, n)
    passed = arguments(tree, (1, m, n)) if isinstance(tree, Node) else None
    return {
        "a": a,
        "b": b,
        "c": c,
        "bias": bias,
        "arguments": passed,
        "config": config,
    }


def _config(each: Fault) -> GemmConfig:
    """Return the configuration of a row, which names its tree."""
    asked = dict(each.config)
    if "fusion" in asked:
        asked["fusion"] = formula(asked["fusion"], asked.get("c_format"))
    return GemmConfig.nvfp4(**asked)


def _clean(each: Fault, backend: FormName) -> Run:
    """Return the run without a mistake, which is made once."""
    config = tuple(sorted(each.config.items()))
    return _clean_run(each.shape, config, each.sms, backend)


@lru_cache(maxsize=32)
def _clean_run(
    shape: tuple[int, int, int],
    config: tuple[tuple[str, object], ...],
    sms: int,
    backend: FormName,
) -> Run:
    like = Fault(
        *("clean", "", (), "", "", "", "", GEMM), shape, dict(config), sms, forms={}
    )
    return _run_gemm(like, backend, "eager", wrong=False)


def disagreement(each: Fault, backend: FormName, found: Catch) -> str:
    """Say how a catch is not what the row promises; empty if it is."""
    form, report = each.form(backend), found.report()
    caught = form.caught
    if found.fault:
        what = type(found.fault).__name__
    elif caught.by == "review":
        what = found.reviews[0].failure.name if found.reviews else "nothing"
    elif caught.by == "advisory":
        what = next(iter(found.advisories or {}), "no advisory")
    else:
        what = str(found.difference.key) if found.difference else "nothing"
    if what != caught.what:
        return f"{what} instead of {caught.what}: {report}"
    if caught.says not in report:
        return f"{caught.says!r} is not in: {report}"
    if caught.by != "advisory" and form.place not in found.places:
        return f"at {found.places} instead of {form.place}: {report}"
    return ""
