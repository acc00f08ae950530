"""arguments: what a launch passes to a tree's nodes, and what they leave behind.

A node that needs something of the launch says so by an `Argument`: it takes a field of
the parameter block, a slot, whose name says the kind of the node and the user's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_array, require_finite_float32
from fp4ref.errors import InputError
from fp4ref.gemm.params import Field, Kind
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.numerics import add_f32
from fp4ref.numerics.elements import ELEMENTS
from fp4ref.trace import RecordedResult

BLOCK = 16
"""Rows, and columns, that a warp adds up before it leaves a partial sum: those of the
narrowest subtile, so that no tile changes the order."""
ROW_ALIGNMENT = 16
"""Bytes to which a row of an aux tensor is padded: those of one access."""
Shape = tuple[int, int, int]
"""(L, M, N) of D."""


@dataclass(frozen=True)
class Argument(ABC):
    """One slot of the parameter block.

    Attributes
    ----------
    name
        The user's.
    slot
        Name of the field.
    """

    name: str
    slot: str

    kind = Kind.ADDRESS

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What it is."""

    @property
    def field(self) -> Field:
        """The field of the parameter block."""
        return Field(
            self.slot, self.kind, self.sentence, lambda p: p.arguments[self.slot]
        )

    @abstractmethod
    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> Any:
        """Return the field's value, after what it points to has got its memory.

        Parameters
        ----------
        given
            What the user passes under the name; None for nothing.

        Raises
        ------
        InputError
            It is missing, or not what the node takes.
        """

    def result(self, gmem: GlobalMemory, address: int, shape: Shape) -> Any:
        """Return what the kernel left; None for an argument that is read."""
        return None

    def recorded(self, shape: Shape) -> RecordedResult | None:
        """Say how that lies in memory."""
        return None


@dataclass(frozen=True)
class ScalarArgument(Argument):
    """A float32.

    Attributes
    ----------
    default
        Its value if none is passed; None requires one.
    """

    default: float | None = None
    kind = Kind.F32

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"the number {self.name}"

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> Any:
        """Return the number."""
        if given is None and self.default is None:
            raise InputError(
                f"the tree has scalar({self.name!r}), and arguments has no "
                f"{self.name!r}; pass arguments={{{self.name!r}: 1.0}}"
            )
        value = self.default if given is None else given
        return require_finite_float32(value, self.name)


@dataclass(frozen=True)
class VectorArgument(Argument):
    """A float32 for each column, or for each row.

    Attributes
    ----------
    axis
        Of (L, M, N) that it runs along.
    """

    axis: int = 2
    kind = Kind.POINTER

    @property
    def sentence(self) -> str:
        """What it is."""
        along = ("batch", "row", "column")[self.axis]
        return f"a number for each {along} of D in memory, {self.name}"

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Upload the numbers."""
        length = shape[self.axis]
        what = f"{self.name}: the tree takes float32 ({length},)"
        vector = _given(given, what)
        if vector.shape != (length,) or vector.dtype != np.float32:
            raise InputError(f"{what}, and got {vector.dtype} {vector.shape}")
        return gmem.upload(self.slot, vector)


@dataclass(frozen=True)
class _Tensor(Argument):
    """A tensor of D's shape, its rows padded to whole accesses.

    Attributes
    ----------
    element
        Name of its format; ``"u1"`` is a bit for each element.
    m_major
        Whether it lies in rows of M elements, as D does.
    """

    element: str = "f32"
    m_major: bool = False

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"M x N elements of {self.element}, {self.name}"

    def _of_user(self, shape: Shape) -> Shape:
        """(L, M, N), of the shape in memory."""
        batches, rows, columns = shape
        return (batches, columns, rows) if self.m_major else shape

    def _row_nbytes(self, shape: Shape) -> int:
        return row_nbytes(self.element, shape[2])

    @property
    def _dtype(self) -> np.dtype[Any]:
        if self.element == "u1":
            return np.dtype(np.bool_)
        named = ELEMENTS[self.element]
        return np.dtype(named.dtype or named.code_dtype)


@dataclass(frozen=True)
class TensorArgument(_Tensor):
    """A tensor that is read."""

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Upload it."""
        batches, m, n = self._of_user(shape)
        what = f"{self.name}: the tree takes {self._dtype} {m, n}"
        tensor = _given(given, what)
        if tensor.dtype == np.uint16 and self._dtype == ml_dtypes.bfloat16:
            tensor = tensor.view(self._dtype)
        if tensor.dtype != self._dtype or tensor.shape not in ((batches, m, n), (m, n)):
            raise InputError(f"{what}, and got {tensor.dtype} {tensor.shape}")
        tensor = tensor.reshape(batches, m, n)
        tensor = np.ascontiguousarray(tensor.swapaxes(1, 2) if self.m_major else tensor)
        codes = tensor.view(np.uint8)
        if self.element == "u1":
            codes = np.packbits(tensor, axis=-1, bitorder="little")
        padded = np.zeros((*shape[:2], self._row_nbytes(shape)), np.uint8)
        padded[..., : codes.shape[-1]] = codes
        return gmem.upload(self.slot, padded)


