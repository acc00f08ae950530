"""file: what is in a trace's file, and whether it can be believed.

A file may be damaged, or altered by hand. What a reader of a trace relies on is checked
here once: names, types, and that every range lies inside the memory it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import Fp4refError, InputError, TraceError
from fp4ref.files.array_file import UnreadableFile, read_arrays, read_headers
from fp4ref.files.whole_file import replacing

Bytes = NDArray[np.uint8]

FORMAT_VERSION = 1
KINDS = ("sync", "issue", "land", "note")
IMAGE = "image_"
REMEDY = "write one with `fp4ref walk` or Trace.save"


def write_parts(
    path: Path, header: Mapping[str, Any], payload: Bytes, images: Mapping[str, Bytes]
) -> None:
    """Write one compressed file, whole or not at all.

    Raises
    ------
    TraceError
        It cannot be written.
    """
    text = json.dumps(dict(header), separators=(",", ":")).encode()
    try:
        with replacing(path) as opened:
            np.savez_compressed(
                opened,
                allow_pickle=False,
                header=np.frombuffer(text, np.uint8),
                payload=payload,
                **{IMAGE + space: image for space, image in images.items()},
            )
    except InputError as error:
        raise TraceError(str(error)) from None


def read_parts(path: str | Path) -> tuple[dict[str, Any], Bytes, dict[str, Bytes]]:
    """Return header, payload and images of a file; the header is checked.

    Raises
    ------
    TraceError
        The file is missing, damaged, or of another format version.
    """
    try:
        declared = read_headers(path, "no trace", REMEDY)
        if missing := {"header", "payload"} - set(declared):
            raise _not_a_trace(path, f"it has no {' and no '.join(sorted(missing))}")
        names = [n for n in declared if n in ("header", "payload") or IMAGE in n[:6]]
        for name in names:
            if declared[name].dtype != np.uint8 or len(declared[name].shape) != 1:
                raise _not_a_trace(path, f"{name} is not a row of bytes")
        arrays = read_arrays(path, names, "no trace", REMEDY)
    except UnreadableFile as error:
        raise TraceError(str(error)) from None
    payload = arrays.pop("payload")
    header = _header(path, arrays.pop("header"))
    images = {name.removeprefix(IMAGE): image for name, image in arrays.items()}
    if set(header["base"]) != set(images):
        raise TraceError(f"{path} lacks a part; make the trace again")
    try:
        _Events(header["base"], images).check(header["events"])
    except _Altered as altered:
        raise TraceError(
            f"{path} was altered or damaged: {altered}; make the trace again"
        ) from None
    return header, payload, images


@contextmanager
def believing(*paths: Path) -> Iterator[None]:
    """Say that a trace from a file was altered, where reading its events fails.

    What an operation's operands must hold is known only to who reads them.

    Raises
    ------
    TraceError
        In place of the errors of lookups, types and values.
    """
    try:
        yield
    except Fp4refError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as e:
        files = " or ".join(str(path) for path in dict.fromkeys(paths))
        raise TraceError(
            f"{files} was altered or damaged: an event lacks what its operation needs "
            f"({type(e).__name__}: {e}); make the trace again"
        ) from e


def _not_a_trace(path: str | Path, why: str) -> TraceError:
    return TraceError(f"{path} is no trace: {why}; {REMEDY}")


def _header(path: str | Path, data: Bytes) -> dict[str, Any]:
    try:
        header = json.loads(data.tobytes())
        version = header["version"]
    except Exception:  # bytes of any kind, nested to any depth
        raise _not_a_trace(path, "its header is not the JSON of one") from None
    if version != FORMAT_VERSION:
        raise TraceError(
            f"{path} has trace format {version}, this release reads format "
            f"{FORMAT_VERSION}; make the trace again"
        )
    kinds = {"events": list, "meta": dict, "base": dict}
    if not all(isinstance(header.get(name), kind) for name, kind in kinds.items()):
        raise TraceError(f"{path} lacks a part; make the trace again")
    return dict(header)


class _Altered(Exception):
    """What in a trace's header is not as it was written."""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class _Events:
    """Checks the events of a header against its memories."""

    def __init__(self, base: dict[str, Any], images: Mapping[str, Bytes]) -> None:
        for space, address in base.items():
            if not _is_count(address):
                raise _Altered(f"the base of {space} is {address!r:.80}")
        self.memory = {s: (base[s], base[s] + d.size) for s, d in images.items()}

    def check(self, events: list[Any]) -> None:
        """Raise `_Altered` at the first thing that no run records."""
        for step, event in enumerate(events):
            problem = self._problem(step, event)
            if problem:
                raise _Altered(f"event {step} has {problem}")

    def _problem(self, step: int, event: Any) -> str:
        if not isinstance(event, dict) or event.get("step") != step:
            return "another step"
        try:
            good = {
                "sm": _is_count(event["sm"]),
                "cta": len(event["cta"]) == 3 and all(map(_is_count, event["cta"])),
                "kind": event["kind"] in KINDS,
                "operands": isinstance(event["operands"], dict),
                "frames": all(isinstance(f, str) for f in event["frames"]),
                "issued": isinstance(event["issued"], int)
                and -1 <= event["issued"] <= step,
                # Older files have no such field.
                "after": all(
                    _is_count(earlier) and earlier < step
                    for earlier in event.get("after", ())
                ),
                "start": _is_span(event),
                "reads": all(map(self._inside, event["reads"])),
                "writes": all(map(self._inside, event["writes"])),
                "barrier": all(map(_is_barrier, event["barrier"])),
            } | {
                name: isinstance(event[name], str)
                for name in ("agent", "operation", "source", "kernel_source")
            }
        except (TypeError, KeyError) as error:
            return f"no {error}" if isinstance(error, KeyError) else "another type"
        if unknown := set(event) - set(good) - {"step", "end"}:
            return f"an unknown {sorted(unknown)[0]}"
        return next(
            (f"{name} {event.get(name)!r:.80}" for name in good if not good[name]), ""
        )

    def _inside(self, where: Any) -> bool:
        """Whether a range is one, inside its memory."""
        match where:
            case [str(space), start, nbytes, rows, pitch]:
                pass
            case _:
                return False
        if space not in self.memory or not all(
            map(_is_count, (start, nbytes, rows, pitch))
        ):
            return False
        first, end = self.memory[str(space)]
        last = start + (rows - 1) * pitch + nbytes
        return bool(rows >= 1 and first <= start and last <= end)


def _is_span(event: dict[str, Any]) -> bool:
    """Whether an event has no times, or an end that is not before its start."""
    if "start" not in event and "end" not in event:
        return True
    times = [event["start"], event["end"]]
    if any(isinstance(t, bool) or not isinstance(t, int | float) for t in times):
        return False
    return bool(0 <= times[0] <= times[1] < inf)


def _is_barrier(change: Any) -> bool:
    match change:
        case [str(), address, str(), [_, _, _] as before, [_, _, _] as after]:
            # A tx-count may be negative: bytes can arrive before they are expected.
            numbers = [*before, *after]
            return _is_count(address) and all(isinstance(n, int) for n in numbers)
    return False
