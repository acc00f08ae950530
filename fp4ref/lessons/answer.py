"""answer: an answer against the truth, with zero tolerance.

Whole numbers by value, floats by their bits, sequences element by element, dicts by
key, text exactly but for case and outer blanks. The first difference is described,
never a whole array.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 4
_SHORT.maxlevel = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an answer first differs.

    Attributes
    ----------
    where
        Coordinates, for example ``[2]['full']``; '' for the answer itself.
    what
        What is there, without the truth.
    expected
        What should be there; '' where only the kind or the size is wrong.
    """

    where: str
    what: str
    expected: str = ""


def first_difference(answer: Any, truth: Any, unit: str = "") -> Difference | None:
    """Return the first difference, or None where the answer is the truth."""
    try:
        return _compare(answer, truth, "", f" {unit}" if unit else "")
    except Exception as error:  # an object of the reader's with an odd __eq__
        return Difference("", f"it cannot be compared ({type(error).__name__})")


def show(value: Any) -> str:
    """Return a value in a few words; whole arrays never."""
    if isinstance(value, np.ndarray):
        shape = " x ".join(map(str, value.shape)) or "0-d"
        return f"an array of {shape} {value.dtype}"
    if isinstance(value, np.generic):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool | Enum):
        long = value.bit_length() > 100
        return f"a number of {value.bit_length()} bits" if long else f"{value:,}"
    if isinstance(value, type) or callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    kind: Any = type(value)
    if kind.__repr__ is object.__repr__:
        return f"an object of type {kind.__name__}"
    return _SHORT.repr(value)


def _number(value: np.generic) -> str:
    if value.dtype.kind in "iu":
        return f"{int(value):,}"
    return f"{value!s}"


def _compare(answer: Any, truth: Any, where: str, unit: str) -> Difference | None:
    if answer is ...:
        return Difference(where, "nothing is answered here yet")
    match truth:
        case bool() | np.bool_():
            return _flag(answer, bool(truth), where)
        case np.ndarray():
            return _array(answer, truth, where, unit)
        case Enum() if not isinstance(truth, int):
            same = answer is truth or _text(answer) in (
                _text(truth.name),
                _text(truth.value),
            )
            return None if same else _wrong(answer, truth.name, where)
        case int() | np.integer():
            return _integer(answer, int(truth), where, unit)
        case float() | np.floating():
            return _float(answer, np.asarray(truth), where, unit)
        case np.generic():  # bfloat16 and the like
            return _float(answer, np.asarray(truth), where, unit)
        case str():
            if not isinstance(answer, str):
                return _kind(answer, "text in quotes", where)
            return (
                None if _text(answer) == _text(truth) else _wrong(answer, truth, where)
            )
        case bytes() | bytearray():
            if not isinstance(answer, bytes | bytearray | memoryview):
                return _kind(answer, "bytes", where)
            return _sequence(bytes(answer), bytes(truth), where, unit)
        case Mapping():
            return _mapping(answer, truth, where, unit)
        case set() | frozenset():
            return _set(answer, truth, where)
        case type():
            same = answer is truth or _text(answer) == _text(truth.__name__)
            return None if same else _wrong(answer, truth.__name__, where)
        case Sequence():
            return _elements(answer, truth, where, unit)
        case _:
            if type(answer) is not type(truth):
                return _kind(answer, f"a value of type {type(truth).__name__}", where)
            return None if bool(answer == truth) else _wrong(answer, truth, where)


def _wrong(answer: Any, truth: Any, where: str, unit: str = "") -> Difference:
    return Difference(where, f"{show(answer)}{unit}", f"{show(truth)}{unit}")


def _kind(answer: Any, wanted: str, where: str) -> Difference:
    given = "nothing" if answer is None else type(answer).__name__
    return Difference(where, f"{wanted} is asked for, not {given}")


