"""triton_cases: each Triton kernel, its launch, inputs, and meaning in NumPy.

Inputs are random and wide. Where no instruction is approximate and every order of
addition is given, the bits have to be equal; an MMA is the integer model of `numerics`.
Elsewhere a case states a bound of the error, as a function of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton_launch import Compiled, Descriptor, compile_kernel, contents, run

from fp4ref.hardware.machine import Machine
from fp4ref.numerics import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat, element

Array = NDArray[Any]
POINTERS = {
    "f32": "*fp32",
    "f16": "*fp16",
    "bf16": "*bf16",
    "e4m3": "*fp8e4nv",
    "e5m2": "*fp8e5",
    "i32": "*i32",
    "u8": "*u8",
    "i64": "*i64",
}
DESCRIBED = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "e4m3": "fp8e4nv"}


@dataclass
class Launch:
    """One launch: the grid, the arguments, and what the outputs have to hold.

    Attributes
    ----------
    inputs
        Buffers by name, in codes.
    arguments
        In the kernel's order: names of buffers, numbers, or (name, shape) of a
        descriptor.
    want, bound
        Values of an output, and its largest error; without one every bit is compared.
    """

    grid: tuple[int, int, int]
    inputs: dict[str, Array]
    arguments: list[Any]
    want: dict[str, Array]
    bound: dict[str, Array] = field(default_factory=dict)
    kind: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A kernel, how it is compiled, and one launch of it.

    Attributes
    ----------
    what, compared
        What it computes, and how the results are compared, in words.
    """

    name: str
    what: str
    compared: str
    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    launch: Callable[[np.random.Generator], Launch]
    options: Mapping[str, Any] = field(default_factory=dict)
    gluon: bool = False

    @property
    def author(self) -> str:
        """The language that the kernel is written in."""
        return "Gluon" if self.gluon else "Triton"

    @property
    def compiled(self) -> Compiled:
        """The kernel for sm_100a."""
        return _compiled(f"{self.author} {self.name}", self)


_CACHE: dict[str, Compiled] = {}


def _compiled(name: str, case: Case) -> Compiled:
    if name not in _CACHE:
        _CACHE[name] = compile_kernel(
            case.kernel, case.types, case.constants, gluon=case.gluon, **case.options
        )
    return _CACHE[name]


EVERY_BIT = "every bit"


def codes_of(values: Array, kind: str) -> Array:
    """Round float32 to codes of a format; f32 keeps its bits."""
    x = np.asarray(values, np.float32)
    return x.view(np.uint32) if kind == "f32" else element(kind).encode(x)


def values_of(codes: Array, kind: str) -> Array:
    """Return the float32 values of codes."""
    return codes.view(np.float32) if kind == "f32" else element(kind).decode(codes)


def wide(rng: np.random.Generator, *shape: int, spread: float = 2.0) -> Array:
    """Normal numbers times powers of two, one in sixteen a zero."""
    x = rng.standard_normal(shape) * 2.0 ** rng.uniform(-spread, spread, shape)
    x[rng.random(shape) < 1 / 16] = 0
    return x.astype(np.float32)


def bits(values: Array) -> Array:
    """Bits of float32."""
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def rows_case(
    name: str,
    what: str,
    kernel: Any,
    constants: dict[str, Any],
    arguments: dict[str, str],
    launch: Callable[[np.random.Generator], Launch],
    compared: str = EVERY_BIT,
    **options: Any,
) -> Case:
    """Make a case whose arguments are named with their formats."""
    types = {
        n: POINTERS.get(kind, kind) if n.endswith("_ptr") else kind
        for n, kind in arguments.items()
    }
    return Case(name, what, compared, kernel, types, constants, launch, options)


def product(a: Array, b: Array, kind: str) -> Array:
    """Return A B^T by the integer model of the MMA."""
    pad = -a.shape[1] % ElementFormat(kind).k_step
    a, b = (np.pad(x, ((0, 0), (0, pad))) for x in (a, b))
    return matmul_unscaled(
        a, b, a_format=ElementFormat(kind), b_format=ElementFormat(kind)
    )


def operands(
    rng: np.random.Generator, m: int, n: int, k: int, kind: str
) -> tuple[Array, Array]:
    """A (M, K) and B (N, K) in codes."""
    spread = {"e4m3": 3.0, "e5m2": 6.0}.get(kind, 8.0)
    return codes_of(wide(rng, m, k, spread=spread), kind), codes_of(
        wide(rng, n, k, spread=spread), kind
    )


def run_case(case: Case, machine: Machine, seed: int = 0) -> None:
    """Launch once and compare; AssertionError says what differs."""
    launch = case.launch(np.random.default_rng([seed, *case.name.encode()]))
    addresses = {
        name: machine.gmem.upload(name, data) for name, data in launch.inputs.items()
    }
    for name, want in launch.want.items():
        if name not in addresses:
            size = want.size * 4 if name in launch.bound else want.nbytes
            addresses[name] = machine.gmem.allocate(name, size)
    arguments: list[Any] = []
    for each in launch.arguments:
        if isinstance(each, tuple):
            arguments.append(Descriptor(addresses[each[0]], each[1]))
        else:
            arguments.append(addresses[each] if isinstance(each, str) else each)
    run(machine, case.compiled, launch.grid, arguments)
    for name, want in launch.want.items():
        if name in launch.bound:
            like = np.empty(want.shape, np.float32)
            found = contents(machine, addresses[name], like).astype(np.float64)
            worst = np.abs(found - want) / launch.bound[name].clip(1e-300)
            at = np.unravel_index(np.nanargmax(worst), worst.shape)
            assert np.isfinite(found).all(), f"{name} has a NaN or Inf"
            assert worst[at] <= 1, (
                f"{name}{list(map(int, at))}: {worst[at]:.3g} of the bound"
            )
        else:
            found = contents(machine, addresses[name], want)
            wrong = np.argwhere(found != want)
            where = list(map(int, wrong[0])) if len(wrong) else []
            assert not len(wrong), (
                f"{len(wrong)} of {want.size} differ, first {name}{where}"
            )
