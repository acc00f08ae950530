"""launch: what a kernel is launched with: its shape, its parameters and its buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError, TensorMapError
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.ptx import Program
from fp4ref.trace import Dim3

MOST_CTAS = 1 << 16
"""CTAs of a grid: each takes the machine a good part of a second."""

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{f"{kind}{bits}": np.dtype(f"<{letter}{bits // 8}")
       for kind, letter in (("u", "u"), ("s", "i"), ("b", "u"))
       for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
"""Types of scalars and of elements, by PTX's names."""

MAP_TYPES: Mapping[str, DataType] = {each.name.lower(): each for each in DataType}
"""Element types of a tensor map, by the names of cuda.h."""

SWIZZLES: Mapping[int | str, SwizzleMode] = {
    0: SwizzleMode.NONE,
    32: SwizzleMode.B32,
    64: SwizzleMode.B64,
    128: SwizzleMode.B128,
    "128_atom_32": SwizzleMode.B128_ATOM_32B,
}
"""Swizzles of a tensor map, by their span in bytes."""

Addresses = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of a PTX type."""

    kind: str
    value: int | float

    def encode(self, addresses: Addresses) -> bytes:
        """Return its bytes."""
        dtype = DTYPES[self.kind]
        if dtype.kind in "iu":
            if not isinstance(self.value, int) or isinstance(self.value, bool):
                raise InputError(f"{self.kind} = {self.value!r}: a whole number")
            low = -(1 << 8 * dtype.itemsize - 1)
            if not low <= self.value < 1 << 8 * dtype.itemsize:
                raise InputError(f"{self.value} does not fit {self.kind}")
            return (self.value % (1 << 8 * dtype.itemsize)).to_bytes(
                dtype.itemsize, "little"
            )
        return np.array(self.value).astype(dtype).tobytes()


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of a buffer, or of a byte in it."""

    buffer: str
    offset: int = 0

    def encode(self, addresses: Addresses) -> bytes:
        """Return its bytes."""
        return (_address(self.buffer, addresses) + self.offset).to_bytes(8, "little")


@dataclass(frozen=True, slots=True)
class Struct:
    """A by-value struct: bytes, and values put at offsets in them."""

    data: bytes
    fields: tuple[tuple[int, Value], ...] = ()

    def encode(self, addresses: Addresses) -> bytes:
        """Return its bytes."""
        block = bytearray(self.data)
        for at, value in self.fields:
            part = value.encode(addresses)
            if at + len(part) > len(block):
                raise InputError(
                    f"{len(part)} bytes at {at} of a struct of {len(block)}"
                )
            block[at : at + len(part)] = part
        return bytes(block)


@dataclass(frozen=True, slots=True)
class MapOf:
    """The 128 bytes that ``cuTensorMapEncodeTiled`` makes of a buffer.

    Attributes
    ----------
    dims, box
        Elements, fastest dimension first.
    strides
        Bytes, for dimensions 1 and up.
    """

    buffer: str
    data_type: DataType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: SwizzleMode = SwizzleMode.NONE
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    oob_nan: bool = False
    offset: int = 0

    def encode(self, addresses: Addresses) -> bytes:
        """Return its bytes."""
        try:
            return TensorMap(
                self.data_type,
                _address(self.buffer, addresses) + self.offset,
                self.dims,
                self.strides,
                self.box,
                self.element_strides,
                self.interleave,
                self.swizzle,
                oob_nan=self.oob_nan,
            ).to_bytes()
        except TensorMapError as error:
            raise InputError(f"tensor map of {self.buffer}: {error}") from None


Value = Scalar | Pointer | Struct | MapOf


