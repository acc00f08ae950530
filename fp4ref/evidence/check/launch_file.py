"""launch_file: a `Launch` from a TOML file."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.evidence.check.launch import (
    DTYPES,
    MAP_TYPES,
    SWIZZLES,
    Buffer,
    Launch,
    MapOf,
    Param,
    Pointer,
    Scalar,
    Struct,
    Tolerance,
    Value,
)
from fp4ref.evidence.check.table import Table, read_toml
from fp4ref.files.array_file import read_npy
from fp4ref.files.free_memory import require_memory
from fp4ref.hardware.machine import MOST_SMS
from fp4ref.hardware.shared_memory import NBYTES
from fp4ref.trace import Dim3

_MOST_NBYTES = 1 << 34


def read_launch(path: str | Path) -> Launch:
    """Read a launch file; files that it names are looked for beside it.

    Raises
    ------
    InputError
        In words, with the line.
    """
    path = Path(path)
    table = read_toml(path)
    buffers = {}
    held = table.inner("buffer")
    for name in held.values if held else ():
        buffer = held.inner(name) if held else None
        if buffer is not None:
            buffers[name] = _buffer(name, buffer, path.parent)
    total = sum(each.nbytes for each in buffers.values())
    require_memory(4 * total, f"the buffers of {path}", "Launch with smaller ones.")
    launch = Launch(
        grid=_dim3(table, "grid", 1 << 31),
        block=_dim3(table, "block", 1024),
        params=tuple(_param(each, path.parent) for each in table.each("param")),
        buffers=buffers,
        entry=table.take("entry", str),
        cluster=_dim3(table, "cluster", 16),
        smem_nbytes=table.whole("shared", 0, 0, NBYTES),
        nonportable=table.take("nonportable", bool, False),
        sms=table.whole("sms", 0, 1, MOST_SMS) if "sms" in table.values else None,
        source=str(path),
    )
    table.take("sms", int)
    table.done()
    return launch


def _dim3(table: Table, key: str, most: int) -> Dim3:
    if key in ("grid", "block"):
        table.need(key, list)
    found = table.wholes(key, (1,), most=most)
    if not 1 <= len(found) <= 3:
        raise table.error(f"{key} has {len(found)} extents; 1 to 3", key)
    return cast("Dim3", (*found, 1, 1)[:3])


def _param(table: Table, folder: Path) -> Param:
    name = table.take("name", str, "")
    value = _value(table, folder)
    table.done()
    return Param(value, name, table.where())


def _value(table: Table, folder: Path) -> Value:
    """Return the one value of a parameter or of a field of a struct."""
    kinds = [*DTYPES, "buffer", "tensor_map", "bytes", "zeros", "file"]
    given = [key for key in table.values if key in kinds]
    if len(given) != 1:
        had = " and ".join(given) if given else "none"
        raise table.error(
            f"a parameter has one value, and here is {had}: a type (u32 = 5, f32 = "
            "1.5), buffer, tensor_map, bytes, zeros or file"
        )
    key = given[0]
    if key in DTYPES:
        is_float = key[0] == "f" or key == "bf16"
        value = Scalar(key, table.need(key, float if is_float else int))
        try:
            value.encode({})
        except InputError as error:
            raise table.error(str(error), key) from None
        return value
    if key == "buffer":
        offset = table.whole("offset", 0, 0, _MOST_NBYTES)
        return Pointer(table.need("buffer", str), offset)
    if key == "tensor_map":
        return _map(cast("Table", table.inner("tensor_map")))
    fields = []
    for each in table.each("field"):
        at = each.whole("at", -1, 0, 1 << 16)
        fields.append((at, _value(each, folder)))
        each.done()
    return Struct(_struct(table, key, folder), tuple(fields))


def _struct(table: Table, key: str, folder: Path) -> bytes:
    """Bytes of a struct, as written."""
    if key == "zeros":
        return bytes(table.whole("zeros", 0, 1, 1 << 16))
    if key == "file":
        return _npy(table, "file", folder).tobytes()
    try:
        return bytes.fromhex(table.need("bytes", str))
    except ValueError:
        raise table.error("bytes: need pairs of hexadecimal digits", "bytes") from None


def _map(table: Table) -> MapOf:
    dims = table.wholes("dims", ())
    found = MapOf(
        table.need("buffer", str),
        MAP_TYPES[table.choice("type", MAP_TYPES)],
        dims,
        table.wholes("strides", (), 0),
        table.wholes("box", ()),
        SWIZZLES[table.choice("swizzle", SWIZZLES, 0)],
        table.wholes("element_strides", (1,) * len(dims)),
        table.whole("interleave", 0, 0, 2),
        table.take("oob_nan", bool, False),
        table.whole("offset", 0, 0, _MOST_NBYTES),
    )
    table.done()
    try:
        found.encode({found.buffer: 0x7F00_0000_0000})
    except InputError as error:
        raise table.error(str(error)) from None
    return found


def _npy(table: Table, key: str, folder: Path) -> NDArray[Any]:
    try:
        array = read_npy(folder / table.need(key, str))
    except InputError as error:
        raise table.error(str(error), key) from None
    if array.dtype.kind not in "biufV" or array.dtype.names:
        raise table.error(f"{key}: elements of {array.dtype}; need numbers", key)
    return np.ascontiguousarray(array)


def _buffer(name: str, table: Table, folder: Path) -> Buffer:
    data = _npy(table, "file", folder) if "file" in table.values else None
    dtype = DTYPES[table.choice("dtype", DTYPES, "u8")]
    if data is not None:
        shape = data.shape
        dtype = dtype if "dtype" in table.values else data.dtype
        if "shape" in table.values or "zeros" in table.values:
            raise table.error("file says what the buffer holds; leave shape and zeros")
        if dtype.itemsize != data.dtype.itemsize:
            raise table.error(f"dtype {dtype} for a file of {data.dtype}", "dtype")
    else:
        shape = table.wholes("shape", (), 1, _MOST_NBYTES)
        if not shape:
            raise table.error("a buffer has a file, or a shape (and a dtype)")
    nbytes = prod(shape) * dtype.itemsize
    if not 0 < nbytes <= _MOST_NBYTES:
        raise table.error(f"{nbytes:,} bytes; 1 to {_MOST_NBYTES:,}", "shape")
    if data is None and table.take("zeros", bool, False):
        require_memory(nbytes, f"buffer {name}", "Take a smaller one.")
        data = np.zeros(nbytes, np.uint8)
    table.take("zeros", bool), table.take("shape", list), table.take("file", str)
    expected, tolerance = _expected(table, folder, nbytes)
    if expected is not None:
        dtype, shape = expected.dtype, expected.shape
    out = table.take("out", str)
    table.done()
    raw = None if data is None else data.reshape(-1).view(np.uint8)
    where = None if out is None else folder / out
    return Buffer(name, nbytes, dtype, shape, raw, where, expected, tolerance)


def _expected(
    table: Table, folder: Path, nbytes: int
) -> tuple[NDArray[Any] | None, Tolerance | None]:
    """What a buffer should hold, and how near."""
    bits = table.take("bits", bool, False)
    near = "rtol" in table.values or "atol" in table.values
    try:
        tolerance = Tolerance(
            table.take("rtol", float, 0.0), table.take("atol", float, 0.0)
        )
    except InputError as error:
        raise table.error(str(error), "rtol") from None
    if bits and near:
        raise table.error("bits, or rtol and atol; not both", "bits")
    if "expected" not in table.values:
        return None, tolerance if near else None
    expected = _npy(table, "expected", folder)
    if not (bits or near):
        raise table.error(
            "expected: say how near it must be: bits = true, or rtol and atol",
            "expected",
        )
    if expected.nbytes != nbytes:
        raise table.error(
            f"expected has {expected.nbytes:,} bytes, the buffer {nbytes:,}", "expected"
        )
    return expected, tolerance if near else None
