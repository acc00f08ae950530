"""walk: the main job. Real tensors, quantised, through the kernel, every bit checked.

`walk` returns the numbers; `walk_report` draws them.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.block_scaled import BlockScaled, quantize
from fp4ref.compare import Comparison, compare
from fp4ref.device.compile import has_tcgen05
from fp4ref.device.driver import find_gpu
from fp4ref.errors import InputError
from fp4ref.frames import FRAMES, FrameKind
from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.matmul import matmul
from fp4ref.numerics import ScaleFormat
from fp4ref.oracle import bound, expected
from fp4ref.run import Progress, Run, run
from fp4ref.side_by_side import Pair, side_by_side
from fp4ref.timeline import overlap
from fp4ref.trace import Trace

F32 = NDArray[np.float32]
MOST_ELEMENTS = 1 << 28
"""Of a random matrix: 1 GB of float32."""
DEFAULT_INPUT = "minilm_ffn_down.npz"
DEFAULT_SCHEDULE = 0
"""Of a walk and of every picture of one: a seed, so that loads, MMAs and SMs overlap.
Under ``"eager"``, the default of `fp4ref.run`, nothing ever does."""


@dataclass(frozen=True)
class Problem:
    """Two matrices for y = x @ w.T, and where they come from."""

    x: F32
    w: F32
    title: str
    source: str
    text: str = ""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(M, N, K)."""
        return self.x.shape[0], self.w.shape[0], self.x.shape[1]


def load_problem(path: str | Path | None = None) -> Problem:
    """Read x and w from a file; the default is a layer of a real transformer.

    Parameters
    ----------
    path
        An .npz with float arrays ``x`` (M, K) and ``w`` (N, K), or ``x_bf16`` and
        ``w_bf16`` as uint16 bit patterns.

    Raises
    ------
    InputError
        No such file, not an .npz, or without the arrays.
    """
    if path is None:
        with resources.as_file(resources.files("fp4ref.data") / DEFAULT_INPUT) as file:
            return load_problem(file)
    try:
        # numpy does not close a file that it cannot read.
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        raise InputError(
            f"{path} is no .npz file; save x (M, K) and w (N, K) with numpy.savez"
        ) from None
    x, w = (_matrix(arrays, name, str(path)) for name in ("x", "w"))
    if x.shape[1] != w.shape[1]:
        raise InputError(
            f"{path}: x is {x.shape} and w is {w.shape}; both need the same K (the "
            "product is x @ w.T)"
        )
    words = {
        key: str(arrays[key]) for key in ("layer", "source", "text") if key in arrays
    }
    return Problem(
        x,
        w,
        words.get("layer", Path(path).name),
        words.get("source", str(path)),
        words.get("text", ""),
    )


def _matrix(arrays: dict[str, NDArray[Any]], name: str, path: str) -> F32:
    """Return one matrix as float32."""
    if (bits := arrays.get(f"{name}_bf16")) is not None and bits.dtype == np.uint16:
        matrix = (bits.astype(np.uint32) << 16).view(np.float32)
    elif (values := arrays.get(name)) is not None and values.dtype.kind == "f":
        matrix = values.astype(np.float32)
    else:
        raise InputError(
            f"{path} holds {', '.join(arrays) or 'nothing'}; it needs {name} (floats) "
            f"or {name}_bf16 (uint16 bit patterns)"
        )
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"{path}: {name} has shape {matrix.shape}; give a matrix")
    return matrix


def random_problem(m: int, n: int, k: int, seed: int = 0) -> Problem:
    """Return normal matrices whose rows differ widely in scale.

    Raises
    ------
    InputError
        A size is below 1.
    """
    if min(m, n, k) < 1:
        raise InputError(f"size {m}x{n}x{k}: every size is at least 1")
    if max(m * k, n * k, m * n) > MOST_ELEMENTS:
        raise InputError(
            f"size {m}x{n}x{k}: a matrix of more than {MOST_ELEMENTS:,} elements; take "
            "smaller sizes, the tiles are alike"
        )
    rng = np.random.default_rng(seed)

    def matrix(rows: int) -> F32:
        scale = np.exp2(rng.integers(-6, 7, (rows, 1))).astype(np.float32)
        return rng.standard_normal((rows, k), np.float32) * scale

    return Problem(matrix(m), matrix(n), f"random {m}x{n}x{k}", f"seed {seed}")


