"""runs: one GEMM on one backend, with its result, trace and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import (
    require_choice,
    require_instance,
    require_integer,
    require_list,
)
from fp4ref.errors import HardwareFault, InputError
from fp4ref.execution.backend import Backend
from fp4ref.execution.device import Device
from fp4ref.execution.emulator import Emulator
from fp4ref.execution.explanation import Explanation, explain
from fp4ref.execution.ptx import Ptx
from fp4ref.execution.traced_machine import TracedMachine
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.arguments import TensorResult
from fp4ref.gemm.fusion.launch_arguments import arguments_of
from fp4ref.gemm.plan.json_values import json_values
from fp4ref.gemm.problem import GemmOutput, GemmProblem
from fp4ref.gemm.void_d import is_void
from fp4ref.hardware.machine import Machine, Races
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.order.race import Findings, Race, Verdict
from fp4ref.hardware.timing import Durations
from fp4ref.layout import unswizzle_scales
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.unscaled import OperandLike, require_operand
from fp4ref.trace import State, Trace

BackendName = Literal["emulator", "ptx", "device"]
BACKENDS: dict[BackendName, Backend] = {
    "emulator": Emulator(),
    "ptx": Ptx(),
    "device": Device(),
}
_STORE = "cp.async.bulk.tensor.3d.store"
_READ = "tcgen05.ld"
Progress = Callable[[int, int], None]
"""Called as ``progress(tiles done, tiles in all)``."""


@dataclass(frozen=True)
class Run:
    """Result of one GEMM.

    Attributes
    ----------
    d
        (M, N) or (L, M, N): a type of NumPy or ml_dtypes, or uint8 E2M1 codes for
        ``d_format="nvfp4"``. Elements of tiles that did not run are 0. With
        ``d_format=None`` there is none: its text says so, and any use as an array is an
        `InputError`.
    sfd
        Scale codes of D, batched like `d`; None unless NVFP4. A scale is for 16
        elements that lie side by side: (M, ceil(N / 16)), or (ceil(M / 16), N) with
        ``store="transposed"``, where D's transpose is the block-scaled matrix:
        ``BlockScaled(d.T, sfd.T)``.
    written
        Which elements of D the kernel stored.
    trace
        Every event; None if the run was not traced.
    stats
        Counts of operations, by PTX name.
    config
        What ran.
    advisories
        What the run relied on and PTX does not promise, and how often; most of it
        is a fault with ``ordering="ptx"``.
    findings
        Accesses that nothing orders; None if nothing looked for them.
    aux
        Tensors of D's shape that the tree's nodes stored, by name.
    reductions
        Sums and absolute maxima of the tree's nodes, by name: float32, of shape (),
        (N,) or (M,).
    anew
        Makes the same problem on a new machine.
    """

    d: NDArray[Any]
    sfd: NDArray[np.uint8] | None
    written: NDArray[np.bool_]
    trace: Trace | None
    stats: Mapping[str, int]
    config: GemmConfig
    meta: Mapping[str, Any] = field(default_factory=dict)
    advisories: Mapping[str, int] = field(default_factory=dict)
    findings: Findings | None = None
    aux: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reductions: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    anew: Callable[[], GemmProblem] | None = field(default=None, repr=False)

    def explain(self, m: int, n: int, batch: int = 0) -> Explanation:
        """Return the value of every node of the formula at an element of D.

        The emulator computes the element's tile once more.

        Raises
        ------
        InputError
            The element is outside D, or the run was not made by `run`.
        """
        if self.anew is None:
            raise InputError("this run has no operands; fp4ref.run makes one that has")
        return explain(self.anew(), m, n, batch)

    @property
    def verdict(self) -> Verdict:
        """What the order of all accesses comes to: clean, review, incomplete or error.

        An untraced run is incomplete: nothing looked.
        """
        return "incomplete" if self.findings is None else self.findings.verdict

    @property
    def races(self) -> tuple[Race, ...]:
        """Pairs of accesses that nothing orders; those of shipped kernels included."""
        return () if self.findings is None else tuple(self.findings.races)

    def state(self, step: int) -> State:
        """Memory just after event `step`; see `Trace.at`.

        Raises
        ------
        InputError
            The run was not traced.
        """
        if self.trace is None:
            raise InputError("this run has no trace; call run(..., trace=True)")
        return self.trace.at(step)


def run(
    a: OperandLike,
    b: OperandLike,
    c: NDArray[Any] | None = None,
    *,
    bias: NDArray[np.float32] | None = None,
    alpha: float | None = None,
    arguments: Mapping[str, Any] | None = None,
    config: GemmConfig | None = None,
    backend: BackendName = "emulator",
    schedule: str | int | Durations = "eager",
    ordering: Ordering = "ptx",
    sms: int = 2,
    tiles: Iterable[tuple[int, ...]] | None = None,
    trace: bool = True,
    races: Races = "raise",
    progress: Progress | None = None,
) -> Run:
    """Compute D = activation(alpha * A @ B.T + bias + beta * C) on the emulated GPU.

    Parameters
    ----------
    a, b
        Operands (M, K) and (N, K), or with a leading batch dimension, of the formats
        that the configuration asks for: `BlockScaled`, or arrays of an operand type
        without scales, as bfloat16. M and N are any positive size; K of NVFP4 is a
        multiple of 16, or of 32 in a cluster.
    c
        (M, N) or (L, M, N) in `c_format`, of ml_dtypes or as unsigned bits.
    bias
        (N,) float32, with a configuration that has one.
    alpha
        Factor of the product, a parameter of the launch: one compiled kernel takes any.
        None takes ``1 / (global scale of A * global scale of B)``.
    arguments
        What the nodes of the configuration's tree take, by name: numbers, float32
        vectors and tensors of D's shape.
    backend
        ``"emulator"``: the kernel as Python warps. ``"ptx"``: the PTX of the CUDA
        kernel in ``kernel/``, compiled by NVRTC where it is installed; without it the
        package has the configurations of `fp4ref.cuda_kernel.packaged_configs`.
        ``"device"``: the same kernel on a GPU with tcgen05; no trace, and `schedule`,
        `ordering` and `sms` mean nothing there.
    schedule
        ``"eager"``, ``"late"`` or an integer seed: when asynchronous work lands.
        ``"timed"``: when a model says (`fp4ref.hardware.timing`); its trace has times.
        `Durations` are that model with other numbers.
    ordering
        ``"ptx"`` or ``"shipped"``.
    sms
        SMs of the machine.
    tiles
        Only these (m, n) or (m, n, batch) tiles; all by default.
    trace
        Record every event.
    races
        What becomes of accesses that nothing orders, in a traced run: ``"raise"`` ends
        it with a `RaceFault`, ``"collect"`` keeps them in `Run.races`, ``"off"`` does
        not look.

    Raises
    ------
    InputError
        Something passed in cannot be used.
    HardwareFault
        The kernel did something wrong on the machine.
    """
    require_choice(backend, "backend", tuple(BACKENDS))
    require_choice(ordering, "ordering", get_args(Ordering))
    require_choice(trace, "trace", (False, True))
    require_choice(races, "races", get_args(Races))
    a, b = require_operand(a, "a"), require_operand(b, "b")
    config = GemmConfig() if config is None else config
    sms = require_integer(sms, "sms", 1)
    _check_types(config, c, bias, arguments)
    chosen = None
    if tiles is not None:
        chosen = require_list(tiles, "tiles", "(m, n) or (m, n, batch) tiles")
    seed: object = schedule
    if isinstance(seed, np.integer):
        schedule = int(seed)
    traced = TracedMachine(sms, schedule, ordering, trace, races)

    def on(machine: Machine) -> GemmProblem:
        return GemmProblem(machine, a, b, c, bias, config, alpha, None, arguments)

    problem = on(traced.machine)
    if progress:
        total = problem.params.grid.count if chosen is None else len(chosen)
        traced.machine.on_step.append(_reporter(progress, total, problem))
    meta = _meta(problem, backend)
    found = _launch(BACKENDS[backend], problem, chosen, traced, meta)
    output = problem.output()
    batched = a.codes.ndim == 3
    d, sfd, written = _results(problem, output, batched)
    aux, reductions = _left(problem, output, batched)
    machine = traced.machine
    stats, advisories = dict(machine.stats), dict(machine.advisories)
    watched = BACKENDS[backend].recorded and machine.order.watches
    findings = machine.order.findings if watched else None
    ran = problem.config
    results = d, sfd, written, found, stats, ran, meta, advisories, findings
    again = TracedMachine(sms, "eager", ordering, trace=False, races="off")
    return Run(*results, aux=aux, reductions=reductions, anew=lambda: on(again.machine))


def _launch(
    backend: Backend,
    problem: GemmProblem,
    tiles: list[tuple[int, ...]] | None,
    traced: TracedMachine,
    meta: dict[str, Any],
) -> Trace | None:
    """Run the kernel, put what ran into `meta`, and return the trace.

    Raises
    ------
    HardwareFault
        With the trace up to the fault.
    """
    try:
        kernel = backend.launch(problem, tiles)
    except HardwareFault as error:
        ended = meta | traced.meta() | {"fault": type(error).__name__}
        error.trace = traced.trace(ended) or error.trace
        raise
    meta |= traced.meta()
    if kernel:
        meta["kernel"] = kernel
    return traced.trace(meta) if backend.recorded else None


def _results(
    problem: GemmProblem, output: GemmOutput, batched: bool
) -> tuple[NDArray[Any], NDArray[np.uint8] | None, NDArray[np.bool_]]:
    """Return D, SFD and what was written, without a batch dimension if it had none."""
    d, sfd = _typed(output.d, problem.config), None
    if is_void(d):
        return d, None, output.written if batched else output.written[0]
    if output.sfd is not None:
        _, rows, columns = problem.stored_shape
        sfd = unswizzle_scales(output.sfd, rows, -(-columns // NVFP4_VEC_SIZE))
        if problem.config.epilogue.store == "transposed":
            sfd = sfd.swapaxes(1, 2)
    if batched:
        return d, sfd, output.written
    return d[0], None if sfd is None else sfd[0], output.written[0]


def _left(
    problem: GemmProblem, output: GemmOutput, batched: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return what the tree's nodes stored, and what they reduced, by name."""
    of_tree = arguments_of(problem.plan.fusion).values()
    tensors = {each.name for each in of_tree if isinstance(each, TensorResult)}
    aux = {
        name: value if batched else value[0]
        for name, value in output.left.items()
        if name in tensors
    }
    left = output.left.items()
    return aux, {name: value for name, value in left if name not in tensors}


