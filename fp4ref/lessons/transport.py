"""transport: answers as JSON, so that they can be compared outside the kernel.

The grader runs a reader's notebook in a process of its own and believes nothing that is
computed there: not `lessons.check`, which the notebook can replace, and not what is
compared. It takes out the answer, and for an answer that is a function what it returns
for each case, and compares them itself.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np

from fp4ref.lessons.exercise import find

MIME = "application/vnd.fp4ref.answer+json"

MOST_BYTES = 1 << 22
"""Larger arrays and texts are no answers."""

Json = dict[str, Any]


class Opaque:
    """Stands for an answer that cannot leave the kernel; equal to nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"an object of type {self.kind}"


class RaisedError(Exception):
    """Stands for the exception that a reader's function raised."""


def send(id: str, answer: Any) -> None:
    """Show the answer to an exercise as a datum; runs in the reader's kernel."""
    from IPython.display import display

    display({MIME: pack(id, answer)}, raw=True)  # type: ignore[no-untyped-call]


def pack(id: str, answer: Any) -> Json:
    """Return an answer as JSON; a function as what it returns for each case."""
    cases = find(id).cases
    if cases is None or not callable(answer):
        return {"value": encode(answer)}
    name = str(getattr(answer, "__name__", "answer"))
    outcomes = [_outcome(answer, arguments) for arguments in cases()]
    return {"function": name, "outcomes": outcomes}


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Json:
    try:
        return encode(function(*copy.deepcopy(arguments)))
    except (Exception, SystemExit) as error:
        return {"raised": type(error).__name__, "why": str(error)[:200]}


def unpack(packed: Json) -> Any:
    """Return an answer from its JSON; a function gives its recorded outcomes in turn.

    Raises
    ------
    ValueError
        The JSON is not one that `pack` makes.
    """
    try:
        if "function" not in packed:
            return decode(packed["value"])
        outcomes = iter(list(packed["outcomes"]))
        name = str(packed["function"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an answer: {error}") from None

    def replay(*arguments: Any) -> Any:
        outcome = next(outcomes, {"other": "nothing"})
        if "raised" in outcome:
            raise _named(outcome["raised"])(outcome.get("why", ""))
        return decode(outcome)

    replay.__name__ = name
    return replay


def _named(name: object) -> type[Exception]:
    return type(str(name), (RaisedError,), {})


def encode(value: Any) -> Json:
    """Return a value as JSON, each with its type; arrays and floats by their bits."""
    try:
        return _encode(value)
    except Exception:  # an object of the reader's with odd methods
        return {"other": type(value).__name__}


def _encode(value: Any) -> Json:
    match value:
        case None:
            return {"none": 0}
        case _ if value is ...:
            return {"blank": 0}
        case bool() | np.bool_():
            return {"bool": bool(value)}
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            if array.dtype.hasobject or array.nbytes > MOST_BYTES:
                return {"other": f"array of {array.dtype}"}
            data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return {kind: array.dtype.name, "shape": list(array.shape), "data": data}
        case type():
            return {"type": value.__name__}
        case Enum() if not isinstance(value, int):
            return {"text": value.name}
        case int():
            return {"int": hex(value)}
        case float():
            return {"float": value.hex()}
        case str():
            return {"text": value[:MOST_BYTES]}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value)[:MOST_BYTES].hex()}
        case list() | tuple() | range():
            return {"list": [_encode(each) for each in value]}
        case set() | frozenset():
            return {"set": [_encode(each) for each in value]}
        case Mapping():
            return {"dict": [[_encode(k), _encode(v)] for k, v in value.items()]}
        case _:
            return {"other": type(value).__name__}


def decode(packed: Json) -> Any:
    """Return the value of a JSON that `encode` makes.

    Raises
    ------
    ValueError
        It is another JSON.
    """
    try:
        return _decode(packed)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an answer: {error}") from None


def _decode(packed: Json) -> Any:
    kind = next(iter(packed))
    inner = packed[kind]
    match kind:
        case "none":
            return None
        case "blank":
            return ...
        case "bool":
            return bool(inner)
        case "array" | "scalar":
            data = base64.b64decode(packed["data"])
            array = np.frombuffer(data, np.dtype(inner)).reshape(packed["shape"])
            return array if kind == "array" else array[()]
        case "int":
            return int(inner, 16)
        case "float":
            return float.fromhex(inner)
        case "text" | "type":
            return str(inner)
        case "bytes":
            return bytes.fromhex(inner)
        case "list":
            return [_decode(each) for each in inner]
        case "set":
            return {_hashable(each) for each in _all(inner)}
        case "dict":
            return {_hashable(_decode(k)): _decode(v) for k, v in inner}
        case _:
            return Opaque(str(inner))


def _all(packed: list[Json]) -> Iterator[Any]:
    return (_decode(each) for each in packed)


def _hashable(value: Any) -> Any:
    return (
        tuple(_hashable(each) for each in value) if isinstance(value, list) else value
    )