@dataclass(frozen=True)
class KernelReport:
    """The compiled kernel's run beside the emulator's.

    Attributes
    ----------
    code
        Where its PTX comes from.
    events
        Hardware events compared, by tensor.
    pairs
        One event of each tensor: the Python line, the CUDA line, the bytes.
    gpu, gpu_ok
        The card with tcgen05 on which the kernel ran too, and whether D is the same.
    """

    code: str
    ok: bool
    events: dict[str, int]
    first_difference: str
    pairs: tuple[str, ...]
    gpu: str = ""
    gpu_ok: bool = True

    @classmethod
    def of(cls, code: str, found: Comparison, pairs: Sequence[Pair]) -> KernelReport:
        """Keep the first event of each tensor."""
        first: dict[str, str] = {}
        for pair in pairs:
            first.setdefault(pair.key.tensor, str(pair))
        difference = str(found.first_difference or "")
        return cls(
            code, found.ok, dict(found.counts), difference, tuple(first.values())
        )


@dataclass(frozen=True)
class WalkReport:
    """What was computed, what the machine did, and what was checked.

    Attributes
    ----------
    quantisation_error
        Relative Frobenius errors of y against float64: of the result, and with only
        x, only w quantised.
    bits_equal, bits_compared
        Elements of D (and scales of SFD) that equal the integer model.
    bound_ratio
        Largest |accumulator - float64| over what the datapath may lose.
    machine
        Counts of what ran.
    frames_seen, frames_expected
        Event frames of the index that this run emitted, and those in the index.
    kernel
        The compiled CUDA kernel against the emulator; None if it did not run.
    seconds
        Wall time by part.
    """

    title: str
    source: str
    sizes: tuple[int, int, int]
    config: dict[str, Any]
    quantisation: dict[str, float]
    quantisation_error: dict[str, float]
    tiles_run: int
    tiles_in_all: int
    bits_equal: int
    bits_compared: int
    bound_ratio: float
    machine: dict[str, int]
    frames_seen: int
    frames_expected: int
    seconds: dict[str, float]
    kernel: KernelReport | None = None
    trace_file: str = ""

    @property
    def ok(self) -> bool:
        """Whether every bit and the bound hold, and the kernel agrees."""
        kernel_ok = self.kernel is None or (self.kernel.ok and self.kernel.gpu_ok)
        return (
            self.bits_equal == self.bits_compared
            and self.bound_ratio <= 1
            and kernel_ok
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"ok": self.ok}


class Walk(NamedTuple):
    """A walk's report, the emulator's run, and the kernel's; None if it did not run."""

    report: WalkReport
    run: Run
    kernel: Run | None


