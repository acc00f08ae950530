"""pieces: which files of the kernel take part in which configuration."""

from __future__ import annotations

from wording import row

from fp4ref import GemmConfig
from fp4ref.cuda_kernel.choices import pieces

CONFIGS = {
    "`GemmConfig()`": GemmConfig(),
    "static tile scheduler": GemmConfig.nvfp4(scheduler="static"),
    "bf16, C, bias, GELU": GemmConfig.nvfp4(
        d_format="bf16", c_format="bf16", beta=1.0, bias=True, activation="gelu"
    ),
    "CUTLASS 72b": GemmConfig.example_72b(),
}


def page() -> str:
    """One row for each file that some configuration leaves out, then the rest."""
    taken = {name: set(pieces(config)) for name, config in CONFIGS.items()}
    every = set.union(*taken.values())
    always = set.intersection(*taken.values())
    lines = [row("file", *taken), row("---", *(":-:" for _ in taken))]
    for file in sorted(every - always):
        marks = ("yes" if file in files else "-" for files in taken.values())
        lines.append(row(f"`{file}`", *marks))
    names = ", ".join(f"`{file.removeprefix('kernel/')}`" for file in sorted(always))
    return "\n".join([*lines, "", f"In all of them: {names}.", ""])