def _check_types(config: object, c: object, bias: object, arguments: object) -> None:
    """Raise `InputError` for an argument of the wrong type."""
    require_instance(
        config, "config", GemmConfig, "For example GemmConfig.nvfp4(d_format='bf16')"
    )
    if arguments is not None:
        remedy = "For example arguments={'beta': 0.5}"
        require_instance(arguments, "arguments", dict, remedy)
    for name, array in (("c", c), ("bias", bias)):
        if array is not None:
            remedy = "Its type is the one that the configuration names"
            require_instance(array, name, np.ndarray, remedy)


def _reporter(
    progress: Progress, total: int, problem: GemmProblem
) -> Callable[[Machine], None]:
    """Report each finished tile once: all its subtiles have been stored.

    Where TMA stores none, its accumulators have been read, those of all its splits.
    """
    plan, splits = problem.plan, problem.config.tiles.splits
    last, operation, of_tile = -1, _STORE, plan.subtiles * plan.d_boxes
    if not plan.stages_d:
        loads = plan.lanes // plan.tmem_load_lanes
        parts = min(splits, problem.params.k_tiles)
        operation, of_tile = _READ, plan.subtiles * loads * parts

    def report(machine: Machine) -> None:
        nonlocal last
        done = min(machine.stats.get(operation, 0) // of_tile, total)
        if done != last:
            last = done
            progress(done, total)

    return report


def _typed(d: NDArray[Any], config: GemmConfig) -> NDArray[Any]:
    if is_void(d):
        return d
    stored = element(config.epilogue.d_format or "")
    return d if stored.bits < 8 else d.view(stored.dtype or stored.code_dtype)


def _meta(problem: GemmProblem, backend: str) -> dict[str, Any]:
    """Say what ran, in JSON values."""
    params, planned = problem.params, problem.plan
    batches, m, n = problem.shape
    left = {
        slot: json_values(found)
        for slot, each in arguments_of(planned.fusion).items()
        if (found := each.recorded(problem.stored_shape))
    }
    said = {"results": left} if left else {}
    return said | {
        "backend": backend,
        "shape": {"m": m, "n": n, "k": params.k, "l": batches},
        "scale_format": params.scale_format.name if params.scale_format else None,
        "alpha": params.alpha,
        "config": json_values(problem.config),
        "plan": planned.to_dict(),
        "stages": planned.mainloop_stages,
    }
