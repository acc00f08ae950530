"""arguments: what a caller passed, or an `InputError` that names the argument.

Each function takes the value and how to call it: the function and the argument, as in
``"encode_e2m1 x"``.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from enum import Enum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError

T = TypeVar("T")
Choice = TypeVar("Choice")

FINITE_FLOAT32 = "a number that is finite in float32"
"""What a parameter of the kernel must be."""


def require_array(value: object, name: str) -> NDArray[Any]:
    """Return `value` as an array of numbers.

    Raises
    ------
    InputError
        It is ragged, holds Python objects or text, or is masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(
            f"{name} is a masked array, and its mask would be lost. Pass "
            f"{name}.filled(0), or another number for what is masked"
        )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name}: {_short(value)} is no array ({_first_line(error)})"
        ) from None
    if array.dtype.kind in "OSUMm" or array.dtype.names:
        raise InputError(
            f"{name}: {_short(value)} is no array of numbers, but of {array.dtype}"
        )
    return array


def require_integer(
    value: object,
    name: str,
    least: int | None = None,
    most: int | None = None,
    *,
    error: type[InputError] = InputError,
) -> int:
    """Return `value` as an integer in ``least..most``; a bool is none.

    Raises
    ------
    InputError
        It is not; `error` is the class to raise.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise error(f"{name}: {_short(value)}; need a whole number") from None
    if (least is not None and number < least) or (most is not None and number > most):
        low = "" if least is None else f" of at least {least}"
        high = "" if most is None else f", at most {most}"
        raise error(f"{name}: {number}; need a whole number{low}{high}")
    return number


def require_number(value: object, name: str) -> float:
    """Return one real number as a float.

    Raises
    ------
    InputError
        It is an array, a text, complex, or does not fit a float.
    """
    real = isinstance(value, int | float | np.floating | np.integer)
    if not real or isinstance(value, bool):
        raise InputError(f"{name}: {_short(value)}; need a number")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise InputError(f"{name}: {_short(value)} does not fit a float") from None


def is_finite_float32(value: object) -> bool:
    """Whether `value` is one real number that float32 holds as a finite one."""
    try:
        real = isinstance(value, int | float | np.floating | np.integer)
        with np.errstate(over="ignore"):
            return real and bool(np.isfinite(np.float32(value)))  # type: ignore[arg-type]
    except OverflowError:
        return False


def require_finite_float32(value: object, name: str) -> float:
    """Return one number as float32 holds it; a bool is none.

    Raises
    ------
    InputError
        It is no real number, or is not finite in float32.
    """
    if isinstance(value, bool) or not is_finite_float32(value):
        raise InputError(f"{name}={shown(value)}: {FINITE_FLOAT32}")
    return float(np.float32(value))  # type: ignore[arg-type]


def require_choice(
    value: object,
    name: str,
    choices: Collection[Choice],
    remedy: str = "",
    *,
    gap: str = "",
) -> Choice:
    """Return the one of `choices` that equals `value`.

    Parameters
    ----------
    gap
        If others have more choices: id of the row in the list of gaps.

    Raises
    ------
    InputError
        None does.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    for choice in choices:
        if type(plain) is type(choice) and plain == choice:
            return choice
    known = ", ".join(
        str(choice) if isinstance(choice, Enum) else repr(choice) for choice in choices
    )
    raise InputError(
        f"{name}: {_short(value)}; take {known}{remedy and '. '}{remedy}", gap=gap
    )


def require_instance(value: object, name: str, kind: type[T], remedy: str) -> T:
    """Return `value` if it is a `kind`.

    Raises
    ------
    InputError
        It is something else; `remedy` says where to get one.
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} is {_one(type(value))}; need {_one(kind)}. {remedy}")
    return value


def require_list(value: object, name: str, of: str) -> list[Any]:
    """Return what `value` iterates over; a text is no list.

    Raises
    ------
    InputError
        It cannot be iterated over; `of` says what it should hold.
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return list(value)  # type: ignore[call-overload,no-any-return]
    except TypeError:
        raise InputError(f"{name}: {_short(value)}; need a list of {of}") from None


def require_broadcast(**arrays: NDArray[Any]) -> None:
    """Refuse arrays whose shapes do not broadcast.

    Raises
    ------
    InputError
        The message has all names and shapes.
    """
    if len({array.shape for array in arrays.values() if array.ndim}) < 2:
        return
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"shapes that do not broadcast: {shapes}") from None


def shown(value: object) -> str:
    """Return `value` as a person wrote it, or its type where that is too long."""
    try:
        text = repr(value)
    except Exception:
        text = ""
    return text if 0 < len(text) <= 60 else f"({type(value).__name__}, too long)"


def _one(kind: type[Any]) -> str:
    """Write the name of a class with its article."""
    vowel = kind.__name__[0] in "aeiouAEIOU" or kind is np.ndarray
    return f"{'an' if vowel else 'a'} {kind.__name__}"


def _short(value: object) -> str:
    """Write a value in at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
