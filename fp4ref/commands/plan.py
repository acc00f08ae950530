"""plan: every number of a configuration, with the reason and its source."""

from __future__ import annotations

from ast import literal_eval
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError
from fp4ref.gemm.config import FIELDS, GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.numerics import ScaleFormat

TABLES = ("warps", "rings", "buffers", "smem", "tmem")
"""Values that are tables, and are printed as such."""


def plan_command(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            help="What is asked, for example tile_n=64 d_format=bf16 stages=3.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[
        str | None, typer.Option(help="Start from CUTLASS example 72b.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what follows from a configuration, and why each value is what it is."""
    if example not in (None, "72b"):
        raise InputError(f"example {example!r}: known is 72b", gap="cutlass-examples")
    start = GemmConfig() if example is None else GemmConfig.example_72b()
    p = plan(start.replace(**_asked(settings or [])))
    if as_json:
        print_json(_json(p))
    else:
        _print(Console(), p)


def _asked(settings: list[str]) -> dict[str, Any]:
    """Read ``name=value`` words; a value is a Python literal, or a word."""
    asked: dict[str, Any] = {}
    for word in settings:
        name, equals, text = word.partition("=")
        if name == "alpha":
            raise InputError(
                f"{word!r:.60}: alpha is an argument of the launch, "
                "fp4ref.run(..., alpha=...), and nothing that is planned"
            )
        if not equals or name not in FIELDS:
            raise InputError(
                f"{word!r:.60}: write name=value; names are {', '.join(sorted(FIELDS))}"
            )
        try:
            asked[name] = literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            asked[name] = text
        if name == "sfd_format" and text.upper() in ScaleFormat.__members__:
            asked[name] = ScaleFormat[text.upper()]
    return asked


def _json(p: Plan) -> dict[str, Any]:
    why = {
        name: {
            "value": each.value if isinstance(each.value, int) else str(each.value),
            "why": each.sentence,
            "source": each.source,
        }
        for name, each in p.why.items()
        if name not in TABLES
    }
    rings = [
        {
            "name": ring.name,
            "stages": ring.stages,
            "used": ring.used,
            "full": ring.full.count,
            "empty": ring.empty.count if ring.empty else None,
        }
        for ring in p.rings
    ]
    smem = {**p.smem, "end": p.smem.end}
    return {"values": why, "rings": rings, "smem": smem}


def _shown(value: Any) -> str:
    if type(value) is int:
        return f"{value:,}"
    return value.name if isinstance(value, Enum) else str(value)


def _print(console: Console, p: Plan) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("value", "", "why"):
        table.add_column(heading, overflow="fold")
    for name, each in p.why.items():
        if name not in TABLES:
            value = _shown(each.value)
            table.add_row(name, value, f"{each.sentence} ({each.source})")
    console.print(table)
    rings = Table(box=None, pad_edge=False)
    for heading in ("ring", "stages", "full by", "empty by", "offset"):
        rings.add_column(heading, overflow="fold")
    for ring in p.rings:
        empty = f"{ring.empty.count} {ring.empty.by}" if ring.empty else "never"
        name = ring.name if ring.used else f"{ring.name} (not used)"
        at = p.smem[next(ring.parts())[0]]
        full = f"{ring.full.count} {ring.full.by}"
        rings.add_row(name, str(ring.stages), full, empty, f"{at:,}")
    console.print(rings)
    console.print(f"{p.smem.end:,} bytes of shared memory, {p.tmem.end} TMEM columns")
