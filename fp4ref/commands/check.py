"""check: somebody's PTX: is it right, where does it race or hang, and at which line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from fp4ref.commands.options import Force, Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError, NotModelled
from fp4ref.evidence.check import (
    EXIT_STATUS,
    ORDERINGS,
    SCHEDULES,
    Check,
    Launch,
    check,
    launch_template,
    read_launch,
)
from fp4ref.evidence.check.check import SECONDS, STEPS, not_modelled
from fp4ref.evidence.check.kernel_text import KernelText, read_kernel
from fp4ref.evidence.check.result import refusal
from fp4ref.files.whole_file import check_target, replacing, write_text
from fp4ref.hardware.machine_state import Ordering
from fp4ref.viz import play

ALL_SCHEDULES = ",".join(map(str, SCHEDULES))
BOTH_ORDERINGS = ",".join(ORDERINGS)

Kernel = Annotated[Path, typer.Argument(help="The PTX of a kernel, for sm_100a.")]
LaunchFile = Annotated[
    Path | None,
    typer.Option(help="A launch file. Default: KERNEL.toml beside the PTX."),
]
Init = Annotated[bool, typer.Option("--init", help="Write a launch file, and end.")]
Entry = Annotated[str | None, typer.Option(help="For --init: which entry, of several.")]
Schedules = Annotated[
    str,
    typer.Option("--schedule", help="eager, late, timed and seeds, with commas."),
]
Orderings = Annotated[
    str, typer.Option("--ordering", help="ptx, shipped, or both with a comma.")
]
Steps = Annotated[int, typer.Option(help="Most steps of one run.")]
Seconds = Annotated[float, typer.Option(help="Most processor time of all runs.")]
PlayerPage = Annotated[
    Path | None, typer.Option(help="Also write a web page to step through a run.")
]
Full = Annotated[bool, typer.Option("--full", help="Every word of the advisories too.")]


def check_command(
    kernel: Kernel,
    launch: LaunchFile = None,
    init: Init = False,
    entry: Entry = None,
    schedule: Schedules = ALL_SCHEDULES,
    ordering: Orderings = BOTH_ORDERINGS,
    steps: Steps = STEPS,
    seconds: Seconds = SECONDS,
    player: PlayerPage = None,
    full: Full = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run your kernel's PTX under several schedules: races, hangs, wrong results.

    Exit status: 0 clean, 1 a fault or a mismatch, 2 bad input, 3 unsupported.
    """
    try:
        text = read_kernel(kernel)
        path = launch or kernel.with_suffix(".toml")
        if init:
            found = _write_template(text, entry, path, force)
            if found is not None:
                _say(found, as_json, full)
            return
        if entry:
            raise InputError("--entry goes with --init; a launch file has its own")
        read = _read(path)
        outputs = [b.out for b in read.buffers.values() if b.out is not None]
        _check_outputs([*outputs, player], [kernel, path], force)
        found = check(
            text,
            read,
            schedules=schedule.split(","),
            orderings=cast("list[Ordering]", ordering.split(",")),
            steps=steps,
            seconds=seconds,
            trace=player is not None,
        )
    except InputError as error:
        if not as_json:
            raise
        print_json(refusal(str(kernel), error))
        raise typer.Exit(EXIT_STATUS["bad input"]) from None
    _write(found, read, player)
    _say(found, as_json, full)


def _say(found: Check, as_json: bool, full: bool) -> None:
    """Print what was found, and end."""
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.report(full=full))
    raise typer.Exit(found.exit_status)


def _read(path: Path) -> Launch:
    if not path.exists():
        raise InputError(
            f"{path}: no such launch file; --init writes one from the PTX's entry"
        )
    return read_launch(path)


def _write_template(
    text: KernelText, entry: str | None, path: Path, force: bool
) -> Check | None:
    """Write a launch file, unless something in the text cannot run."""
    _check_outputs([path], [Path(text.name)], force)
    try:
        template = launch_template(text, entry)
    except NotModelled as error:
        return not_modelled(text, entry, error)
    write_text(path, template)
    print(f"{path}: fill in what its comments ask for, then run fp4ref check again")
    return None


def _check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path], force: bool
) -> None:
    """Refuse what would overwrite something before anything runs."""
    taken = {each.resolve() for each in inputs}
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{path} is named twice, or is the input; name another")
        taken.add(path.resolve())
        check_target(path)
        if path.exists() and not force:
            raise InputError(f"{path} exists, and is yours; --force overwrites it")


def _write(found: Check, launch: Launch, player: Path | None) -> None:
    """Write the buffers that have a file, and the player."""
    for name, buffer in launch.buffers.items():
        if buffer.out is not None and found.outputs is not None:
            _write_array(buffer.out, found.outputs[name])
    if player is not None and found.trace is not None:
        title = f"fp4ref check: {found.entry}"
        if not len(found.trace):
            raise InputError(f"{player}: the run has no event to show; not written")
        # A run that stopped is shown where it stopped.
        step = 0 if found.ok else len(found.trace) - 1
        write_text(player, play(found.trace, title=title, step=step).page())


def _write_array(path: Path, array: Any) -> None:
    """Write an .npy; NumPy has no bfloat16, whose bits are written."""
    if array.dtype.kind == "V":
        array = array.view(np.uint16)
    with replacing(path) as opened:
        np.save(opened, array, allow_pickle=False)
