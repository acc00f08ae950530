"""buffer_contents: what the buffers hold after the runs, beside what they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.check.finding import Finding
from fp4ref.evidence.check.launch import Buffer, Launch, Tolerance
from fp4ref.evidence.check.one_run import Contents, Outcome


def mismatches(launch: Launch, outcome: Outcome) -> Iterator[Finding]:
    """Hold each buffer of one run against what it should hold."""
    right: NDArray[np.bool_]
    for name, (data, written) in outcome.contents.items():
        buffer = launch.buffers[name]
        if buffer.expected is None:
            continue
        want = np.ascontiguousarray(buffer.expected).reshape(-1).view(np.uint8)
        right = _equal(buffer, data, want)
        right = np.logical_and(right, _whole(buffer, written))
        if not right.all():
            what = _difference(buffer, right, data, want, written)
            yield Finding(
                "mismatch",
                f"{name} is not as expected",
                what,
                where=f"buffer {name}",
                rule=_rule(buffer.tolerance),
                remedy="look at the rows and columns that differ; of a block-scaled "
                "product, fp4ref triage names the usual mistake",
                runs=(outcome.name,),
            )


def disagreements(launch: Launch, outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Hold the results of all runs against each other: a kernel has one."""
    ended = [each for each in outcomes if each.contents]
    asked = {n for n, b in launch.buffers.items() if b.is_result}
    for name, buffer in launch.buffers.items():
        if asked and name not in asked:
            continue
        for other in ended[1:]:
            first, second = ended[0].contents[name], other.contents[name]
            right = _equal(buffer, second[0], first[0])
            right = np.logical_and(right, _whole(buffer, first[1] == second[1]))
            if right.all():
                continue
            what = _difference(buffer, right, second[0], first[0], second[1])
            yield Finding(
                "mismatch",
                f"{name} depends on the schedule",
                what.replace("expected", f"under {ended[0].schedule}"),
                where=f"buffer {name}",
                rule="a kernel whose accesses are ordered has one result",
                remedy="if an order is free, as of atomic sums, state a tolerance "
                "(rtol, atol) for the buffer; else something is not waited for",
                runs=(ended[0].name, other.name),
            )


def _rule(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return "every bit"
    return f"within {tolerance.atol:g} + {tolerance.rtol:g} * |expected|"


def _whole(buffer: Buffer, each: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of bytes that are right: elements of which all bytes are."""
    rows = each.reshape(-1, buffer.dtype.itemsize)
    found: NDArray[np.bool_] = np.all(rows, axis=1)
    return found


def _equal(
    buffer: Buffer, found: NDArray[np.uint8], want: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether each element is as wanted; a NaN is near a NaN only."""
    if buffer.tolerance is None:
        return _whole(buffer, found == want)
    a, b = (x.view(buffer.dtype).astype(np.float64) for x in (found, want))
    near = buffer.tolerance
    with np.errstate(invalid="ignore"):
        close: NDArray[np.bool_] = np.isclose(
            a, b, near.rtol, near.atol, equal_nan=True
        )
    return close


def _difference(
    buffer: Buffer,
    right: NDArray[np.bool_],
    found: NDArray[np.uint8],
    want: NDArray[np.uint8],
    written: NDArray[np.bool_],
) -> str:
    """Say how much differs, and where first."""
    wrong = np.flatnonzero(~right)
    shape = buffer.shape if int(np.prod(buffer.shape)) == right.size else (right.size,)
    at = ", ".join(str(int(i)) for i in np.unravel_index(wrong[0], shape))
    never = np.count_nonzero(~_whole(buffer, written))
    tail = f"; {never:,} elements were never written" if never else ""
    return (
        f"{wrong.size:,} of {right.size:,} elements differ; the first is [{at}]: "
        f"{_shown(buffer, found, int(wrong[0]))}, expected "
        f"{_shown(buffer, want, int(wrong[0]))}{tail}"
    )


def _shown(buffer: Buffer, data: NDArray[np.uint8], at: int) -> str:
    """Write an element as a number and as its bits."""
    size = buffer.dtype.itemsize
    raw = data[size * at : size * at + size]
    value: Any = raw.view(buffer.dtype)[0]
    return f"{value} (0x{int.from_bytes(raw.tobytes(), 'little'):0{2 * size}x})"


def of_buffers(
    launch: Launch, contents: dict[str, Contents]
) -> dict[str, NDArray[Any]]:
    """Return the contents as arrays of the buffers' elements."""
    return {n: launch.buffers[n].typed(data) for n, (data, _) in contents.items()}
