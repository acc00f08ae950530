"""compiled_003: what NVRTC and ptxas make of document 003's kernel and its variants.

The figures are in ``fp4ref/data/lab_compiled_003.json``, so that the laboratory needs
no compiler; ``python -m fp4ref.lab.compiled_003`` makes them anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from fp4ref.cuda_kernel.build import compile_kernel, nvrtc_version
from fp4ref.cuda_kernel.sass import disassemble, figures
from fp4ref.errors import ConfigError
from fp4ref.gemm.plan import Plan, plan
from fp4ref.lab.document_003 import REFUSED, VARIANTS, variant
from fp4ref.lab.table import COMPILED, Table

FILE: Final = Path(__file__).parents[1] / "data" / "lab_compiled_003.json"


@dataclass(frozen=True, slots=True)
class Compiled:
    """Figures of one variant.

    Attributes
    ----------
    instructions
        Of the whole kernel.
    per_k_tile
        That the MMA warp executes for a k-tile.
    """

    registers: int
    spill_instructions: int
    instructions: int
    per_k_tile: float


def compiled(name: str) -> Compiled:
    """Compile a variant and count.

    Raises
    ------
    CompileError
        NVRTC or nvdisasm is not installed.
    """
    config = variant(name)
    cubin = compile_kernel(config).cubin
    found = figures(cubin, disassemble(cubin), k_group=plan(config).k_group)
    return Compiled(
        found.registers, found.spill_instructions, found.instructions, found.per_k_tile
    )


@cache
def recorded() -> tuple[str, dict[str, Compiled]]:
    """Return the compiler, and the figures of every variant."""
    text = resources.files("fp4ref.data").joinpath(FILE.name).read_text("utf-8")
    read = json.loads(text)
    return read["nvrtc"], {
        name: Compiled(**row) for name, row in read["variants"].items()
    }


def table() -> Table:
    """Return the variants with their memory, threads and compiled figures."""
    nvrtc, figures_of = recorded()
    rows = [_row(name, figures_of[name]) for name in VARIANTS]
    rows += [_refused(name) for name in REFUSED]
    cells = tuple(tuple(_cell(row[key]) for key in _KEYS) for row in rows)
    note = (
        "Bytes of the staging and of all shared memory. Registers, spills and "
        f"instructions are counted in what NVRTC {nvrtc} made for sm_100a; the "
        "document's own are of its own source. Refused by the plan: "
        + " ".join(f"{name}: {_refusal(name)}." for name in REFUSED)
    )
    headings = ("variant", "warps", "staging", "SMEM", "registers", "spills", "SASS")
    title = "Document 003's kernel and its variants"
    return Table(
        "kernel_003", title, COMPILED, note, headings, tuple(cells), tuple(rows)
    )


_KEYS = (
    *("variant", "warps", "staging_nbytes", "smem_nbytes"),
    *("registers", "spill_instructions", "instructions"),
)


def _row(name: str, found: Compiled) -> dict[str, Any]:
    planned: Plan = plan(variant(name))
    return {
        "variant": name,
        "warps": planned.threads // planned.warp_threads,
        "stages": planned.mainloop_stages,
        "staging_nbytes": planned.epilogue_nbytes,
        "smem_nbytes": planned.smem.end,
        "registers": found.registers,
        "spill_instructions": found.spill_instructions,
        "instructions": found.instructions,
        "per_k_tile": found.per_k_tile,
        "refused": None,
    }


def _refused(name: str) -> dict[str, Any]:
    nothing = dict.fromkeys((*_KEYS, "stages", "per_k_tile"))
    return {**nothing, "variant": name, "refused": _refusal(name)}


def _refusal(name: str) -> str:
    """Return what the plan says against a variant."""
    try:
        plan(variant(name))
    except ConfigError as error:
        return str(error).rstrip(".")
    raise AssertionError(f"{name} is allowed")


def _cell(value: Any) -> str:
    if value is None:
        return "refused"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Compile every variant and write the figures."""
    rows = {}
    for name in VARIANTS:
        found = compiled(name)
        rows[name] = {each: getattr(found, each) for each in Compiled.__slots__}
        print(name, rows[name])
    text = json.dumps({"nvrtc": nvrtc_version(), "variants": rows}, indent=1)
    FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
