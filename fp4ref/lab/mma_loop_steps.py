"""mma_loop_steps: experiments on our kernel's MMA loop, recorded and made again.

Each step says what was expected before and what came of it, as the records of document
003 do.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

from fp4ref.cuda_kernel.build import ARCH
from fp4ref.cuda_kernel.choices import one_changed_file
from fp4ref.cuda_kernel.sass import SassFigures, figures
from fp4ref.cuda_kernel.sources import MAIN, kernel_root
from fp4ref.device.compile import compile_cuda
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig

FILE: Final = "fp4ref/data/lab_mma_loop.toml"
NVRTC: Final = "13.5"
"""The compiler of the recorded figures."""
VERDICTS: Final = ("base", "go", "no go")


@dataclass(frozen=True, slots=True)
class Step:
    """One experiment.

    Attributes
    ----------
    expected, success
        Said before: the figure, and what would be enough.
    before, after
        Instructions of the MMA warp for a k-tile in steady state.
    config
        What the configuration asks for besides the default.
    edits
        File, old text and new text: the change, if it is not in the kernel.
    """

    id: str
    title: str
    what: str
    expected: str
    success: str
    before: float
    after: float
    registers: int
    verdict: str
    result: str
    config: dict[str, Any]
    edits: tuple[tuple[str, str, str], ...]

    @property
    def is_made(self) -> bool:
        """Whether the step can be made again from the kernel's text."""
        return bool(self.config or self.edits) or self.verdict == "base"

    def make(self) -> SassFigures:
        """Compile the step.

        Raises
        ------
        CompileError
            NVRTC or nvdisasm is not installed, or refused the text.
        InputError
            The kernel has no such text any more.
        """
        config = GemmConfig.nvfp4(**self.config)
        changed: dict[str, str] = {}
        for file, old, new in self.edits:
            text = changed.get(file) or (kernel_root() / file).read_text("utf-8")
            if text.count(old) != 1:
                raise InputError(
                    f"{FILE}: step {self.id!r}: {file} has {old!r:.60} "
                    f"{text.count(old)} times. Write the edit for today's text"
                )
            changed[file] = text.replace(old, new)
        compiled = compile_cuda(one_changed_file(config, changed), ARCH, name=MAIN)
        return figures(compiled.cubin)


@cache
def steps() -> tuple[Step, ...]:
    """Return the steps in the order in which they were tried.

    Raises
    ------
    InputError
        One has another field.
    """
    text = resources.files("fp4ref.data").joinpath(FILE.rsplit("/", 1)[1])
    rows = tomllib.loads(text.read_text("utf-8"))["step"]
    return tuple(_step(row) for row in rows)


def _step(row: dict[str, Any]) -> Step:
    given = {"config": {}, "edits": ()} | row
    if set(given) != {field.name for field in fields(Step)}:
        wrong = set(given) ^ {field.name for field in fields(Step)}
        raise InputError(f"{FILE}: step {row.get('id')!r}: {sorted(wrong)}; see Step")
    edits = tuple((file, old, new) for file, old, new in given["edits"])
    return Step(**given | {"edits": edits})
