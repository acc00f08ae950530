"""speed: one product by several programs, side by side, in one run.

Each takes NVFP4 operands of (n, n) and gives a float32 product. Ratios are to NumPy on
the same problem, which dequantises and multiplies in float32. `matmul`, the emulator,
the compiled kernel and MMA-Sim compute the tensor core's bits; NumPy, torchao and
microxcaling compute a float32 product, and microxcaling one of MXFP4.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from fp4ref.arguments import require_integer
from fp4ref.errors import Fp4refError, InputError
from fp4ref.evidence.speed_pairs import by_tables
from fp4ref.execution.runs import BackendName, run
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.product import matmul
from fp4ref.tensors.quantize import quantize

SIZES: Final = (128, 256, 512, 1024)
MOST_SIZE: Final = 8192
_REPEATS: Final = 3
_LONG_ENOUGH: Final = 0.5
"""Seconds after which a run is repeated once: the first one may compile."""


class Work(NamedTuple):
    """What a program did.

    Attributes
    ----------
    d
        The product, if it means the tensor core's.
    events
        That it counted, if it does.
    """

    d: np.ndarray[Any, Any] | None = None
    events: int | None = None


class Pair(NamedTuple):
    """The operands, as numbers and quantised; scales of blocks only."""

    x: np.ndarray[Any, Any]
    w: np.ndarray[Any, Any]
    a: BlockScaled
    b: BlockScaled


@dataclass(frozen=True, slots=True)
class Timing:
    """What one program took for one size.

    Attributes
    ----------
    seconds
        The shortest of two or three runs; None where it did not run.
    ratio
        To NumPy's on the same size.
    growth
        To its own on half of the size: 8 is that of the operations.
    events
        Of a traced run; of an untraced one the hardware operations that it counted.
    events_per_second
        Of them.
    same_bits
        Whether a program that means the tensor core's product gave the bits of
        `matmul`; None for one that means another product.
    why_not
        Why it did not run; empty if it did.
    """

    program: str
    size: int
    seconds: float | None = None
    ratio: float | None = None
    growth: float | None = None
    events: int | None = None
    events_per_second: float | None = None
    same_bits: bool | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One of those side by side.

    Attributes
    ----------
    most
        Largest size that it is asked for: some are slow.
    work
        Takes the operands.
    package, remedy
        What must be installed, and how.
    """

    name: str
    most: int
    work: Callable[[Pair], Work]
    package: str = ""
    remedy: str = ""

    def why_not(self) -> str:
        """Return why it cannot run here, and what to do; empty if it can."""
        if self.package and importlib.util.find_spec(self.package) is None:
            return f"not installed: {self.remedy}"
        return ""


def _numpy(pair: Pair) -> Work:
    by_tables(pair.a) @ by_tables(pair.b).T
    return Work()


def _matmul(pair: Pair) -> Work:
    return Work(matmul(pair.a, pair.b))


def _traced(backend: BackendName) -> Callable[[Pair], Work]:
    def work(pair: Pair) -> Work:
        found = run(pair.a, pair.b, backend=backend)
        return Work(np.asarray(found.d), len(found.trace or ()))

    return work


def _untraced(backend: BackendName) -> Callable[[Pair], Work]:
    def work(pair: Pair) -> Work:
        found = run(pair.a, pair.b, backend=backend, trace=False)
        return Work(np.asarray(found.d), sum(found.stats.values()))

    return work


