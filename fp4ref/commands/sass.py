"""sass: registers, spills and instructions of the compiled kernel."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.cuda_kernel.build import packaged, packaged_configs
from fp4ref.cuda_kernel.sass import figures, mandatory
from fp4ref.cutlass.examples import assemble_example
from fp4ref.gemm.plan import plan


def sass_command(
    cutlass: Annotated[
        bool, typer.Option(help="Also build and assemble CUTLASS 72b.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show registers, spills and the MMA warp's loop of the compiled kernel."""
    packed = json.loads(packaged("figures.json"))
    rows = {
        f"fp4ref {name}": facts
        for name, facts in packed.items()
        if isinstance(facts, dict)
    }
    if cutlass:
        found = figures(assemble_example("72b"))
        rows["CUTLASS 72b"] = {
            "registers": found.registers,
            "spill_instructions": found.spill_instructions,
            "instructions": found.instructions,
            "per_k_tile": found.per_k_tile,
        }
    if as_json:
        print_json({"nvrtc": packed["nvrtc"], "kernels": rows})
        return
    table = Table(box=None)
    columns = ("registers", "spill instructions", "instructions", "per k-tile")
    table.add_column("kernel")
    for column in columns:
        table.add_column(column, justify="right")
    for name, facts in rows.items():
        values = (facts[c.replace(" ", "_").replace("-", "_")] for c in columns)
        table.add_row(name, *(f"{v:g}" for v in values))
    Console().print(table)
    print(
        f"Compiled by NVRTC {packed['nvrtc']}. Per k-tile: what the MMA warp executes "
        f"in steady state; {_mandatory()}."
    )


def _mandatory() -> str:
    """Say what the plans of the packaged kernels need; once if it is the same."""
    said = []
    for config in packaged_configs().values():
        needed = mandatory(plan(config))
        names = ", ".join(f"{count} {name}" for name, count in needed.items())
        said.append(f"{sum(needed.values())} are mandatory ({names})")
    return " or ".join(dict.fromkeys(said))