def _address(name: str, addresses: Addresses) -> int:
    if name not in addresses:
        known = ", ".join(addresses) or "none"
        raise InputError(f"there is no buffer {name!r}; there is {known}")
    return addresses[name]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be: ``|found - expected| <= atol + rtol * |expected|``."""

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        for each in (self.rtol, self.atol):
            if not 0 <= each < float("inf"):
                raise InputError(f"a tolerance of {each}; 0 or more, and finite")


@dataclass(frozen=True)
class Buffer:
    """A piece of global memory.

    Attributes
    ----------
    data
        Its bytes before the launch, uint8 (nbytes,); None leaves them undefined.
    dtype, shape
        How its contents are shown and compared.
    out
        Where it is written to after the run.
    expected
        What it holds after a right run; bits are compared without a `tolerance`.
    """

    name: str
    nbytes: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: NDArray[np.uint8] | None = None
    out: Path | None = None
    expected: NDArray[Any] | None = None
    tolerance: Tolerance | None = None

    @property
    def is_result(self) -> bool:
        """Whether somebody asked for what it holds after the launch."""
        return self.out is not None or self.expected is not None

    def typed(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return bytes as the buffer's elements."""
        return data.view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Param:
    """A parameter of the entry, in its place; `where` says where it was written."""

    value: Value
    name: str = ""
    where: str = ""


@dataclass(frozen=True)
class Launch:
    """A launch of one kernel.

    Attributes
    ----------
    entry
        Name in the PTX text; None for the only one.
    grid, cluster
        Extents in CTAs, x fastest.
    block
        Extents in threads.
    smem_nbytes
        Dynamic shared memory.
    nonportable
        Whether a cluster may have more than 8 CTAs.
    sms
        SMs of the machine; None for 2, or as many as a cluster has CTAs.
    source
        Where it was read from, for messages.
    """

    grid: Dim3
    block: Dim3
    params: tuple[Param, ...]
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    entry: str | None = None
    cluster: Dim3 = (1, 1, 1)
    smem_nbytes: int = 0
    nonportable: bool = False
    sms: int | None = None
    source: str = "the launch"

    @property
    def machine_sms(self) -> int:
        """How many SMs the machine has."""
        return self.sms if self.sms is not None else max(2, prod(self.cluster))

    def check(self, program: Program) -> None:
        """Refuse what the entry cannot take; addresses do not matter for that.

        Raises
        ------
        InputError
            In words what does not fit.
        """
        name = program.entry.name[:60]
        if prod(self.grid) > MOST_CTAS:
            raise InputError(
                f"{self.source}: a grid of {prod(self.grid):,} CTAs; at most "
                f"{MOST_CTAS:,}. Launch a part of it: each CTA is emulated"
            )
        declared = program.entry.params
        if len(self.params) != len(declared):
            raise InputError(
                f"{self.source}: {len(self.params)} parameters; {name} takes "
                f"{len(declared)}: {', '.join(v.name for v in declared) or 'none'}"
            )
        addresses = dict.fromkeys(self.buffers, 139637976727552)
        for param, variable in zip(self.params, declared, strict=True):
            where = f"{param.where or self.source}: parameter {variable.name}"
            if param.name and param.name != variable.name:
                raise InputError(f"{where} stands where the launch has {param.name}")
            try:
                data = param.value.encode(addresses)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            if len(data) != variable.nbytes:
                raise InputError(
                    f"{where} has {variable.nbytes} bytes (.{variable.kind}); the "
                    f"launch gives {len(data)}"
                )
            self._check_kind(param.value, variable.kind, where)

    def _check_kind(self, value: Value, kind: str, where: str) -> None:
        """Refuse a whole number for a float, and a float for a whole number."""
        if isinstance(value, Scalar) and kind[0] in "usf":
            given = DTYPES[value.kind].kind
            if (kind[0] == "f") != (given in "fV"):
                raise InputError(f"{where} is .{kind}; the launch gives {value.kind}")

    def block_of_params(self, program: Program, addresses: Addresses) -> bytes:
        """Return the kernel's parameter block, as the entry lays it out."""
        block = bytearray(program.param_nbytes)
        for param, variable in zip(self.params, program.entry.params, strict=True):
            at = program.param_offsets[variable.name]
            block[at : at + variable.nbytes] = param.value.encode(addresses)
        return bytes(block)