def _mmasim(pair: Pair) -> Work:
    """Accumulate MMAs of K = 64, 256 columns at a time."""
    import torch
    from mmasim.nv_ptx.sim import TCGen05MMABlockScale

    def packed(q: BlockScaled) -> Any:
        return torch.from_numpy(q.packed())

    def scales(q: BlockScaled) -> Any:
        return torch.from_numpy(np.array(q.scales)).view(torch.float8_e4m3fn)

    name = "m128n256k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3"
    mma = TCGen05MMABlockScale("Blackwell", name)
    m, k = pair.a.shape
    a, b, sfa, sfb = packed(pair.a), packed(pair.b), scales(pair.a), scales(pair.b)
    made = []
    for column in range(0, len(pair.w), 256):
        columns = slice(column, column + 256)
        acc = torch.zeros((m, len(pair.w[columns])))
        for step in range(k // 64):
            half, scale = (slice(size * step, size * (step + 1)) for size in (32, 4))
            rows_b, rows_sfb = b[columns, half].T, sfb[columns, scale].T
            acc = mma(a[:, half], rows_b, acc, sfa[:, scale], rows_sfb)
        made.append(acc)
    return Work(torch.cat(made, dim=1).numpy())


def _torchao(pair: Pair) -> Work:
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    x, w = (
        NVFP4Tensor.to_nvfp4(torch.from_numpy(each)).dequantize(torch.float32)
        for each in (pair.x, pair.w)
    )
    x @ w.T
    return Work()


def _microxcaling(pair: Pair) -> Work:
    import mx
    import torch

    specs = mx.finalize_mx_specs(
        {
            "scale_bits": 8,
            "w_elem_format": "fp4_e2m1",
            "a_elem_format": "fp4_e2m1",
            "block_size": 32,
            "bfloat": 0,
            "custom_cuda": False,
        }
    )
    x, w = (torch.from_numpy(each) for each in (pair.x, pair.w))
    mx.matmul(x, w.T.contiguous(), mx_specs=specs)
    return Work()


PROGRAMS: Final = (
    Program("NumPy float32", MOST_SIZE, _numpy),
    Program("fp4ref.matmul", MOST_SIZE, _matmul),
    Program("emulator", 4096, _untraced("emulator")),
    Program("ptx", 4096, _untraced("ptx")),
    Program("emulator, traced", 256, _traced("emulator")),
    Program("ptx, traced", 256, _traced("ptx")),
    Program("MMA-Sim", 256, _mmasim, "mmasim", "pip install mmasim"),
    Program("torchao", MOST_SIZE, _torchao, "torchao", "pip install torch torchao"),
    Program(
        *("microxcaling", MOST_SIZE, _microxcaling, "mx"),
        "put the sources of microsoft/microxcaling on the path; pip install torch",
    ),
)
"""NumPy first: the others' ratios are to it."""


def measure(sizes: Sequence[int] = SIZES) -> Iterator[Timing]:
    """Yield what each program takes, size by size, as it is measured.

    Parameters
    ----------
    sizes
        Sides of the matrices, multiples of 64 from 64 to 8192.

    Raises
    ------
    InputError
        A size is something else.
    """
    for size in sizes:
        require_integer(size, "size", 64, MOST_SIZE)
        if size % 64:
            raise InputError(f"size {size}; take a multiple of 64, K of an MMA")
    reasons = {program.name: _ready(program) for program in PROGRAMS}
    before: dict[str, tuple[int, float]] = {}
    for size in sorted(sizes):
        pair = _pair(size)
        base, product = 0.0, matmul(pair.a, pair.b)
        for program in PROGRAMS:
            if size > program.most:
                continue
            if reason := reasons[program.name]:
                if size == min(sizes):
                    yield Timing(program.name, size, why_not=reason)
                continue
            seconds, work = _shortest(program, pair)
            base = base or seconds
            half, then = before.get(program.name, (0, 0.0))
            before[program.name] = (size, seconds)
            yield Timing(
                program.name,
                size,
                seconds,
                seconds / base,
                seconds / then if 2 * half == size else None,
                work.events,
                work.events / seconds if work.events else None,
                _same_bits(work.d, product),
            )


def _ready(program: Program) -> str:
    """Run a program once, which compiles what it must; say why it cannot, if so."""
    if reason := program.why_not():
        return reason
    try:
        program.work(_pair(128))
    except Exception as error:  # other people's packages raise anything
        if not program.package and not isinstance(error, Fp4refError):
            raise
        return f"failed: {(str(error) or type(error).__name__).splitlines()[0]:.100}"
    return ""


def _same_bits(d: Any, product: np.ndarray[Any, Any]) -> bool | None:
    """Compare with zero tolerance, the sign of a zero and NaNs too."""
    if d is None:
        return None
    return np.array_equal(np.asarray(d).view(np.uint32), product.view(np.uint32))


def _pair(size: int) -> Pair:
    """Normal data, scaled as if with a global scale."""
    rng = np.random.default_rng(size)
    x, w = (rng.standard_normal((size, size), np.float32) for _ in range(2))
    a, b = (quantize(each, global_scale="auto") for each in (x, w))
    return Pair(x, w, *(BlockScaled(each.codes, each.scales) for each in (a, b)))


def _shortest(program: Program, pair: Pair) -> tuple[float, Work]:
    best, made = float("inf"), Work()
    for repeat in range(_REPEATS):
        start = time.perf_counter()
        made = program.work(pair)
        best = min(best, time.perf_counter() - start)
        if repeat and best > _LONG_ENOUGH:
            break
    return best, made