def _text(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _scalar(answer: Any) -> Any:
    """A number out of an array that holds one."""
    if isinstance(answer, np.ndarray) and answer.size == 1:
        return answer.reshape(())[()]
    return answer


def _is_number(answer: Any) -> bool:
    if isinstance(answer, bool | np.bool_):
        return False
    return isinstance(answer, Real | np.number) or (
        isinstance(answer, np.generic) and answer.dtype.kind == "V"
    )


def _flag(answer: Any, truth: bool, where: str) -> Difference | None:
    answer = _scalar(answer)
    if not isinstance(answer, bool | np.bool_):
        return _kind(answer, "True or False", where)
    return None if bool(answer) is truth else _wrong(bool(answer), truth, where)


def _integer(answer: Any, truth: int, where: str, unit: str) -> Difference | None:
    answer = _scalar(answer)
    if not _is_number(answer):
        return _kind(answer, "a whole number", where)
    return None if answer == truth else _wrong(answer, truth, where, unit)


def _float(
    answer: Any, truth: NDArray[Any], where: str, unit: str
) -> Difference | None:
    answer = _scalar(answer)
    if not _is_number(answer):
        return _kind(answer, "a number", where)
    differ = _float_bits_differ(np.asarray(answer), truth)
    return _wrong(answer, truth[()], where, unit) if differ.any() else None


def _float_bits_differ(answer: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the answer, as a value of the truth's format, has other bits."""
    with np.errstate(all="ignore"):
        here = np.ascontiguousarray(answer.astype(truth.dtype))
        wide, back = answer.astype(np.float64), here.astype(np.float64)
    exact = (wide == back) | (np.isnan(wide) & np.isnan(back))
    bits = np.dtype(f"u{truth.dtype.itemsize}")
    same = here.view(bits) == np.ascontiguousarray(truth).view(bits)
    differ: NDArray[np.bool_] = ~(exact & same)
    return differ.reshape(truth.shape)


def _array(
    answer: Any, truth: NDArray[Any], where: str, unit: str
) -> Difference | None:
    if isinstance(answer, str | bytes | Mapping) or answer is None:
        return _kind(answer, "an array", where)
    try:
        given = np.asarray(answer)
    except ValueError:
        return _kind(answer, "an array with rows of one length", where)
    if given.dtype.kind not in "biufV":
        return _kind(answer, "an array of numbers", where)
    if given.shape != truth.shape:
        shapes = [f"({', '.join(map(str, a.shape))})" for a in (given, truth)]
        return Difference(where, f"its shape is {shapes[0]}, not {shapes[1]}")
    if truth.dtype.kind in "biu":
        differ = np.asarray(given != truth)
    else:
        differ = _float_bits_differ(given, truth)
    if not differ.any():
        return None
    at = tuple(int(i) for i in np.argwhere(differ)[0])
    place = f"{where}[{', '.join(map(str, at))}]" if at else where
    return _wrong(given[at], truth[at], place, unit)


def _elements(
    answer: Any, truth: Sequence[Any], where: str, unit: str
) -> Difference | None:
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        return _kind(answer, f"a list of {len(truth)} elements", where)
    return _sequence(answer, truth, where, unit)


def _sequence(
    answer: Sequence[Any], truth: Sequence[Any], where: str, unit: str
) -> Difference | None:
    if len(answer) != len(truth):
        return Difference(where, f"it has {len(answer)} elements, not {len(truth)}")
    for i, (mine, right) in enumerate(zip(answer, truth, strict=True)):
        if difference := _compare(mine, right, f"{where}[{i}]", unit):
            return difference
    return None


def _mapping(
    answer: Any, truth: Mapping[Any, Any], where: str, unit: str
) -> Difference | None:
    if not isinstance(answer, Mapping):
        return _kind(answer, f"a dict of {len(truth)} keys", where)
    for key in truth:
        if key not in answer:
            return Difference(where, f"key {show(key)} is missing")
    for key in answer:
        if key not in truth:
            return Difference(where, f"key {show(key)} does not belong there")
    for key, right in truth.items():
        place = f"{where}[{_SHORT.repr(key)}]"
        if difference := _compare(answer[key], right, place, unit):
            return difference
    return None


def _set(
    answer: Any, truth: set[Any] | frozenset[Any], where: str
) -> Difference | None:
    if isinstance(answer, list | tuple):
        answer = set(answer)
    if not isinstance(answer, set | frozenset):
        return _kind(answer, "a set", where)
    for extra in sorted(answer - truth, key=repr):
        return Difference(where, f"{show(extra)} does not belong there")
    if missing := len(truth - answer):
        return Difference(where, f"{missing} of {len(truth)} elements are missing")
    return None
