"""on_sm: run the kernel's PTX on the emulated machine, on the emulator's operands."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fp4ref.cuda_kernel.build import KernelCode, kernel_code
from fp4ref.cuda_kernel.on_device import SOFT_THREADS, soft_params
from fp4ref.cuda_kernel.parameters import parameter_block
from fp4ref.cuda_kernel.sources import ENTRY
from fp4ref.gemm.problem import GemmProblem
from fp4ref.gemm.shared_storage import SharedStorage, buffer_labels, used_rings
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, launch, parse


@lru_cache(maxsize=64)
def _program(ptx: str) -> Program:
    """Parse once."""
    return Program.of(parse(ptx), ENTRY)


def launch_ptx(
    problem: GemmProblem,
    tiles: Iterable[tuple[int, ...]] | None = None,
    code: KernelCode | None = None,
    *,
    soft: bool = False,
) -> KernelCode:
    """Run the kernel's PTX on a problem; returns what ran.

    Parameters
    ----------
    tiles
        As for `GemmProblem.launch`.
    code
        Other PTX of this kernel.
    soft
        Whether that PTX has the soft tensor core.

    Raises
    ------
    InputError
        There is no PTX for the configuration, or a tile is outside the grid.
    HardwareFault
        The kernel did something wrong.
    """
    code = code or kernel_code(problem.config)
    dims, only = problem.grid_dims(tiles)
    machine = problem.machine
    namer = _Namer(problem)
    machine.on_step.append(namer)
    launch(
        machine,
        _program(code.ptx),
        dims,
        (problem.plan.threads + (SOFT_THREADS if soft else 0), 1, 1),
        parameter_block(
            soft_params(problem) if soft else problem.params,
            problem.plan.fields,
        ),
        cluster=problem.plan.cluster,
        smem_nbytes=problem.plan.smem.end,
        only=only,
    )
    machine.on_step.remove(namer)
    return code


class _Namer:
    """Gives the shared memory of each new CTA the emulator's names."""

    def __init__(self, problem: GemmProblem) -> None:
        self._plan, self._params = problem.plan, problem.params

    def __call__(self, machine: Machine) -> None:
        for sm in machine.sms:
            if sm.cta is not None and not sm.smem.labels:
                storage = SharedStorage.of(sm.cta, self._plan, self._params)
                for ring in used_rings(storage):
                    ring.name_in(sm.cta)
                for address, name in buffer_labels(storage):
                    sm.smem.labels[sm.cta.resolve_shared(address)[1]] = name
