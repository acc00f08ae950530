"""matrix_element: the element of a matrix that a byte of a hardware event holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fp4ref.evidence.hardware_events import HardwareEvent
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.hardware.tensor_memory import CELL_NBYTES
from fp4ref.layout import SwizzleMode
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_NBYTES, ATOM_ROWS
from fp4ref.layout.tmem_scales import LANES_PER_QUARTER
from fp4ref.numerics import ScaleFormat, decode_e2m1
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import element
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.trace.recorded_plan import has_lanes_of_n, is_m_major

_Reader = Callable[[Trace, HardwareEvent, int, int], tuple[str, str]]


def element_at(
    trace: Trace, event: HardwareEvent, row: int, at: int
) -> tuple[str, str]:
    """Return the place of the element in its matrix, and its value, in words.

    Parameters
    ----------
    row, at
        Of the byte in the event's data.
    """
    read = _READERS.get(event.key.tensor, _plain)
    return read(trace, event, row, at)


def scale_in_atom(byte: int) -> tuple[int, int]:
    """Return the row and the column of the scale at a byte of a 128x4 atom."""
    line, at = divmod(byte, ATOM_NBYTES // LANES_PER_QUARTER)
    quarter, column = divmod(at, ATOM_COLS)
    return line + quarter * LANES_PER_QUARTER, column


def sf_vec_size(trace: Trace) -> int:
    """Elements of K with one scale: by the plan, or as an atom serves one MMA."""
    p = RecordedPlan.of(trace.meta)
    return p.sf_vec_size if p else MMA_K // ATOM_COLS


def _mma_k(trace: Trace) -> int:
    p = RecordedPlan.of(trace.meta)
    return p.mma_k if p else MMA_K


def _operand(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """Codes of A or B, in a swizzled stage."""
    operands: Mapping[str, Any] = e.event.operands
    base = operands["smem"] & 0xFFFFFF
    swizzle = SwizzleMode(operands["swizzle"]).swizzle
    of = _format(trace, e.key.tensor)
    padded = of.bits < 8 and operands["box"][0] == _PADDED_BOX
    row_nbytes = operands["box"][0] * (8 if padded else of.bits) // 8
    tile_row, byte = divmod(swizzle(base + at) - base, row_nbytes)
    value = int(e.data[row, at])
    if padded or of.bits >= 8:
        first, last = _elements_of(byte, of.bits)
        k = operands["coords"][0]
        return (
            f"row {operands['coords'][1] + tile_row}, k {k + first}"
            + (f" to {k + last}" if last > first else ""),
            f"byte {value:#04x} of {of.name.upper()}",
        )
    low, high = decode_e2m1(np.array([value & 15, value >> 4], np.uint8))
    k = operands["coords"][0] + 2 * byte
    return (
        f"row {operands['coords'][1] + tile_row}, k {k} and {k + 1}",
        f"{value:#04x} = codes {value & 15:#x}, {value >> 4:#x} = {low:g}, {high:g}",
    )


_PADDED_BOX = 128
"""Elements of a row of padded types, always."""


def _format(trace: Trace, tensor: str) -> Element:
    """Format of A or B: by the plan, or that of the default."""
    name = (trace.meta.get("plan") or {}).get(f"{tensor.lower()}_format", "nvfp4")
    return element(name)


def _elements_of(byte: int, bits: int) -> tuple[int, int]:
    """First and last element that a byte of a row holds; padding counts as the last."""
    if bits >= 8:
        return byte * 8 // bits, byte * 8 // bits
    chunk, at = divmod(byte, 16)
    first, last = (min((at * 8 + bit) // bits, 15) for bit in (0, 7))
    return 16 * chunk + first, 16 * chunk + last


def _scale(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """Scale code in a stage: whole 128x4 atoms."""
    atom, inside = divmod(at, ATOM_NBYTES)
    m, column = scale_in_atom(inside)
    block = e.event.operands["coords"][-2] * ATOM_ROWS
    vec = sf_vec_size(trace)
    k = e.key.k + vec * (ATOM_COLS * atom + column)
    return (
        f"scale of row {block + m}, k {k} to {k + vec - 1}",
        _scale_value(trace, int(e.data[row, at])),
    )


def _scale_in_tmem(
    trace: Trace, e: HardwareEvent, row: int, at: int
) -> tuple[str, str]:
    """Scale code after the copy to TMEM."""
    column, byte = divmod(at, CELL_NBYTES)
    m = row % LANES_PER_QUARTER + column * LANES_PER_QUARTER
    vec = sf_vec_size(trace)
    k = e.key.k + vec * (ATOM_COLS * e.key.block + byte)
    return (
        f"lane {row}, column +{column}: scale of tile row {m}, k {k} to {k + vec - 1}",
        _scale_value(trace, int(e.data[row, at])),
    )


def _accumulator(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """float32 in TMEM."""
    column = at // CELL_NBYTES
    word = e.data[row, column * CELL_NBYTES : (column + 1) * CELL_NBYTES]
    bits = int.from_bytes(word.tobytes(), "little")
    value = np.uint32(bits).view(np.float32)
    m, n = (column, row) if has_lanes_of_n(trace.meta) else (row, column)
    return (
        f"row {e.key.m + m}, column {e.key.n + n} after k "
        f"{e.key.k + _mma_k(trace) * (e.key.block + 1)}",
        f"{bits:#010x} = {value!r}",
    )


def _source(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """One element of C, in a swizzled stage."""
    operands: Mapping[str, Any] = e.event.operands
    nbytes = operands["bits"] // 8
    base = operands["smem"] & 0xFFFFFF
    swizzle = SwizzleMode(operands["swizzle"]).swizzle
    byte = swizzle(base + at) - base
    tile_row, column = divmod(byte // nbytes, operands["box"][0])
    first = at // nbytes * nbytes
    bits = int.from_bytes(e.data[row, first : first + nbytes].tobytes(), "little")
    return (
        _in_d(trace, e, tile_row, column),
        f"{bits:#0{2 * nbytes + 2}x}",
    )


def _plain(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """Bytes of D, in the order of the event."""
    bits = e.event.operands["bits"]
    where = f"byte {at}"
    for written in e.event.writes:
        if at < written.size:
            tile_row, byte = divmod(at, written.nbytes)
            where = _in_d(trace, e, tile_row, byte * 8 // bits)
            break
        at -= written.size
    return where, f"{int(e.data[row, at]):#04x}"


def _in_d(trace: Trace, e: HardwareEvent, line: int, at: int) -> str:
    """Name an element of a box of C or D: `at` counts along a line of memory."""
    m, n = (at, line) if is_m_major(trace.meta) else (line, at)
    return f"row {e.key.m + m}, column {e.key.n + n}"


def _scale_value(trace: Trace, code: int) -> str:
    scale_format = ScaleFormat[trace.meta.get("scale_format", "UE4M3")]
    value = scale_format.decode(np.array([code], np.uint8))[0]
    return f"{code:#04x} = {value:g}"


_READERS: dict[str, _Reader] = {
    "A": _operand,
    "B": _operand,
    "SFA": _scale,
    "SFB": _scale,
    "SFA in TMEM": _scale_in_tmem,
    "SFB in TMEM": _scale_in_tmem,
    "accumulator": _accumulator,
    "C": _source,
}
