"""events_jit: the loop over the steps of all tiles, compiled by Numba.

Only sums, products and larger ones of two numbers, in an order that is fixed: the
result is the same to the bit without the compiler.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.compiled import njit

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
START: Final = 2
WAIT: Final = 1
ORDER: Final = 0


class Table(NamedTuple):
    """The steps of a tile as arrays; `first` of something is where a step's begin.

    Attributes
    ----------
    in_order
        1 for work of the tensor core, which is served in the order in which it was
        issued, even where it then waits for other work.
    took, own, latency
        Clocks of a step, until its own arrival, and beyond the last server.
    take_first, take_server, take_held
        What a step takes, and for how long.
    line_server, line_held, slot_server, slot_held
        The L1 of a warp's SM and its port; -1 of a step that goes by neither.
    after_first, after_offset, after_latency, after_kind
        What comes after a step: how many steps on, how much later, and how.
    before_first, before_back
        What a step comes after: how many tiles back.
    servers
        How many there are.
    """

    in_order: I64
    took: F64
    own: F64
    latency: F64
    take_first: I64
    take_server: I64
    take_held: F64
    line_server: I64
    line_held: F64
    slot_server: I64
    slot_held: F64
    after_first: I64
    after_offset: I64
    after_latency: F64
    after_kind: I64
    before_first: I64
    before_back: I64
    servers: int


@njit(cache=True)
def left_of(before_first: I64, before_back: I64, tiles: int) -> I64:
    """Return how many steps each step of each tile comes after."""
    count = before_first.size - 1
    left = np.zeros(count * tiles, np.int64)
    for tile in range(tiles):
        for place in range(count):
            for i in range(before_first[place], before_first[place + 1]):
                if 0 <= tile - before_back[i] < tiles:
                    left[tile * count + place] += 1
    return left


@njit(cache=True)
def serve(free: F64, first: int, last: int, server: I64, held: F64, at: float) -> float:
    """Take servers, and return when the last of them is done."""
    end = at
    for i in range(first, last):
        begins = max(at, free[server[i]])
        free[server[i]] = begins + held[i]
        end = max(end, begins + held[i])
    return end


@njit(cache=True)
def work_off(t: Any, factors: F64, left: I64) -> tuple[F64, F64, F64]:
    """Return when each step came, went on and ended.

    Parameters
    ----------
    t
        A `Table`.
    factors
        Of each step of each tile, what its time is multiplied by.
    left
        Of `left_of`; it is used up.
    """
    tiles, count = factors.shape
    came, went = np.zeros(tiles * count), np.zeros(tiles * count)
    ended, ready = np.zeros(tiles * count), np.zeros(tiles * count)
    free = np.zeros(t.servers)
    heap = [(0.0, n) for n in range(tiles * count) if left[n] == 0]
    heapify(heap)
    while len(heap) > 0:
        _, n = heappop(heap)
        tile, place = n // count, n % count
        at = max(ready[n], came[n] + t.own[place])
        went[n] = at
        first, last = t.take_first[place], t.take_first[place + 1]
        end = serve(free, first, last, t.take_server, t.take_held, at)
        if t.line_server[place] >= 0:
            # Who has the line before it, it waits for; its own time is in `took`.
            end = max(at, free[t.line_server[place]])
            free[t.line_server[place]] = end + t.line_held[place]
            slot = t.slot_server[place]
            free[slot] = max(free[slot], at * (t.slot_held[place] > 0))
            free[slot] += t.slot_held[place]
        end += t.took[place] * factors[tile, place] + t.latency[place]
        ended[n] = max(ended[n], end)
        for i in range(t.after_first[place], t.after_first[place + 1]):
            other = tile * count + t.after_offset[i]
            if 0 <= other < tiles * count:
                seen = ended[n] + t.after_latency[i]
                if t.after_kind[i] == ORDER:
                    ended[other] = max(ended[other], seen)
                else:
                    ready[other] = max(ready[other], seen)
                if t.after_kind[i] == START:
                    came[other] = max(came[other], seen)
                left[other] -= 1
                if left[other] == 0:
                    comes = ready[other]
                    if t.in_order[other % count]:
                        comes = came[other]
                    heappush(heap, (comes, other))
    return came, went, ended
