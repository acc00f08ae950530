"""numbers: run the walk, and keep what it gave; `report` draws it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fp4ref.cuda_kernel import packaged_configs
from fp4ref.errors import InputError
from fp4ref.evidence.oracle import Expected, bound, expected
from fp4ref.execution.runs import BackendName, Progress, Run, run
from fp4ref.files.free_memory import require_memory
from fp4ref.frames import FRAMES, FrameKind
from fp4ref.gemm.config import Format, GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware.machine import check_sms
from fp4ref.hardware.schedule import make_schedule
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.losses import NonFiniteWarning
from fp4ref.tensors.product import matmul
from fp4ref.tensors.quantize import quantize
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.walk.beside import Beside, check_beside, run_beside
from fp4ref.walk.counts import machine_counts
from fp4ref.walk.inputs import NonFinite, Problem, check_k
from fp4ref.walk.outcome import WalkReport

F32 = NDArray[np.float32]
DEFAULT_SCHEDULE = "timed"
"""Of a walk and of every picture of one: work lands when the timing model says, so
loads, MMAs and SMs overlap. Under ``"eager"``, the default of `fp4ref.run`, nothing
ever does."""
TINY = float(np.finfo(np.float32).tiny)
LARGEST = float(np.finfo(np.float32).max)

_NBYTES_A_K_TILE = 1_700_000
_NBYTES_A_TILE = 300_000
_NBYTES_AN_SM = 3_000_000
"""What a traced run keeps, measured, for each k-tile, tile and SM."""
_NBYTES_AN_ELEMENT = 40
"""Of x, w and y: their codes, and what they are checked against in float64."""


class Walk(NamedTuple):
    """A walk's report, the emulator's run, and that of the kernel's PTX, if it ran."""

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
    backend: Beside = "auto",
    progress: Progress | None = None,
) -> Walk:
    """Quantise, run the kernel frame by frame, and check the result.

    Parameters
    ----------
    backend
        What runs beside the emulator. ``"ptx"``: the compiled CUDA kernel, on the same
        machine and under the same schedule; every hardware event is compared.
        ``"device"``: the kernel on a GPU, whose D is compared. ``"auto"``: the PTX, and
        a GPU too where one can run it; otherwise the report says why none did.
        ``"emulator"``: nothing.

    Raises
    ------
    InputError, HardwareFault
    DeviceError, CompileError
        ``"device"`` is asked for, and the launch failed.
    """
    config = config or GemmConfig()
    check_beside(backend, whole=tiles is None)
    traces = 2 if backend in ("auto", "ptx") else 1
    tiles = _check(problem, config, sms, tiles, schedule, traces)
    laps = _Laps()
    qa, of_x = _quantise(problem.x, "x")
    qb, of_w = problem.quantised, list[str]()
    if qb is None:
        qb, of_w = _quantise(problem.w, "w")
    notes = (*problem.notes, *of_x, *of_w, *_check_alpha(qa, qb))
    laps.end("quantise")
    accumulators = matmul(qa, qb)
    laps.end("matmul")
    options: dict[str, Any] = {"config": config, "sms": sms, "tiles": tiles}
    options |= {"schedule": schedule, "progress": progress}

    def run_on(backend: BackendName) -> Run:
        return run(qa, qb, backend=backend, **options)

    result = run_on("emulator")
    laps.end("emulate")
    other = run_beside(result, run_on, backend, whole=tiles is None, lap=laps.end)
    equal, compared = _count_equal(result, expected(qa, qb, config=config))
    ratio = bound(qa, qb, accumulators).worst_ratio
    errors = _errors(problem, qa, qb, accumulators)
    laps.end("check")
    assert result.trace is not None
    grid = TileGrid.of(qa.shape[0], qb.shape[0], 1, config).count
    report = WalkReport(
        problem.title,
        problem.source,
        problem.sizes,
        _settings(result.meta),
        _quantisation(problem, qa, qb),
        errors,
        grid if tiles is None else len(tiles),
        grid,
        equal,
        compared,
        ratio,
        machine_counts(result.trace),
        *_count_frames(result.trace),
        laps.seconds,
        other and other.report,
        nonfinite=_nonfinite(problem, result),
        notes=notes,
    )
    return Walk(report, result, other and other.ptx)


