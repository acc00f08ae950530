"""cutlass_72b: the recorded census of CUTLASS's kernel, a minute's compilation.

``python -m fp4ref.lab.cutlass_72b`` compiles example 72b of the installed package and
writes the record; a test compares.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fp4ref.cuda_kernel.sass import Listing, disassemble, figures
from fp4ref.cuda_kernel.sass_census import census, steady_state
from fp4ref.cutlass.examples import assemble_example
from fp4ref.cutlass.toolchain import find_toolchain

FILE = Path(__file__).parents[1] / "data" / "cutlass_72b_census.json"
LOADS = 4
"""Tensor map loads of a k-tile: A, B and their scales."""


@cache
def recorded() -> dict[str, Any]:
    """Return the record, as `measure` made it."""
    text = resources.files("fp4ref.data").joinpath(FILE.name).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def compilers() -> list[str]:
    """Name the packages that have a part in the result, with their versions.

    Raises
    ------
    InputError
        One is not installed.
    """
    return list(find_toolchain().versions)


def measure(cubin: bytes) -> dict[str, Any]:
    """Return figures, census and steady state of a cubin of the example."""
    text = disassemble(cubin)
    listing = Listing(text)
    counted, found = census(listing), figures(cubin, text)
    rounds = steady_state(listing, counted, loads=LOADS)
    return {
        "registers": found.registers,
        "spill_instructions": found.spill_instructions,
        **counted.to_dict(),
        "per_k_tile": {each.role: each.by_kind for each in rounds},
    }


def main() -> None:
    """Compile and write the record."""
    made = {"compilers": compilers()} | measure(assemble_example("72b"))
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
