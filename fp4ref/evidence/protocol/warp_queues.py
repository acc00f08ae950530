"""warp_queues: what a warp has in flight, by what a later statement waits for."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class WarpQueues:
    """What a warp has issued so far, and its last step.

    Attributes
    ----------
    last
        Its last step.
    queue
        Its tcgen05 operations that the next one comes after; `merging` is the name of
        the last one while another of that name would join it.
    unread
        Loads and stores of TMEM that no wait has covered, by ``ld`` and ``st``.
    copies
        Its ``cp.async`` so far, which an arrival through them comes after.
    open, groups
        Operations of the group that is open, and the closed groups, by prefix: of each
        operation its first and its last step.
    peeks
        Peeks that said no, by barrier.
    """

    last: int = -1
    queue: list[int] = field(default_factory=list)
    merging: str = ""
    unread: dict[str, list[int]] = field(default_factory=dict)
    copies: list[int] = field(default_factory=list)
    open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    groups: dict[str, list[list[tuple[int, int]]]] = field(default_factory=dict)
    peeks: dict[int, int] = field(default_factory=dict)
