"""access: one access to memory: what the check needs, and what a report says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fp4ref.hardware.order.knowledge import GENERIC, Actor

LANE_BITS = 5
"""A witness in a shadow memory is the number of an access, and a lane of it."""

SCOPES = {"cta": 1, "cluster": 2, "gpu": 3, "sys": 4}
"""Scopes by how far they reach; 0 stands for a weak access."""


@dataclass(slots=True, eq=False)
class Access:
    """One access by some lanes, or one milestone of an asynchronous operation.

    Attributes
    ----------
    number
        Position among the accesses of the launch, from 1.
    base
        First id; the ids of the lanes follow.
    lanes
        Lanes that made it; 1 for an asynchronous operation, which has one id.
    view
        Proxy: which set of a later lane's knowledge has to hold it.
    issuer
        Lanes that issued an operation with one id; 0 where each lane has its own.
    together
        Whether those lanes did it at once, and it is no asynchronous operation.
    scope, width
        0 for a weak access, else how far a strong one reaches, and its bytes.
    step
        Event of the trace; -1 untraced.
    facts
        Operands that rules look at.
    """

    number: int
    actor: Actor
    base: int
    lanes: int
    operation: str
    is_write: bool
    view: int = GENERIC
    issuer: int = 0
    together: bool = False
    scope: int = 0
    width: int = 0
    step: int = -1
    source: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def witness(self) -> int:
        """Number in a shadow memory of lane 0 of this access."""
        return self.number << LANE_BITS

    def morally_strong(self, other: Access) -> bool:
        """Whether both are strong, each in a scope that the other one is in.

        They overlap completely if they are of one size: an access is aligned to its
        own [PTX: morally strong operations].
        """
        if not self.scope or not other.scope or self.width != other.width:
            return False
        here, there = self.actor.place, other.actor.place
        return all(reaches(s, here, there) for s in (self.scope, other.scope))


def reaches(scope: int, here: tuple[int, int], there: tuple[int, int]) -> bool:
    """Whether `scope`, around one place (cluster, CTA), has the other place in it."""
    if scope == SCOPES["cta"]:
        return here == there
    return scope > SCOPES["cluster"] or here[0] == there[0]