def walk(
    problem: Problem,
    *,
    config: GemmConfig | None = None,
    sms: int = 2,
    tiles: Sequence[tuple[int, ...]] | None = None,
    schedule: str | int = DEFAULT_SCHEDULE,
    kernel: bool = True,
    progress: Progress | None = None,
) -> Walk:
    """Quantise, run the kernel frame by frame, and check the result.

    With `kernel` the compiled CUDA kernel runs too, on the same machine and under the
    same schedule, and every hardware event is compared.

    Raises
    ------
    InputError, HardwareFault
    """
    config = config or GemmConfig()
    seconds: dict[str, float] = {}
    clock = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds[name] = now - clock
        clock = now

    qa = quantize(problem.x, global_scale="auto")
    qb = quantize(problem.w, global_scale="auto")
    lap("quantise")
    accumulators = matmul(qa, qb)
    lap("integer model")
    result = run(
        qa,
        qb,
        config=config,
        sms=sms,
        tiles=tiles,
        schedule=schedule,
        progress=progress,
    )
    lap("emulate")
    beside = theirs = None
    if kernel:
        theirs = run(
            qa,
            qb,
            config=config,
            backend="ptx",
            sms=sms,
            tiles=tiles,
            schedule=schedule,
            progress=progress,
        )
        beside = KernelReport.of(
            str(theirs.meta.get("kernel", "")),
            compare(result, theirs),
            side_by_side(result, theirs),
        )
        lap("execute the kernel's PTX")
        gpu = find_gpu()
        if gpu and has_tcgen05(gpu.capability) and tiles is None:
            card = run(qa, qb, config=config, backend="device")
            same_on_card = bool((_bits(card.d) == _bits(result.d)).all())
            beside = replace(beside, gpu=str(gpu), gpu_ok=same_on_card)
            lap("run on the GPU")
    want = expected(qa, qb, config=config)
    compared = int(result.written.sum())
    same = _bits(result.d) == _bits(want.d)
    equal = int(same[result.written].sum())
    if result.sfd is not None and want.sfd is not None:
        scale_written = result.written[:, ::16]
        compared += int(scale_written.sum())
        equal += int((result.sfd == want.sfd)[scale_written].sum())
    limits = bound(qa, qb, accumulators)
    errors = _errors(problem, qa, qb, accumulators)
    lap("check")
    grid = -(-qa.shape[0] // TILE_M) * -(-qb.shape[0] // config.tile_n)
    assert result.trace is not None
    seen = {f for event in result.trace for f in event.frames}
    events = [f.id for f in FRAMES.values() if f.kind is FrameKind.EVENT]
    report = WalkReport(
        problem.title,
        problem.source,
        problem.sizes,
        _settings(config, str(result.meta["schedule"]), sms),
        _quantisation(problem, qa, qb),
        errors,
        grid if tiles is None else len(tiles),
        grid,
        equal,
        compared,
        limits.worst_ratio,
        machine_counts(result.trace, config, qa.shape[1]),
        sum(f in seen for f in events),
        len(events),
        seconds,
        beside,
    )
    return Walk(report, result, theirs)


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(f"u{values.dtype.itemsize}")


def _quantisation(
    problem: Problem, qa: BlockScaled, qb: BlockScaled
) -> dict[str, float]:
    return {
        "x amax": float(np.abs(problem.x).max()),
        "w amax": float(np.abs(problem.w).max()),
        "x global scale": float(qa.global_scale or 1),
        "w global scale": float(qb.global_scale or 1),
    }


def _errors(
    problem: Problem, qa: BlockScaled, qb: BlockScaled, accumulators: F32
) -> dict[str, float]:
    """Return the relative Frobenius errors of y against float64."""
    x, w = problem.x.astype(np.float64), problem.w.astype(np.float64)
    exact = x @ w.T
    norm = float(np.linalg.norm(exact)) or 1.0
    scale = float(qa.global_scale or 1) * float(qb.global_scale or 1)
    products = {
        "x and w": accumulators.astype(np.float64) / scale,
        "x only": qa.dequantize(np.float64) @ w.T,
        "w only": x @ qb.dequantize(np.float64).T,
    }
    return {n: float(np.linalg.norm(y - exact)) / norm for n, y in products.items()}


def _settings(config: GemmConfig, schedule: str, sms: int) -> dict[str, Any]:
    nvfp4 = config.d_format == "nvfp4"
    return {
        "tile": f"128x{config.tile_n}x{TILE_K}",
        "output": config.d_format
        + (f" + {config.sfd_format.name} SFD" if nvfp4 else ""),
        "stages": config.mainloop_stages,
        "scheduler": config.scheduler,
        "schedule": schedule,
        "sms": sms,
        "smem_nbytes": config.smem.end,
        "tmem_columns": config.tmem.end,
    }


def machine_counts(trace: Trace, config: GemmConfig, k: int) -> dict[str, int]:
    """Count what the machine did, from the trace alone."""
    counts: dict[str, int] = {}

    def add(name: str, amount: int = 1) -> None:
        counts[name] = counts.get(name, 0) + amount

    add("events", len(trace))
    add("ctas", len({e.cta for e in trace}))
    k_tiles = -(-k // TILE_K)
    for e in trace:
        if e.kind == "land" and e.operation.endswith(".load"):
            add("tma_loads")
            add("tma_load_bytes", int(e.operands["tx_bytes"]))
        elif e.kind == "land" and e.operation.endswith(".store") and e.agent == "tma":
            add("tma_stores")
            add("tma_store_bytes", sum(w.size for w in e.writes))
        elif e.kind == "land":
            add(e.operation)
        elif e.operation == "mbarrier.try_wait.parity" and e.issued >= 0:
            add("blocked_waits")
        elif e.operation == "mbarrier.init":
            add("mbarriers")
        for change in e.barrier:
            add("phases_completed", change.before[0] != change.after[0])
            if change.label.startswith("mainloop.full[0]"):
                add("first_stage_fills", change.before[0] != change.after[0])
    mmas = counts.get("tcgen05.mma", 0)
    add("macs", mmas * TILE_M * config.tile_n * 64)
    add("overlap_steps", overlap(trace))
    add("k_tiles", k_tiles)
    add("ring_wraps", max(0, counts.pop("first_stage_fills", 0) - counts["ctas"]))
    return counts


def make_config(output: str, example: str | None = None) -> GemmConfig:
    """Return the configuration of a named output, or of a named example.

    Raises
    ------
    InputError
        Unknown name.
    """
    outputs = {
        "f32": GemmConfig(),
        "bf16": GemmConfig(d_format="bf16"),
        "f16": GemmConfig(d_format="f16"),
        "nvfp4": GemmConfig(d_format="nvfp4", sfd_format=ScaleFormat.UE4M3),
    }
    if example == "72b":
        return GemmConfig.example_72b(alpha=None)
    if example is not None:
        raise InputError(f"example {example!r}: known is 72b", gap="cutlass-examples")
    if output not in outputs:
        raise InputError(
            f"output {output!r}: say one of {', '.join(outputs)}", gap="gemm-output"
        )
    return outputs[output]
