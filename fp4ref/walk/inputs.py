"""inputs: the two matrices of a walk, from a file or at random.

Whatever else a file holds is refused with what it is, the rule and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.array_file import Declared, read_arrays, read_headers
from fp4ref.files.free_memory import require_memory
from fp4ref.gemm.problem import padded_k
from fp4ref.tensors.activations import MOST_ELEMENTS
from fp4ref.tensors.block_scaled import BlockScaled

F32 = NDArray[np.float32]
DEFAULT_INPUT = "minilm_ffn_down.npz"
REMEDY = (
    "save two float matrices, x (M, K) and w (N, K), with numpy.savez(file, x=x, w=w)"
)
_KIND = "no .npz file"
_WORDS = ("layer", "source", "text")
_BYTES_WHILE_READ = 16
"""Memory for each element while a matrix is read and rounded."""


@dataclass(frozen=True)
class Problem:
    """Two matrices for y = x @ w.T, and where they come from.

    Attributes
    ----------
    notes
        What was done to the matrices on the way, in sentences.
    quantised
        w as NVFP4, where it is stored so; `w` has its values then.
    """

    x: F32
    w: F32
    title: str
    source: str
    text: str = ""
    notes: tuple[str, ...] = ()
    quantised: BlockScaled | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(M, N, K)."""
        return self.x.shape[0], self.w.shape[0], self.x.shape[1]


@dataclass(frozen=True, slots=True)
class NonFinite:
    """NaN and Inf of a matrix: how many, and (row, k) of the first."""

    nan: int
    inf: int
    first_nan: tuple[int, int] | None
    first_inf: tuple[int, int] | None

    @classmethod
    def of(cls, matrix: F32) -> NonFinite:
        """Look for them."""
        nan, inf = np.isnan(matrix), np.isinf(matrix)
        return cls(int(nan.sum()), int(inf.sum()), _first(nan), _first(inf))


def _first(where: NDArray[np.bool_]) -> tuple[int, int] | None:
    if not where.any():
        return None
    row, column = divmod(int(where.argmax()), where.shape[1])
    return row, column


def load_problem(path: str | Path | None = None) -> Problem:
    """Read x and w from a file; the default is a layer of a real transformer.

    Parameters
    ----------
    path
        An .npz with float arrays ``x`` (M, K) and ``w`` (N, K), or ``x_bf16`` and
        ``w_bf16`` as uint16 bit patterns. float64 is rounded to float32.

    Raises
    ------
    InputError
        No such file, not an .npz, or without the arrays.
    """
    if path is None:
        with resources.as_file(resources.files("fp4ref.data") / DEFAULT_INPUT) as file:
            return load_problem(file)
    declared = read_headers(path, _KIND, REMEDY)
    chosen = [_choose(declared, name, path) for name in ("x", "w")]
    _check_shapes(path, [declared[name].shape for name in chosen])
    words = [
        name
        for name in _WORDS
        if name in declared
        and declared[name].dtype.kind == "U"
        and not declared[name].shape
    ]
    arrays = read_arrays(path, [*chosen, *words], _KIND, REMEDY)
    notes: list[str] = []
    x, w = (_float32(arrays[name], name, path, notes) for name in chosen)
    said = {name: _printable(str(arrays[name])) for name in words}
    return Problem(
        x,
        w,
        said.get("layer", _printable(Path(path).name)),
        said.get("source", _printable(str(path))),
        said.get("text", ""),
        tuple(notes),
    )


