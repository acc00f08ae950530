"""epilogue: what CUTLASS's builder makes of an epilogue's types, value by value."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError
from fp4ref.gemm.epilogue_builder import (
    Epilogue,
    EpilogueLaunch,
    EpilogueRequest,
    build_epilogue,
)
from fp4ref.layout.int_tuple import notation


def _option(text: str) -> Any:
    return typer.Option(help=text, show_default=False)


Arch = Annotated[str, typer.Option(help="sm90 or sm100.")]
Tile = Annotated[
    str, typer.Option(help="M,N,K of the MMA; with a pair of CTAs the pair's.")
]
Cluster = Annotated[str, typer.Option(help="CTAs along M,N.")]
Operands = Annotated[
    str | None, _option("Format of A and B; NVFP4 on SM100, f16 on SM90.")
]
Accumulator = Annotated[str, typer.Option(help="f32, f16 or s32.")]
C = Annotated[str, typer.Option(help="C's element, or void.")]
D = Annotated[str, typer.Option(help="D's element, a block-scaled format, or void.")]
Layout = Annotated[str, typer.Option(help="row or column.")]
Alignment = Annotated[int | None, _option("Elements to which a row is aligned.")]
Subtile = Annotated[str | None, _option("M,N of a subtile; the builder picks one.")]
Schedule = Annotated[str, typer.Option(help="CUTLASS's name.")]
Grouped = Annotated[bool, typer.Option(help="A stride for each group.")]
Operation = Annotated[
    str | None, _option("CUTLASS's name of the fusion; a linear combination.")
]
Activation = Annotated[str | None, _option("relu, gelu, silu ...")]
Aux = Annotated[str | None, _option("Element of the auxiliary matrix; b1 is bits.")]
Callbacks = Annotated[
    str | None, _option("BYTES,ALIGNMENT of callbacks built already, for an operation.")
]
Problem = Annotated[
    str | None, _option("M,N,L of D: whether it can be implemented, and what it needs.")
]
Beta = Annotated[float, typer.Option(help="What C is multiplied by, with --problem.")]
Bias = Annotated[str | None, _option("Element of the bias.")]


def epilogue_command(
    arch: Arch = "sm100",
    tile: Tile = "128,128,256",
    cluster: Cluster = "1,1",
    operands: Operands = None,
    accumulator: Accumulator = "f32",
    c: C = "void",
    d: D = "f16",
    c_layout: Layout = "row",
    d_layout: Layout = "row",
    align_c: Alignment = None,
    align_d: Alignment = None,
    epilogue_tile: Subtile = None,
    schedule: Schedule = "auto",
    grouped: Grouped = False,
    operation: Operation = None,
    activation: Activation = None,
    aux: Aux = None,
    aux_layout: Layout = "row",
    bias: Bias = None,
    callbacks: Callbacks = None,
    sf_layout: Layout = "row",
    problem: Problem = None,
    beta: Beta = 0.0,
    as_json: Json = False,
) -> None:
    """Deduce a collective epilogue as CUTLASS's builder does, and say why."""
    asked = EpilogueRequest(
        arch=arch,
        tile=_numbers("tile", tile, 3),
        cluster=_numbers("cluster", cluster, 2),
        operands=operands,
        accumulator=accumulator,
        c=c,
        d=d,
        c_layout=c_layout,
        d_layout=d_layout,
        align_c=align_c,
        align_d=align_d,
        epilogue_tile=_numbers("epilogue-tile", epilogue_tile, 2),
        schedule=schedule,
        grouped=grouped,
        operation=operation,
        activation=activation,
        aux=aux,
        aux_layout=aux_layout,
        bias=bias,
        callbacks=_numbers("callbacks", callbacks, 2),
        sf_layout=sf_layout,
    )
    epilogue = build_epilogue(asked)
    extents = _numbers("problem", problem, 3)
    launch = EpilogueLaunch(epilogue, *extents, beta=beta) if extents else None
    if as_json:
        print_json(
            {"values": _json(epilogue)} | ({"launch": _facts(launch)} if launch else {})
        )
        return
    _print(Console(), epilogue)
    if launch:
        print("\n" + "\n".join(_sentences(launch)))


def _facts(launch: EpilogueLaunch) -> dict[str, object]:
    return {
        "can_implement": not launch.reasons,
        "reasons": launch.reasons,
        "workspace_nbytes": launch.workspace_nbytes,
        "is_C_load_needed": launch.is_c_load_needed,
        "is_producer_load_needed": launch.is_producer_load_needed,
    }


def _sentences(launch: EpilogueLaunch) -> list[str]:
    """Say what the host and the load warp find, with CUTLASS's names for it."""
    size = f"{launch.m} x {launch.n} x {launch.batches}"
    said = [f"{size} can be implemented (can_implement)."]
    if launch.reasons:
        said = [f"{size} cannot be implemented (can_implement):"]
        said += [f"  {reason}." for reason in launch.reasons]
    said.append(f"Workspace: {launch.workspace_nbytes:,} bytes (get_workspace_size).")
    if launch.is_producer_load_needed is None:
        return [*said, "What is loaded is for the ready callbacks to say."]
    work = "has" if launch.is_producer_load_needed else "has no"
    is_loaded = "is" if launch.is_c_load_needed else "is not"
    return [
        *said,
        f"With beta = {launch.beta:g} C {is_loaded} loaded (is_C_load_needed), and the "
        f"load warp {work} work (is_producer_load_needed).",
    ]


def _numbers(name: str, text: str | None, count: int) -> Any:
    """Read numbers with commas between them; None stays None."""
    if text is None:
        return None
    words = text.split(",")
    if len(words) != count or not all(w.isascii() and w.isdigit() for w in words):
        raise InputError(f"--{name} {text!r:.60}: {count} whole numbers, as 128,32")
    if max(map(len, words)) > 9:
        raise InputError(f"--{name} {text!r:.60}: far more than a tile has")
    return tuple(map(int, words))


def _text(value: object) -> str:
    """Write a shape as CuTe does."""
    return notation(value) if type(value) is tuple else str(value)


def _json(epilogue: Epilogue) -> dict[str, dict[str, object]]:
    return {
        name: {
            "value": each.value if isinstance(each.value, int) else _text(each.value),
            "why": each.sentence,
            "source": each.source,
        }
        for name, each in epilogue.why.items()
    }


def _print(console: Console, epilogue: Epilogue) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("value", "", "why"):
        table.add_column(heading, overflow="fold")
    for name, each in epilogue.why.items():
        value = f"{each.value:,}" if type(each.value) is int else _text(each.value)
        table.add_row(name, value, f"{each.sentence} ({each.source})")
    console.print(table, highlight=False, markup=False)
