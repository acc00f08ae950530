"""small_program: a small kernel of the gallery, as Python warps and as PTX.

``programs/NAME.py`` says how it is launched, with what, and what its warps do;
``programs/NAME.ptx`` is the same kernel for the executor. A program that lives on
single lanes has no Python warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from fp4ref.errors import HardwareFault
from fp4ref.evidence.faults.change import PACKAGE_PARENT, Change, read
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.tensor_map import TensorMap
from fp4ref.ptx import Program, launch, parse
from fp4ref.trace import Dim3, Recorder

FOLDER = "fp4ref/evidence/faults/programs"
Argument = int | TensorMap
"""An address or a tensor map, in the order of the kernel's parameters."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Extents of a program's launch on a machine that holds one cluster.

    Attributes
    ----------
    ctas
        Of a cluster.
    clusters
        Of the grid; others than the first wait, or have their work taken.
    """

    warps: int
    ctas: int = 1
    clusters: int = 1
    smem_nbytes: int = 4096

    @property
    def grid(self) -> Dim3:
        """CTAs, along x."""
        return (self.ctas * self.clusters, 1, 1)

    @property
    def cluster(self) -> Dim3:
        """CTAs of a cluster, along x."""
        return (self.ctas, 1, 1)

    @property
    def block(self) -> Dim3:
        """Threads, along x."""
        return (32 * self.warps, 1, 1)


def run_program(
    name: str,
    backend: Literal["emulator", "ptx"],
    change: Change | None,
    schedule: str | int,
) -> Machine:
    """Run a program, or one with a mistake, on a machine that records it.

    Raises
    ------
    HardwareFault
        The program did something wrong; it has the trace up to the fault.
    """
    module = _module(name, change)
    shape: Launch = module.LAUNCH
    recorder = Recorder()
    machine = Machine(shape.ctas, make_schedule(schedule), "ptx", recorder)
    arguments: tuple[Argument, ...] = module.arguments(machine)
    grid, nbytes = shape.grid, shape.smem_nbytes
    try:
        if backend == "emulator":
            kernel = module.kernel
            machine.launch(
                lambda cta: kernel(cta, *arguments),
                grid,
                cluster=shape.cluster,
                smem_nbytes=nbytes,
            )
        else:
            launch(
                machine,
                _parsed(f"{FOLDER}/{name}.ptx", change),
                grid,
                shape.block,
                _packed(arguments),
                cluster=shape.cluster,
                smem_nbytes=nbytes,
            )
    except HardwareFault as error:
        error.trace = recorder.trace
        raise
    return machine


def _text(file: str, change: Change | None) -> str:
    """Return a file's text, with the change if it is in this file."""
    text = read(file)
    return change.applied(text) if change and change.file == file else text


def _module(name: str, change: Change | None) -> ModuleType:
    """Execute the Python file of a program, which is small, anew."""
    file = f"{FOLDER}/{name}.py"
    module = ModuleType(f"fp4ref.evidence.faults.programs.{name}")
    module.__file__ = str(PACKAGE_PARENT / file)
    exec(compile(_text(file, change), module.__file__, "exec"), vars(module))
    return module


def _parsed(file: str, change: Change | None) -> Program:
    """Parse the PTX of a program, or of one with a mistake."""
    return Program.of(parse(_text(file, change)))


def _packed(arguments: tuple[Argument, ...]) -> bytes:
    """Lay arguments out as PTX does: each on its own alignment."""
    block = b""
    for each in arguments:
        data, alignment = (
            (each.to_bytes(), 64)
            if isinstance(each, TensorMap)
            else (each.to_bytes(8, "little"), 8)
        )
        block += bytes(-len(block) % alignment) + data
    return block
