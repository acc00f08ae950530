"""recorded_result: an array that a kernel's epilogue left beside D, read from `meta`.

Who looks at a trace learns here how the bytes of an auxiliary tensor, a mask, a sum or
a maximum lie in global memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fp4ref.errors import TraceError

Three = tuple[int, int, int]


@dataclass(frozen=True)
class RecordedResult:
    """Numbers in rows, each of which stands for some elements of D.

    Attributes
    ----------
    element
        Name of the numbers' format; ``"u1"`` is a bit for each.
    extents
        (batches, rows, columns) of them.
    row_nbytes
        From one row to the next.
    part
        (batches, rows, columns) of D that one number stands for: (1, 1, 1) of a tensor
        of D's shape, (1, 32, 1) of sums of 32 rows. It may reach beyond D.
    of_all_batches
        Whether it stands for every batch, of which there may be one only.
    """

    element: str
    extents: Three
    row_nbytes: int
    part: Three = (1, 1, 1)
    of_all_batches: bool = False

    @property
    def nbytes(self) -> int:
        """Size of all rows."""
        batches, rows, _ = self.extents
        return batches * rows * self.row_nbytes

    @classmethod
    def all_of(cls, meta: Mapping[str, Any]) -> dict[str, RecordedResult]:
        """Read those in a trace's `meta`, by the names of their allocations.

        Raises
        ------
        TraceError
            One of them is not as a run records it.
        """
        try:
            return {
                str(name): cls(
                    str(row["element"]),
                    _three(row["extents"]),
                    _number(row["row_nbytes"]),
                    _three(row["part"]),
                    row.get("of_all_batches") is True,
                )
                for name, row in meta.get("results", {}).items()
            }
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TraceError(
                "the results in this trace are not those that this release reads "
                f"({type(error).__name__}: {error}); make the trace again"
            ) from None


def _three(values: Any) -> Three:
    one, two, three = map(_number, values)
    return one, two, three


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r:.80} is no size")
    return value
