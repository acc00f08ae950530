"""callbacks: a callback of every node, in the order of evaluation.

CUTLASS calls a tree's nodes from the leaves to the root. A node that has the callback
leaves an event; `previsit` and `visit` are seen by what they load and by the note of
the formula.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fp4ref.gemm.fusion.node import EpilogueWarp, Loaded, LoadWarp, Node, Region
from fp4ref.hardware.sm import Blocked


def implements(node: Node, callback: str) -> bool:
    """Whether the node's class has the callback, and not only the empty one."""
    return getattr(type(node), callback) is not getattr(Node, callback)


def having(tree: Node, callback: str) -> tuple[Node, ...]:
    """Return the nodes of a tree that have the callback, in order of evaluation."""
    found = tree.having.get(callback)
    if found is None:
        found = tuple(node for node in tree.walk() if implements(node, callback))
        tree.having[callback] = found
    return found


def call(
    tree: Node, callback: str, at: EpilogueWarp | LoadWarp, *where: Any
) -> Generator[Blocked, None, None]:
    """Call `callback` of every node of `tree` that has it, each with an event."""
    for node in having(tree, callback):
        at.warp.note(f"fusion.{callback}", node=type(node).__name__)
        yield from getattr(node, callback)(at, *where)


def previsit(
    tree: Node, e: EpilogueWarp, at: Region
) -> Generator[Blocked, None, Loaded]:
    """Load what the formula needs, in the order of its nodes."""
    loaded: Loaded = {}
    for node in having(tree, "previsit"):
        values = yield from node.previsit(e, at)
        if values is not None:
            loaded[node] = values
    return loaded
