"""package: write the PTX and SASS that travel with fp4ref.

Run ``python -m fp4ref.cuda_kernel.package`` in a checkout with NVRTC after a change of
``kernel/``, of the plan or of the table of parameters; it writes their headers first. A
test compares the files with what NVRTC makes.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from fp4ref.cuda_kernel.build import (
    compile_kernel,
    normalised,
    packaged_configs,
)
from fp4ref.cuda_kernel.choices import headers
from fp4ref.cuda_kernel.parameters import write_struct
from fp4ref.cuda_kernel.sass import disassemble, figures
from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.gemm.config import GemmConfig

FOLDER = Path(__file__).parents[1] / "data" / "kernel"


def texts() -> dict[str, str]:
    """Return every packaged text by file name, made anew."""
    made: dict[str, str] = {}
    facts: dict[str, object] = {}
    for name, config in packaged_configs().items():
        compiled = compile_kernel(config)
        listing = disassemble(compiled.cubin)
        found = figures(compiled.cubin, listing)
        facts["nvrtc"] = compiled.nvrtc
        facts[name] = {
            "registers": found.registers,
            "spill_instructions": found.spill_instructions,
            "instructions": found.instructions,
            "per_k_tile": found.per_k_tile,
        }
        made[f"{name}.ptx"] = normalised(compiled.ptx)
        made[f"{name}.sass"] = listing
    made["figures.json"] = json.dumps(facts, indent=1) + "\n"
    return made


def main() -> None:
    """Write the files, after the headers in the checkout."""
    write_struct()
    for path, text in headers(GemmConfig()).items():
        (kernel_root() / path).write_text(text, encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        data = gzip.compress(text.encode(), 9, mtime=0)
        (FOLDER / f"{name}.gz").write_bytes(data)
        print(f"{name}.gz  {len(data):,} bytes")


if __name__ == "__main__":
    main()
