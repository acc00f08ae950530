"""walk: a real matrix product through the kernel, with every bit checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console

from fp4ref.commands.checkpoints import list_weights
from fp4ref.commands.options import Force, Json, Sms
from fp4ref.commands.printing import print_json, progress_bar
from fp4ref.commands.targets import MADE_BY_WALK, check_outputs, trace_path
from fp4ref.errors import InputError
from fp4ref.files.whole_file import write_text
from fp4ref.trace import Trace
from fp4ref.viz import play
from fp4ref.walk import (
    DEFAULT_SCHEDULE,
    Beside,
    Problem,
    Walk,
    checkpoint_problem,
    load_problem,
    make_config,
    random_problem,
    report,
    walk,
)

Output = Annotated[
    str | None,
    typer.Option(
        help="f32, bf16, f16, e4m3, e5m2 or nvfp4. Default: f32.", show_default=False
    ),
]
Example = Annotated[
    str | None, typer.Option(help="Use the configuration of CUTLASS example 72b.")
]
Tiles = Annotated[
    list[str] | None,
    typer.Option(help="Run only this tile, m,n. May be repeated.", show_default=False),
]
Schedule = Annotated[
    str,
    typer.Option(help="When work lands: eager, late, timed or a seed."),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        help="What runs beside the emulator: ptx (the compiled kernel on the same "
        "machine), device (the kernel on a GPU), emulator (nothing), or auto: ptx, and "
        "a GPU too if one can.",
    ),
]
NoKernel = Annotated[
    bool, typer.Option("--no-kernel", help="The same as --backend emulator.")
]
TraceFile = Annotated[Path, typer.Option(help="Where to leave the trace.")]
Perfetto = Annotated[
    Path | None, typer.Option(help="Also write the trace for ui.perfetto.dev.")
]
Svg = Annotated[Path | None, typer.Option(help="Also write the report as a picture.")]
PlayerPage = Annotated[
    Path | None, typer.Option(help="Also write a web page to step through the trace.")
]
Input = Annotated[
    Path | None,
    typer.Argument(
        help="An .npz with x (M, K) and w (N, K). Default: a layer of a real "
        "transformer.",
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(help="Random matrices instead, for example 512x256x1024."),
]
CheckpointPath = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="A safetensors file, index of shards, or folder. Without --tensor, list "
        "its weights.",
    ),
]
Tensor = Annotated[str | None, typer.Option(help="The weight to take as w.")]
Activations = Annotated[
    Path | None, typer.Option(help="An .npy with x (M, K) for the checkpoint's weight.")
]
Seed = Annotated[int, typer.Option(help="Seed of the random matrices, 0 or more.")]


def walk_command(
    file: Input = None,
    size: Size = None,
    seed: Seed = 0,
    checkpoint: CheckpointPath = None,
    tensor: Tensor = None,
    activations: Activations = None,
    output: Output = None,
    example: Example = None,
    tiles: Tiles = None,
    sms: Sms = 2,
    schedule: Schedule = DEFAULT_SCHEDULE,
    backend: Backend = "auto",
    no_kernel: NoKernel = False,
    trace: TraceFile = Path("walk"),
    perfetto: Perfetto = None,
    svg: Svg = None,
    player: PlayerPage = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a real matrix product through the kernel and check every bit."""
    if (file is not None) + bool(size) + (checkpoint is not None) > 1:
        raise InputError("give one of a file, --size and --checkpoint, not both")
    if checkpoint is None and (tensor or activations):
        raise InputError("--tensor and --activations go with --checkpoint")
    if checkpoint is not None and tensor is None:
        list_weights(checkpoint, as_json)
        return
    if example and output:
        raise InputError("give --output or --example, whose output is NVFP4, not both")
    beside = _beside(backend, no_kernel)
    path = trace_path(trace)
    check_outputs([path, perfetto, svg, player], file or checkpoint, force)
    if checkpoint is not None and tensor is not None:
        problem = checkpoint_problem(checkpoint, tensor, activations)
    else:
        problem = _problem(file, size, seed)
    chosen = _tiles(tiles)
    waiting = "preparing (the first run compiles the MMA model)"
    with progress_bar("tiles", waiting) as report_progress:
        done = walk(
            problem,
            config=make_config(output or "f32", example),
            sms=sms,
            tiles=chosen,
            schedule=schedule,
            backend=beside,
            progress=report_progress,
        )
    recorded = done.run.trace
    assert recorded is not None
    recorded.meta["made_by"] = MADE_BY_WALK
    recorded.save(path)
    done = done._replace(report=replace(done.report, trace_file=str(path)))
    _write_views(done, recorded, perfetto, svg, player)
    if as_json:
        print_json(done.report.to_dict())
    else:
        report.render(done.report, recorded, Console())
    raise typer.Exit(0 if done.report.ok else 1)


def _beside(backend: str, no_kernel: bool) -> Beside:
    """Return what runs beside the emulator."""
    if no_kernel and backend not in ("auto", "emulator"):
        raise InputError(f"give --no-kernel or --backend {backend:.20}, not both")
    return cast("Beside", "emulator" if no_kernel else backend)


def _problem(file: Path | None, size: str | None, seed: int) -> Problem:
    """Return the matrices that the arguments name."""
    if not size:
        return load_problem(file)
    hint = "give MxNxK, for example 512x256x1024"
    m, n, k = _integers(size, "x", (3,), hint)
    return random_problem(m, n, k, seed)


def _tiles(tiles: list[str] | None) -> list[tuple[int, ...]] | None:
    """Return the tiles to run; None for all."""
    if not tiles:
        return None
    hint = "give a tile as m,n, for example 5,0"
    return [tuple(_integers(t, ",", (2, 3), hint)) for t in tiles]


def _integers(
    text: str, separator: str, counts: tuple[int, ...], hint: str
) -> list[int]:
    """Return the whole numbers in a text, if there are as many as wanted."""
    try:
        numbers = [int(part) for part in text.split(separator)]
    except ValueError:
        numbers = []
    if len(numbers) not in counts:
        raise InputError(f"{text[:80]!r}: {hint}")
    return numbers


def _write_views(
    done: Walk,
    recorded: Trace,
    perfetto: Path | None,
    svg: Path | None,
    player: Path | None,
) -> None:
    """Write what shows the trace, where a file is named."""
    if perfetto:
        write_text(perfetto, json.dumps(recorded.to_perfetto()))
    if svg:
        write_text(svg, report.to_svg(done.report, recorded))
    if player:
        title = f"fp4ref walk: {done.report.title}"
        write_text(player, play(done.run, done.kernel, title=title).page())
