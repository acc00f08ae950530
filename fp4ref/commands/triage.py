"""triage: a wrong D beside its inputs: which usual mistake makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from fp4ref.arguments import require_choice
from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError
from fp4ref.evidence.triage import triage
from fp4ref.evidence.triage.dump import Convention, read_dump
from fp4ref.gemm.config import GemmConfig
from fp4ref.layout.scale_layouts import ATOMS, ScaleLayout


def triage_command(
    dump: Annotated[
        Path,
        typer.Argument(
            help="An .npz, or a folder of .npy files: a (or a_packed), sfa, b (or "
            "b_packed), sfb, d; and what there is of sfd, c, bias, alpha, global_a, "
            "global_b."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            help="Format of D where its type does not tell: f32, bf16, f16, e4m3, "
            "e5m2 or nvfp4.",
            show_default=False,
        ),
    ] = None,
    operands: Annotated[str, typer.Option(help="Format of A and B.")] = "nvfp4",
    layout: Annotated[
        str, typer.Option(help="Layout of flat sfa and sfb: row_major, 128x4 or 8x4.")
    ] = "row_major",
    convention: Annotated[
        str | None,
        typer.Option(
            help="What global_a and global_b are: encode (448 * 6 / amax) or decode.",
            show_default=False,
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="Factor of C.")] = 0.0,
    activation: Annotated[
        str | None, typer.Option(help="relu, gelu or silu.", show_default=False)
    ] = None,
    norm: Annotated[float, typer.Option(help="Norm constant of an nvfp4 D.")] = 1.0,
    splits: Annotated[int, typer.Option(help="Slices of K.")] = 1,
    as_json: Json = False,
) -> None:
    """Name the usual mistake that makes a wrong D."""
    require_choice(layout, "--layout", tuple(ATOMS), gap="scale-layout")
    if convention is not None:
        require_choice(convention, "--convention", ("encode", "decode"))
    read = read_dump(
        dump,
        operands,
        cast("ScaleLayout", layout),
        cast("Convention | None", convention),
    )
    asked: dict[str, Any] = {
        "beta": beta,
        "activation": activation,
        "norm_constant": norm,
        "splits": splits,
        "bias": "bias" in read.beside,
    }
    name = output or _format_of(read.d, "sfd" in read.beside)
    config = GemmConfig.nvfp4(d_format=name, **asked)
    found = triage(read.a, read.b, read.d, config=config, **read.beside)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.report())
    raise typer.Exit(0 if found.ok else 1)


def _format_of(d: Any, has_scales: bool) -> str:
    """Return the format that D's type tells."""
    found = {"float32": "f32", "float16": "f16"}.get(d.dtype.name)
    if has_scales and d.dtype.name == "uint8":
        found = "nvfp4"
    if found is None:
        raise InputError(
            f"d is {d.dtype}, which does not tell its format; say --output bf16, e4m3, "
            "e5m2 or nvfp4"
        )
    return found
