"""written_arrays: what ordinary stores write, compared at the end of two traces.

These are the scales of D, and what the nodes of the epilogue's tree leave: auxiliary
tensors, masks, sums and maxima. No event brings them by boxes, so an array is compared
as a whole, and the event that last wrote the first byte that differs is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.difference import Difference
from fp4ref.evidence.hardware_events import Key
from fp4ref.evidence.matrix_element import scale_in_atom
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_NBYTES, ATOM_ROWS
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.trace import Bytes, Event, Range, RecordedResult, Trace
from fp4ref.trace.recorded_plan import is_m_major

SCALES = "SFD"
_Number = tuple[int, int, int]
"""Batch, row and column of a number in its array."""


class _Place(NamedTuple):
    """Where something is: its corner in D, -1 where it has none, and words."""

    m: int
    n: int
    batch: int
    words: str


def compare_arrays(
    traces: Sequence[Trace], counts: dict[str, int]
) -> Difference | None:
    """Compare every array of two traces; `counts` gets those that are equal, by name.

    A name is ``SFD``, or a node's kind and the user's name: ``aux y``, ``mask m``,
    ``sum bias``, ``amax d``.
    """
    a, b = traces
    difference = _scales(a, b, counts)
    mine, theirs = (RecordedResult.all_of(trace.meta) for trace in (a, b))
    for slot in dict.fromkeys([*mine, *theirs]):
        one, other = mine.get(slot), theirs.get(slot)
        difference = difference or _result(a, b, slot, one, other)
        if difference is None:
            counts[_name(slot)] = 1
    return difference


def _name(slot: str) -> str:
    return slot.replace("_", " ", 1)


def _allocation(trace: Trace, name: str) -> Range | None:
    for found, address, nbytes in trace.meta.get("allocations", []):
        if found == name:
            return Range("gmem", address, nbytes)
    return None


def _final(trace: Trace, where: Range) -> Bytes:
    """Return what a range holds at the end."""
    final: Bytes = trace.at(len(trace) - 1).read(where)[0].ravel()
    return final


def _writer(trace: Trace, where: Range) -> Event | None:
    """Return the last event that wrote to a range, if any did."""
    for event in reversed(trace.events):
        if any(written.overlaps(where) for written in event.writes):
            return event
    return None


# -- the scales of D ---------------------------------------------------------------


def _scales(a: Trace, b: Trace, counts: dict[str, int]) -> Difference | None:
    where = _allocation(a, SCALES), _allocation(b, SCALES)
    if where[0] is None or where[1] is None:
        return None
    final = _final(a, where[0]), _final(b, where[1])
    unequal = np.flatnonzero(final[0] != final[1])
    if not unequal.size:
        counts[SCALES] = 1
        return None
    at = int(unequal[0])
    m, n, batch, words = _scale_at(a, at)
    bytes_at = (Range("gmem", each.start + at, 1) for each in where if each)
    events = [_writer(*pair) for pair in zip((a, b), bytes_at, strict=True)]
    values = [f"{data[at]:#04x}" for data in final]
    key = Key(SCALES, m, n, -1, batch)
    return Difference(key, words, (values[0], values[1]), (events[0], events[1]))


def _scale_at(trace: Trace, at: int) -> _Place:
    """Name the scale at a byte of SFD: of a row of D in memory."""
    shape, vec = trace.meta["shape"], NVFP4_VEC_SIZE
    of_columns = is_m_major(trace.meta)
    rows, columns = (shape["n"], shape["m"]) if of_columns else (shape["m"], shape["n"])
    blocks_of_rows = -(-rows // ATOM_ROWS)
    atoms_of_row = -(-columns // (vec * ATOM_COLS))
    atom, inside = divmod(at, ATOM_NBYTES)
    block, atom = divmod(atom, atoms_of_row)
    batch, block = divmod(block, blocks_of_rows)
    row, column = scale_in_atom(inside)
    row += block * ATOM_ROWS
    first = (atom * ATOM_COLS + column) * vec
    of = f"byte {at}: scale of"
    if of_columns:
        words = f"{of} column {row}, rows {first} to {first + vec - 1}"
        return _Place(first, row, batch, words)
    words = f"{of} row {row}, columns {first} to {first + vec - 1}"
    return _Place(row, first, batch, words)


# -- what nodes leave --------------------------------------------------------------


def _result(
    a: Trace,
    b: Trace,
    slot: str,
    mine: RecordedResult | None,
    theirs: RecordedResult | None,
) -> Difference | None:
    """Compare what one node left."""
    if mine is None or theirs is None or mine != theirs:
        alone = mine is None or theirs is None
        words = "present in one run only" if alone else "layouts differ"
        forms = [_form(each) for each in (mine, theirs)]
        key = Key(_name(slot), -1, -1, -1, -1)
        return Difference(key, words, (forms[0], forms[1]), (None, None))
    traces = a, b
    where = [Range("gmem", _start(each, slot), mine.nbytes) for each in traces]
    final = [_final(*pair) for pair in zip(traces, where, strict=True)]
    unequal = np.flatnonzero((final[0] != final[1]) & _numbers(mine))
    if not unequal.size:
        return None
    changed = int(final[0][unequal[0]] ^ final[1][unequal[0]])
    lowest = (changed & -changed).bit_length() - 1
    number, bits = _number_at(mine, 8 * int(unequal[0]) + lowest)
    m, n, batch, words = _place(a, mine, number)
    first = _bit(mine, number)
    values = [_value(mine, data, first, bits) for data in final]
    nbytes = -(-bits // 8)
    events = [
        _writer(trace, Range("gmem", at.start + first // 8, nbytes))
        for trace, at in zip(traces, where, strict=True)
    ]
    key = Key(_name(slot), m, n, -1, batch)
    words = f"byte {unequal[0]}: {words}"
    return Difference(key, words, (values[0], values[1]), (events[0], events[1]))


def _form(result: RecordedResult | None) -> str:
    if result is None:
        return "no such result"
    sizes = " x ".join(map(str, result.extents))
    return f"{sizes} of {result.element}"


def _start(trace: Trace, slot: str) -> int:
    where = _allocation(trace, slot)
    if where is None:
        raise LookupError(f"{slot} is in no allocation")
    return where.start


def _element_bits(result: RecordedResult) -> int:
    return 1 if result.element == "u1" else element(result.element).bits


def _numbers(result: RecordedResult) -> NDArray[np.bool_]:
    """Return which bytes hold numbers, and not the padding of a row."""
    used = -(-result.extents[2] * _element_bits(result) // 8)
    return np.arange(result.nbytes) % result.row_nbytes < used


def _number_at(result: RecordedResult, bit: int) -> tuple[_Number, int]:
    """Return (batch, row, column) of the number that holds a bit, and its bits."""
    bits = _element_bits(result)
    line, inside = divmod(bit, 8 * result.row_nbytes)
    batch, row = divmod(line, result.extents[1])
    return (batch, row, inside // bits), bits


def _bit(result: RecordedResult, number: _Number) -> int:
    """Return the first bit of a number."""
    batch, row, column = number
    line = batch * result.extents[1] + row
    return 8 * line * result.row_nbytes + column * _element_bits(result)


def _value(result: RecordedResult, data: Bytes, bit: int, bits: int) -> str:
    """Show a number's code and what it means."""
    if result.element == "u1":
        return str(int(data[bit // 8]) >> bit % 8 & 1)
    of = element(result.element)
    raw = data[bit // 8 : (bit + bits) // 8].copy()
    value = of.decode(raw.view(of.code_dtype))[0]
    return f"{int(raw.view(of.code_dtype)[0]):#0{2 + bits // 4}x} = {value:g}"


def _place(trace: Trace, result: RecordedResult, number: _Number) -> _Place:
    """Say what of D a number stands for."""
    shape = trace.meta["shape"]
    rows, columns = (2, 1) if is_m_major(trace.meta) else (1, 2)
    at, words = {}, []
    for name, axis, end in (("row", rows, "m"), ("column", columns, "n")):
        part = result.part[axis]
        first = number[axis] * part
        last = min(first + part, shape[end]) - 1
        words.append(f"{name} {first}" if part == 1 else f"{name}s {first} to {last}")
        at[end] = -1 if part > 1 and result.extents[axis] == 1 else first
    batch = -1 if result.of_all_batches else number[0] * result.part[0]
    return _Place(at["m"], at["n"], batch, ", ".join(words))