class _Laps:
    """Wall time by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = time.perf_counter()

    def end(self, name: str) -> None:
        """Give the time since the last part to this one."""
        now = time.perf_counter()
        self.seconds[name] = now - self._clock
        self._clock = now


def _count_equal(result: Run, want: Expected) -> tuple[int, int]:
    """Count the elements, and scales, that are the integer model's, and all."""
    compared = int(result.written.sum())
    same = _bits(result.d) == _bits(want.d)
    equal = int(same[result.written].sum())
    if result.sfd is not None and want.sfd is not None:
        vec = NVFP4_VEC_SIZE
        along_m = result.config.epilogue.store == "transposed"
        scale_written = result.written[::vec] if along_m else result.written[:, ::vec]
        compared += int(scale_written.sum())
        equal += int((result.sfd == want.sfd)[scale_written].sum())
    return equal, compared


def _count_frames(trace: Trace) -> tuple[int, int]:
    """Count the event frames that the trace has, and those in the index."""
    seen = {f for event in trace for f in event.frames}
    events = [f.id for f in FRAMES.values() if f.kind is FrameKind.EVENT]
    return sum(f in seen for f in events), len(events)


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(f"u{values.dtype.itemsize}")


def _check(
    problem: Problem,
    config: GemmConfig,
    sms: int,
    tiles: Sequence[tuple[int, ...]] | None,
    schedule: str | int,
    traces: int,
) -> list[tuple[int, ...]] | None:
    """Refuse at once what a later part would refuse; return the tiles to run."""
    m, n, k = problem.sizes
    check_k(k)
    check_sms(sms)
    make_schedule(schedule)
    grid = TileGrid.of(m, n, 1, config)
    chosen = None if tiles is None else [_tile(tile, grid) for tile in tiles]
    if chosen is not None and len(set(chosen)) < len(chosen):
        twice = next(tile for tile in chosen if chosen.count(tile) > 1)
        raise InputError(f"tile {twice[0]},{twice[1]} is named twice; name it once")
    count = grid.count if chosen is None else len(chosen)
    trace = count * (_NBYTES_A_TILE + plan(config).k_tiles(k) * _NBYTES_A_K_TILE)
    matrices = _NBYTES_AN_ELEMENT * (m * k + n * k + m * n)
    require_memory(
        traces * trace + matrices + sms * _NBYTES_AN_SM,
        f"a walk of {count:,} tiles of {m:,} x {n:,} x {k:,} on {sms} SMs",
        "Run some tiles only (--tiles 0,0), leave out the kernel (--no-kernel), or "
        "take smaller sizes.",
    )
    return chosen


def _tile(tile: tuple[int, ...], grid: TileGrid) -> tuple[int, ...]:
    m, n, batch = (*tile, 0)[:3]
    if not (0 <= m < grid.tiles_m and 0 <= n < grid.tiles_n and batch == 0):
        raise InputError(
            f"tile {','.join(map(str, tile))}: y has {grid.tiles_m} x {grid.tiles_n} "
            f"tiles, from 0,0 to {grid.tiles_m - 1},{grid.tiles_n - 1}"
        )
    return m, n