@dataclass(frozen=True)
class TensorResult(_Tensor):
    """A tensor that is written."""

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Make room."""
        _refuse(given, self.name)
        return gmem.allocate(self.slot, shape[0] * shape[1] * self._row_nbytes(shape))

    def result(self, gmem: GlobalMemory, address: int, shape: Shape) -> NDArray[Any]:
        """Return what was stored, (L, M, N); 0 where nothing was."""
        raw = _stored(gmem, address, (*shape[:2], self._row_nbytes(shape)))
        if self.element == "u1":
            bits = np.unpackbits(raw, axis=-1, bitorder="little")
            stored = bits[..., : shape[2]].astype(np.bool_)
        else:
            stored = raw.view(self._dtype)[..., : shape[2]]
        return stored.swapaxes(1, 2) if self.m_major else stored

    def recorded(self, shape: Shape) -> RecordedResult:
        """Say how it lies in memory."""
        return RecordedResult(self.element, shape, self._row_nbytes(shape))


@dataclass(frozen=True)
class MaximumResult(Argument):
    """Absolute maxima: one, or one for each column or row.

    Attributes
    ----------
    axis
        Of (L, M, N) that is kept; None keeps none.
    """

    axis: int | None = None

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"absolute maxima, {self.name}"

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Make room for the maxima of nothing, which are 0."""
        _refuse(given, self.name)
        count = 1 if self.axis is None else shape[self.axis]
        return gmem.upload(self.slot, np.zeros(count, np.float32))

    def result(self, gmem: GlobalMemory, address: int, shape: Shape) -> NDArray[Any]:
        """Return the maxima: (), (N,) or (M,)."""
        count = 1 if self.axis is None else shape[self.axis]
        found = gmem.contents(address, 4 * count).view(np.float32).copy()
        return found.reshape(()) if self.axis is None else found

    def recorded(self, shape: Shape) -> RecordedResult:
        """Say how they lie in memory: in one row, or in one column."""
        kept = [i == self.axis for i in range(3)]
        batches, rows, columns = (
            n if keeps else 1 for n, keeps in zip(shape, kept, strict=True)
        )
        part = [1 if keeps else n for n, keeps in zip(shape, kept, strict=True)]
        return RecordedResult(
            "f32",
            (batches, rows, columns),
            4 * columns,
            (part[0], part[1], part[2]),
            of_all_batches=True,
        )


@dataclass(frozen=True)
class SumResult(Argument):
    """Float32 sums of blocks of 16, which the host adds up in their order.

    Attributes
    ----------
    rows, columns
        Whether the sum goes over the rows, and over the columns.
    m_major
        Whether the columns of memory are D's rows, which are added last.
    """

    rows: bool = True
    columns: bool = False
    m_major: bool = False

    @property
    def sentence(self) -> str:
        """What it is."""
        return f"sums of {BLOCK}, {self.name}"

    def _partial(self, shape: Shape) -> Shape:
        """(L, M or its blocks, N or its blocks)."""
        batches, m, n = shape
        return (
            batches,
            -(-m // BLOCK) if self.rows else m,
            -(-n // BLOCK) if self.columns else n,
        )

    def place(self, gmem: GlobalMemory, given: Any, shape: Shape) -> int:
        """Make room for the sums of the blocks."""
        _refuse(given, self.name)
        batches, m, n = self._partial(shape)
        return gmem.allocate(self.slot, 4 * batches * m * n)

    def result(self, gmem: GlobalMemory, address: int, shape: Shape) -> NDArray[Any]:
        """Add the blocks: along a row first, then the rows, then the batches.

        Returns
        -------
        NDArray
            (), (N,) or (M,).
        """
        batches, m, n = self._partial(shape)
        partial = _stored(gmem, address, (batches, m, 4 * n)).view(np.float32)
        if self.m_major:
            partial = partial.swapaxes(1, 2)
        if self.columns:
            partial = _added(np.moveaxis(partial, 2, 0))[..., None]
        if self.rows:
            partial = _added(np.moveaxis(partial, 1, 0))[:, None]
        total = _added(partial)
        return total.reshape(() if self.rows and self.columns else -1)

    def recorded(self, shape: Shape) -> RecordedResult:
        """Say how the sums of the blocks lie in memory."""
        partial = self._partial(shape)
        part = 1, BLOCK if self.rows else 1, BLOCK if self.columns else 1
        return RecordedResult("f32", partial, 4 * partial[2], part)


def row_nbytes(element: str, columns: int) -> int:
    """Bytes from one row of an aux tensor to the next."""
    bits = 1 if element == "u1" else ELEMENTS[element].bits
    return -(-columns * bits // (8 * ROW_ALIGNMENT)) * ROW_ALIGNMENT


def _given(value: Any, what: str) -> NDArray[Any]:
    if value is None:
        raise InputError(f"{what}, and nothing was passed; pass it in arguments")
    return require_array(value, what.partition(":")[0])


def _refuse(value: Any, name: str) -> None:
    if value is not None:
        raise InputError(
            f"{name}: the tree writes it, so nothing is passed; take it out of "
            "arguments and read it from the run"
        )


def _stored(
    gmem: GlobalMemory, address: int, shape: tuple[int, int, int]
) -> NDArray[np.uint8]:
    """Return the bytes of an allocation, 0 where nothing was stored."""
    first, nbytes = address - gmem.base, int(np.prod(shape))
    written = gmem.written[first : first + nbytes]
    raw = np.where(written, gmem.contents(address, nbytes), 0)
    return raw.astype(np.uint8).reshape(shape)


def _added(parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add along the first axis, one after another."""
    return reduce(add_f32, parts)
