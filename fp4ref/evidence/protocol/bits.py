"""bits: sets of steps as bit masks, bit n for step n."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def mask_of(steps: Iterable[int]) -> int:
    """Return the set of some steps."""
    mask = 0
    for number in steps:
        mask |= 1 << number
    return mask


def steps_of(mask: int) -> Iterator[int]:
    """Yield the steps of a set, lowest number first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def first_step(mask: int) -> int:
    """Lowest number in a set that is not empty."""
    return (mask & -mask).bit_length() - 1
