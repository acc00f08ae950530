"""check: is somebody's kernel right, where does it race or hang, and at which line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp4ref.arguments import require_choice, require_integer, require_list
from fp4ref.errors import InputError, NotModelled
from fp4ref.evidence.check.budget import Budget
from fp4ref.evidence.check.buffer_contents import disagreements, mismatches, of_buffers
from fp4ref.evidence.check.finding import Finding, Place, as_advisory, merged
from fp4ref.evidence.check.kernel_text import KernelText, read_kernel
from fp4ref.evidence.check.launch import Launch
from fp4ref.evidence.check.launch_file import read_launch
from fp4ref.evidence.check.one_run import Checked, Outcome
from fp4ref.evidence.check.result import Check, Unsupported, first_contents
from fp4ref.hardware.machine import Machine, check_sms
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, PtxError
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate

SCHEDULES: tuple[str | int, ...] = ("eager", "late", 1, 2)
"""Landing at once, as late as can be, and two mixtures."""

ORDERINGS: tuple[Ordering, ...] = ("ptx", "shipped")
STEPS = 2_000_000
SECONDS = 600.0


def check(
    kernel: Any,
    launch: Launch | str | Path,
    *,
    schedules: Sequence[str | int] = SCHEDULES,
    orderings: Sequence[Ordering] = ORDERINGS,
    steps: int = STEPS,
    seconds: float = SECONDS,
    trace: bool = False,
) -> Check:
    """Run a kernel under several schedules, and say what is wrong with it.

    Races, deadlocks, misuse of TMEM and descriptors, reads of what nothing wrote, and
    results that are not as expected or depend on the schedule.

    Parameters
    ----------
    kernel
        PTX: a path, the text, or what Triton or CuTe DSL compiled.
    launch
        A `Launch`, or the path of a launch file.
    schedules
        ``"eager"``, ``"late"``, ``"timed"`` and integer seeds.
    orderings
        ``"ptx"``, ``"shipped"``, or both: then what only the PTX text forbids is an
        advisory, and with ``"ptx"`` alone a fault.
    steps
        Most steps of one run: of the machine, and branches backwards.
    seconds
        Most processor time of all runs.
    trace
        Record a run, for the player: the first that shows an error, else the first.

    Raises
    ------
    InputError
        The text is no PTX for sm_100, or the launch does not fit it.
    """
    wanted = _schedules(schedules)
    orders: list[Ordering] = [
        require_choice(ordering, "orderings", ORDERINGS)
        for ordering in require_list(orderings, "orderings", "'ptx' and 'shipped'")
    ]
    if not orders:
        raise InputError("orderings: name one at least")
    require_choice(trace, "trace", (True, False))
    budget = Budget(require_integer(steps, "steps", 1), _positive(seconds, "seconds"))
    text = read_kernel(kernel)
    if not isinstance(launch, Launch):
        if not isinstance(launch, str | Path):
            raise InputError(
                f"launch is {type(launch).__name__}; need a Launch, or the path of a "
                "launch file"
            )
        launch = read_launch(launch)
    check_sms(launch.machine_sms)
    try:
        program = text.program(launch.entry)
        launch.check(program)
        _translate(program, launch, text.name)
        checked = Checked(text, program, launch, budget)
        outcomes = _runs(checked, wanted, orders)
        found = _findings(launch, outcomes)
        recorded = _record(checked, wanted, orders, outcomes) if trace else None
    except NotModelled as error:
        return not_modelled(text, launch.entry, error)
    contents = first_contents(outcomes)
    return Check(
        text.name,
        program.entry.name,
        tuple(sorted(found, key=lambda each: each.ok)),
        tuple(outcomes),
        outputs=of_buffers(launch, contents) if contents else None,
        printed=tuple(outcomes[0].printed),
        trace=recorded.trace if recorded else None,
    )


def _schedules(schedules: Sequence[str | int]) -> list[str | int]:
    found = require_list(schedules, "schedules", "'eager', 'late', 'timed' and seeds")
    for each in found:
        try:
            make_schedule(each)
        except InputError as error:
            raise InputError(f"schedules: {error}") from None
    if not found:
        raise InputError("schedules: name one at least")
    return list(dict.fromkeys(found))


def _positive(value: object, name: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 < value < float("inf"):  # type: ignore[operator]
        raise InputError(f"{name}: {value!r:.60}; a positive number")
    return float(value)  # type: ignore[arg-type]


def _translate(program: Program, launch: Launch, name: str) -> None:
    """Refuse at once everything in the text that cannot run."""
    loaded = load(
        Machine(launch.machine_sms),
        program,
        bytes(program.param_nbytes),
        launch.block,
        launch.smem_nbytes,
    )
    try:
        translate(loaded)
    except PtxError as error:
        raise InputError(f"{name}: {error}") from None


def not_modelled(text: KernelText, entry: str | None, error: NotModelled) -> Check:
    """Return what is said of a kernel that cannot run."""
    return Check(text.name, entry or "", (), unsupported=_forms(error, text))


def _forms(error: NotModelled, text: KernelText) -> tuple[Unsupported, ...]:
    """What a refusal names; one made while it ran names its instruction."""
    if error.forms:
        return tuple(Unsupported.of(form) for form in error.forms)
    place = Place.of(error.statement, text)
    lines = (place.ptx_line,) if place.ptx_line else ()
    opcode = place.text or place.source or error.what
    return (Unsupported(opcode, lines, error.remedy, f"{error.gap}: {error.what}"),)


def _runs(
    checked: Checked, schedules: Sequence[str | int], orderings: Sequence[Ordering]
) -> list[Outcome]:
    """Run every schedule; ``shipped`` only where it can differ from ``ptx``."""
    outcomes: list[Outcome] = []
    order = sorted(orderings)
    for schedule in schedules:
        before: Outcome | None = None
        for ordering in order:
            if before is not None and before.ended and before.keeps_to_the_text:
                # Nothing was asked of the ordering, so the other one changes nothing.
                outcomes.append(
                    replace(before, ordering=ordering, findings=[], same_as=before.name)
                )
                continue
            before = checked.run(schedule, ordering, False)
            outcomes.append(before)
            if any(each.kind == "budget" for each in before.findings):
                return outcomes
    return outcomes


def _findings(launch: Launch, outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    """Put what all runs showed together, each thing once."""
    ran = [each for each in outcomes if not each.same_as]
    shipped: dict[str, set[object]] = {
        each.schedule: {finding.key for finding in each.findings}
        for each in ran
        if each.ordering == "shipped"
    }
    found: list[Finding] = []
    for each in ran:
        also = shipped.get(each.schedule) if each.ordering == "ptx" else None
        for finding in each.findings:
            only_text = also is not None and finding.key not in also
            found.append(as_advisory(finding) if only_text else finding)
        found += mismatches(launch, each)
    if not any(each.kind == "mismatch" for each in found):
        found += disagreements(launch, ran)
    return merged(found)


def _record(
    checked: Checked,
    schedules: Sequence[str | int],
    orderings: Sequence[Ordering],
    outcomes: Sequence[Outcome],
) -> Outcome:
    """Run the run that shows most once more, with a recorder."""
    ran = [each for each in outcomes if not each.same_as]
    chosen = next((each for each in ran if not each.clean), ran[0])
    names = {str(make_schedule(each).name): each for each in schedules}
    return checked.run(names[chosen.schedule], chosen.ordering, True)


__all__ = ["KernelText", "check"]
