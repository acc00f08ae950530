"""waiting_clusters: the clusters of a grid that no SM has started yet.

A grid is cut into clusters of one shape, or of two: as many CTAs as possible run in
*preferred* clusters, and where these do not fit, a preferred cluster is cut into the
*regular* ones that it consists of. CUDA promises no more than a best effort; here the
next cluster is a preferred one whenever enough SMs are free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

from fp4ref.trace import Dim3


@dataclass(frozen=True)
class Waiting:
    """A cluster that waits: its first CTA and its shape, in CTAs."""

    origin: Dim3
    shape: Dim3

    @property
    def size(self) -> int:
        """CTAs, each of which needs an SM."""
        return prod(self.shape)

    def cut(self, shape: Dim3) -> list[Waiting]:
        """Return the clusters of a smaller shape that it consists of, x fastest."""
        counts = [mine // its for mine, its in zip(self.shape, shape, strict=True)]
        steps = product(*(range(count) for count in counts[::-1]))
        x, y, z = self.origin
        return [
            Waiting((x + i * shape[0], y + j * shape[1], z + k * shape[2]), shape)
            for k, j, i in steps
        ]


class WaitingClusters:
    """The clusters that wait, in the order in which they start.

    Parameters
    ----------
    origins
        First CTAs of the clusters, of the preferred ones if there are two shapes.
    regular, preferred
        The shapes; None for one shape.
    """

    def __init__(
        self,
        origins: Iterable[Dim3] = (),
        regular: Dim3 = (1, 1, 1),
        preferred: Dim3 | None = None,
    ) -> None:
        self.regular = regular
        self._queue = deque(Waiting(at, preferred or regular) for at in origins)

    def __len__(self) -> int:
        return len(self._queue)

    def start(self, free: int) -> Waiting | None:
        """Take the next cluster for `free` SMs; None if none waits or fits."""
        if not self._queue:
            return None
        if self._queue[0].size > free >= prod(self.regular):
            self._cut_first()
        return self._queue.popleft() if self._queue[0].size <= free else None

    def cancel(self, shape: Dim3) -> Dim3 | None:
        """Take the next cluster for one of `shape` that runs; None if there is none.

        What is handed over has the asker's shape: each of its CTAs does the work at
        its own place in the cluster.
        """
        if shape == self.regular and self._queue:
            self._cut_first()
        for found in self._queue:
            if found.shape == shape:
                self._queue.remove(found)
                return found.origin
        return None

    def _cut_first(self) -> None:
        first = self._queue.popleft()
        self._queue.extendleft(first.cut(self.regular)[::-1])
