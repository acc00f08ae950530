"""sass: registers, spills and instructions of the compiled kernel."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.cuda_kernel.build import packaged, packaged_configs
from fp4ref.cuda_kernel.mma_loop import WHY, above, compiled_figures
from fp4ref.cuda_kernel.sass import SassFigures, figures, mandatory
from fp4ref.cutlass.examples import assemble_example
from fp4ref.device.compile import nvrtc_version
from fp4ref.gemm.ladder import ladder
from fp4ref.gemm.plan import plan
from fp4ref.lab.compiled import compiled_tables

COLUMNS = ("registers", "spill_instructions", "instructions", "per_k_tile")


def sass_command(
    cutlass: Annotated[
        bool, typer.Option(help="Also build and assemble CUTLASS 72b.")
    ] = False,
    family: Annotated[
        bool, typer.Option(help="Compile each step of the ladder instead.")
    ] = False,
    census: Annotated[
        bool,
        typer.Option(
            help="Count every instruction by warp, loop and kind instead, beside "
            "CUTLASS 72b; and list the MMA loop line by line."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show registers, spills and the MMA warp's loop of the compiled kernel."""
    if census:
        _census(as_json)
        return
    if family:
        _family(as_json)
        return
    packed = json.loads(packaged("figures.json"))
    rows = {
        f"fp4ref {name}": facts
        for name, facts in packed.items()
        if isinstance(facts, dict)
    }
    if cutlass:
        rows["CUTLASS 72b"] = _facts(figures(assemble_example("72b")))
    if as_json:
        print_json({"nvrtc": packed["nvrtc"], "kernels": rows})
        return
    Console().print(_table(rows))
    print(
        f"Compiled by NVRTC {packed['nvrtc']}. Per k-tile: what the MMA warp executes "
        f"in steady state; {_mandatory()}."
    )


def _facts(found: SassFigures) -> dict[str, Any]:
    return {name: getattr(found, name) for name in COLUMNS}


def _table(rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=None)
    table.add_column("kernel")
    for name in COLUMNS:
        said = name.replace("_k_tile", " k-tile").replace("_", " ")
        table.add_column(said, justify="right")
    for name, facts in rows.items():
        table.add_row(name, *(f"{facts[column]:g}" for column in COLUMNS))
    return table


def _family(as_json: bool) -> None:
    """Compile the ladder, and explain what a k-tile costs above its first step."""
    plain = compiled_figures(ladder()[0].config)
    found = {each.name: compiled_figures(each.config) for each in ladder()}
    more = {name: above(each, plain) for name, each in found.items()}
    rows = {name: _facts(each) for name, each in found.items()}
    nvrtc = nvrtc_version()
    if as_json:
        kernels = {
            name: facts | {"above_plain": more[name]} for name, facts in rows.items()
        }
        print_json({"nvrtc": nvrtc, "kernels": kernels, "why": dict(WHY)})
        return
    console = Console()
    console.print(_table(rows))
    console.print("\nFor a k-tile, above the plain kernel:", highlight=False)
    table = Table(box=None, show_header=False)
    for name, counts in more.items():
        if counts:
            said = ", ".join(f"{count:g} {which}" for which, count in counts.items())
            table.add_row(name, said)
    for which in dict.fromkeys(which for counts in more.values() for which in counts):
        table.add_row(which, WHY.get(which, ""))
    console.print(table, highlight=False)
    print(f"Compiled by NVRTC {nvrtc}. A group of k-tiles has one commit.")


def _census(as_json: bool) -> None:
    """Print the laboratory's tables of what was compiled."""
    found = compiled_tables()
    if as_json:
        print_json([table.to_dict() for table in found])
        return
    console = Console()
    for table in found:
        console.print(table.title, style="bold", highlight=False, markup=False)
        console.print(table.note, highlight=False, markup=False)
        print_table(console, table.headings, table.cells)
        console.print()


def _mandatory() -> str:
    """Say what the plans of the packaged kernels need; once if it is the same."""
    said = []
    for config in packaged_configs().values():
        needed = mandatory(plan(config))
        names = ", ".join(f"{count} {name}" for name, count in needed.items())
        said.append(f"{sum(needed.values())} are mandatory ({names})")
    return " or ".join(dict.fromkeys(said))