def _printable(text: str) -> str:
    """Leave out what would command a terminal, and what UTF-8 cannot hold."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _choose(declared: Mapping[str, Declared], name: str, path: str | Path) -> str:
    """Return the array that holds a matrix; raise `InputError` if none can."""
    bits = declared.get(f"{name}_bf16")
    if bits is not None and bits.dtype == np.uint16:
        return f"{name}_bf16"
    if bits is not None:
        raise InputError(
            f"{path}: {name}_bf16 is {bits.dtype}; it holds the bit patterns of "
            f"bfloat16, so save {name}.view(numpy.uint16)"
        )
    if (found := declared.get(name)) is None:
        names = ", ".join(_printable(held)[:40] for held in list(declared)[:20])
        raise InputError(
            f"{path} holds {names or 'nothing'}; it needs {name} (floats) or "
            f"{name}_bf16 (uint16 bit patterns): {REMEDY}"
        )
    if found.dtype.kind != "f":
        raise InputError(f"{path}: {name} is {_of_type(found.dtype, name)}")
    return name


def _of_type(dtype: np.dtype[Any], name: str) -> str:
    """Say what a type is, and how to make floats of it."""
    if dtype.hasobject:
        return (
            "an array of Python objects, which are never unpickled; save "
            f"numpy.asarray({name}.tolist(), numpy.float32)"
        )
    if dtype.kind == "c":
        return f"{dtype}; quantising takes real numbers, so save {name}.real"
    if dtype.kind in "biu":
        return (
            f"{dtype}; quantising takes floats, so save {name}.astype(numpy.float32). "
            "Codes that are quantised already go to fp4ref.BlockScaled"
        )
    if dtype.kind == "V" and dtype.itemsize == 2 and dtype.names is None:
        return (
            "of a type that NumPy does not know; if it is bfloat16, save "
            f"{name}_bf16={name}.view(numpy.uint16)"
        )
    return f"{dtype}, no numbers; save a matrix of float16, float32 or float64"


def _check_shapes(path: str | Path, shapes: list[tuple[int, ...]]) -> None:
    for name, shape in zip("xw", shapes, strict=True):
        extents = "(M, K)" if name == "x" else "(N, K)"
        if len(shape) != 2:
            raise InputError(
                f"{path}: {name} has shape {shape}; give a matrix {extents}, one of a "
                f"batch, or a vector as {name}.reshape(1, -1)"
            )
        if 0 in shape:
            raise InputError(
                f"{path}: {name} has shape {shape}; every size of {extents} is at "
                "least 1, and nothing is left to multiply"
            )
        if shape[0] * shape[1] > MOST_ELEMENTS:
            raise InputError(
                f"{path}: {name} has shape {shape}, more than {MOST_ELEMENTS:,} "
                "elements; save fewer rows, the tiles are alike"
            )
    x, w = shapes
    if x[1] != w[1]:
        turned = " w looks like (K, N): save w.T." if w[0] == x[1] else ""
        raise InputError(
            f"{path}: x is {x} and w is {w}; both need the same K, the last "
            f"dimension, because the product is x @ w.T.{turned}"
        )


def _float32(array: NDArray[Any], name: str, path: str | Path, notes: list[str]) -> F32:
    """Return a matrix as float32, and note what the rounding did."""
    require_memory(
        array.size * _BYTES_WHILE_READ, f"{path}: {name}", "Save fewer rows."
    )
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):  # what it does to the values is told below
        matrix = array.astype(np.float32)
    if array.dtype.itemsize <= 4:
        return matrix
    beyond = np.isinf(matrix) & np.isfinite(array)
    if (at := _first(beyond)) is not None:
        raise InputError(
            f"{path}: {name} holds {array[at]:g} at row {at[0]}, k {at[1]} "
            f"({int(beyond.sum())} such values), beyond float32's largest "
            f"{np.finfo(np.float32).max:.3g}; divide {name} by a power of two"
        )
    gone = int(((matrix == 0) & (array != 0)).sum())
    lost = f"; {gone} values are too small for it and become 0" if gone else ""
    notes.append(f"{name} is {array.dtype} and was rounded to float32{lost}")
    return matrix


def random_problem(m: int, n: int, k: int, seed: int = 0) -> Problem:
    """Return normal matrices whose rows differ widely in scale.

    Raises
    ------
    InputError
        A size is below 1 or beyond reason, or the seed is negative.
    """
    if min(m, n, k) < 1:
        raise InputError(f"size {m}x{n}x{k}: every size is at least 1")
    if max(m * k, n * k, m * n) > MOST_ELEMENTS:
        raise InputError(
            f"size {m}x{n}x{k}: a matrix of more than {MOST_ELEMENTS:,} elements; take "
            "smaller sizes, the tiles are alike"
        )
    if seed < 0:
        raise InputError(f"seed {seed}: a seed is 0 or more")
    check_k(k)
    require_memory(
        (m + n) * k * _BYTES_WHILE_READ, f"size {m}x{n}x{k}", "Take smaller sizes."
    )
    rng = np.random.default_rng(seed)

    def matrix(rows: int) -> F32:
        scale = np.exp2(rng.integers(-6, 7, (rows, 1))).astype(np.float32)
        return rng.standard_normal((rows, k), np.float32) * scale

    return Problem(matrix(m), matrix(n), f"random {m}x{n}x{k}", f"seed {seed}")


def check_k(k: int) -> None:
    """Raise `InputError` unless the kernel takes this K."""
    if k != padded_k(k):
        raise InputError(
            f"K = {k}: K is a multiple of {padded_k(1)}, because a row of packed E2M1 "
            "is a multiple of TMA's 16 bytes. Pad x and w with columns of zeros to K = "
            f"{padded_k(k)}; y does not change"
        )
