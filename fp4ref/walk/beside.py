"""beside: the compiled kernel next to the emulator, as PTX and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from fp4ref.arguments import require_choice
from fp4ref.device.compile import CompileError
from fp4ref.device.diagnosis import why_not
from fp4ref.device.driver import DeviceError, find_gpu
from fp4ref.errors import InputError
from fp4ref.evidence.comparison import compare
from fp4ref.evidence.side_by_side import side_by_side
from fp4ref.execution.runs import BackendName, Run
from fp4ref.walk.outcome import KernelReport

Beside = Literal["auto", "emulator", "ptx", "device"]
"""What a walk runs beside the emulator, by the names of `fp4ref.run`'s backends:
nothing, the kernel's PTX, the kernel on a GPU; or the PTX, and a GPU where one can."""

INSTEAD = "The kernel's PTX ran on the emulated machine instead"


class Other(NamedTuple):
    """What ran beside the emulator, and the traced run of the PTX if there is one."""

    report: KernelReport
    ptx: Run | None


def check_beside(backend: Beside, *, whole: bool) -> None:
    """Refuse at once a walk beside which nothing can run as asked.

    Raises
    ------
    InputError
        An unknown name, or a GPU is asked for and cannot run the kernel.
    """
    require_choice(backend, "--backend", ("auto", "emulator", "ptx", "device"))
    if backend != "device":
        return
    reason = why_not(find_gpu())
    if not whole:
        reason = "a GPU runs the whole grid; leave out --tiles"
    if reason:
        raise InputError(
            f"--backend device: {reason.rstrip('.')}. --backend ptx runs the same "
            "kernel's code on the emulated machine"
        )


def run_beside(
    result: Run,
    run_on: Callable[[BackendName], Run],
    backend: Beside,
    *,
    whole: bool,
    lap: Callable[[str], None],
) -> Other | None:
    """Run the kernel beside `result`, the emulator's run, and compare.

    Parameters
    ----------
    run_on
        Runs the same problem on a backend.
    whole
        Whether every tile runs, which is all that a GPU can do.
    lap
        Takes the name of each part when it has ended.

    Raises
    ------
    DeviceError, CompileError
        A GPU is asked for by name, and the launch fails.
    """
    if backend == "emulator":
        return None
    if backend == "device":
        return Other(_on_card(KernelReport.of_card(), result, run_on, lap), None)
    ptx = run_on("ptx")
    report = KernelReport.of(
        str(ptx.meta.get("kernel", "")), compare(result, ptx), side_by_side(result, ptx)
    )
    lap("execute the kernel's PTX")
    if backend == "auto" and whole:
        report = _if_a_card_can(report, result, run_on, lap)
    return Other(report, ptx)


def _if_a_card_can(
    report: KernelReport,
    result: Run,
    run_on: Callable[[BackendName], Run],
    lap: Callable[[str], None],
) -> KernelReport:
    """Run the kernel on a GPU too, or say in a sentence why that did not happen."""
    reason = why_not(find_gpu())
    if not reason:
        try:
            return _on_card(report, result, run_on, lap)
        except (DeviceError, CompileError, InputError) as error:
            reason = str(error)
    return replace(report, no_gpu=f"{reason.rstrip('.')}. {INSTEAD}")


def _on_card(
    report: KernelReport,
    result: Run,
    run_on: Callable[[BackendName], Run],
    lap: Callable[[str], None],
) -> KernelReport:
    card = run_on("device")
    same = card.d.tobytes() == result.d.tobytes()
    if result.sfd is not None and card.sfd is not None:
        same &= card.sfd.tobytes() == result.sfd.tobytes()
    lap("run on the GPU")
    return replace(report, gpu=str(find_gpu()), gpu_ok=same)