def _quantise(matrix: F32, name: str) -> tuple[BlockScaled, list[str]]:
    """Quantise, and return what was lost in sentences; NaN and Inf are told apart."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        q = quantize(matrix, global_scale="auto")
    lost = [w for w in seen if not issubclass(w.category, NonFiniteWarning)]
    return q, [f"{name}: {w.message}" for w in lost]


def _check_alpha(qa: BlockScaled, qb: BlockScaled) -> list[str]:
    """Refuse an alpha that float32 cannot hold; say where it loses bits."""
    scales = float(qa.global_scale or 1), float(qb.global_scale or 1)
    alpha = 1.0 / (scales[0] * scales[1])
    if alpha > LARGEST:
        n = ceil(log2(alpha / LARGEST))
        raise InputError(
            f"the global scales of x and w are {scales[0]:.3g} and {scales[1]:.3g}: "
            f"alpha, 1 over their product, is {alpha:.3g} and infinite in float32, and "
            f"y with it. Divide x or w by 2^{n} or more: codes and block scales stay "
            "the same, and y is smaller by that power of two"
        )
    if alpha < TINY:
        n = ceil(log2(TINY / alpha))
        return [
            f"alpha, 1 over the product of the global scales, is {alpha:.3g}, below "
            f"float32's normal range: y loses bits or becomes 0. Multiply x or w by "
            f"2^{n}, and y is larger by that power of two"
        ]
    return []


def _nonfinite(problem: Problem, result: Run) -> dict[str, NonFinite]:
    """Count the NaN and Inf of x, w and y; y only where it is a matrix of floats."""
    matrices: dict[str, NDArray[Any]] = {"x": problem.x, "w": problem.w}
    if result.d.dtype != np.uint8:
        matrices["y"] = result.d.astype(np.float32)
    found = {name: NonFinite.of(matrix) for name, matrix in matrices.items()}
    return {name: each for name, each in found.items() if each.nan or each.inf}


def _quantisation(
    problem: Problem, qa: BlockScaled, qb: BlockScaled
) -> dict[str, float]:
    """Return the largest finite magnitudes and the global scales."""

    def amax(matrix: F32) -> float:
        return float(np.abs(matrix).max(initial=0, where=np.isfinite(matrix)))

    return {
        "x amax": amax(problem.x),
        "w amax": amax(problem.w),
        "x global scale": float(qa.global_scale or 1),
        "w global scale": float(qb.global_scale or 1),
    }


def _errors(
    problem: Problem, qa: BlockScaled, qb: BlockScaled, accumulators: F32
) -> dict[str, float]:
    """Return the relative Frobenius errors of y against float64, where finite."""
    scale = float(qa.global_scale or 1) * float(qb.global_scale or 1)
    with np.errstate(invalid="ignore"):  # a signalling NaN; Inf * 0
        x, w = problem.x.astype(np.float64), problem.w.astype(np.float64)
        exact = x @ w.T
        products = {
            "x and w": accumulators.astype(np.float64) / scale,
            "x only": qa.dequantize(np.float64) @ w.T,
            "w only": x @ qb.dequantize(np.float64).T,
        }
    finite = np.isfinite(exact)
    for y in products.values():
        finite &= np.isfinite(y)
    if not finite.any():
        return {}
    # The largest exponent first: squares of what float32 holds can leave float64.
    unit = float(np.abs(exact[finite]).max()) or 1.0
    norm = float(np.linalg.norm(exact[finite] / unit)) or 1.0
    return {
        name: float(np.linalg.norm((y[finite] - exact[finite]) / unit)) / norm
        for name, y in products.items()
    }


def _settings(meta: Mapping[str, Any]) -> dict[str, Any]:
    p = RecordedPlan.required(meta)
    return {
        "tile": f"{p.tile_m}x{p.tile_n}x{p.tile_k}",
        "mma": f"{p.tile_m}x{p.tile_n}x{p.mma_k}",
        "output": p.d_format + (f" + {p.sfd_format} SFD" * (p.d_format == "nvfp4")),
        "stages": p.mainloop_stages,
        "tile_scheduler": p.tile_scheduler,
        "schedule": str(meta["schedule"]),
        "sms": meta["sms"],
        "smem_nbytes": p.smem_end,
        "tmem_columns": p.tmem_end,
    }


def make_config(output: str, example: str | None = None) -> GemmConfig:
    """Return the configuration of a named output, or of a named example.

    Raises
    ------
    InputError
        Unknown name.
    """
    known = packaged_configs()
    if example == "72b":
        return known["example_72b"]
    if example is not None:
        raise InputError(f"example {example!r}: known is 72b", gap="cutlass-examples")
    outputs = get_args(Format)
    if output not in outputs:
        raise InputError(
            f"output {output!r}: say one of {', '.join(outputs)}", gap="gemm-output"
        )
    return GemmConfig.nvfp4(d_format=output)
