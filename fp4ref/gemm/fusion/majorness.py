"""majorness: a tree's nodes count rows and columns of D as it lies in memory.

Where D lies in rows of M elements, the rows of memory are D's columns. What a tree says
of rows is then a node of columns, and the other way round; a sum of all goes over the
lanes first, because they are the columns. So every value and every sum has the bits
that it has where D lies in rows of N.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fp4ref.gemm.fusion.col_broadcast import ColBroadcast
from fp4ref.gemm.fusion.col_maximum import ColMaximum
from fp4ref.gemm.fusion.col_sum import ColSum
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.fusion.row_broadcast import RowBroadcast
from fp4ref.gemm.fusion.row_maximum import RowMaximum
from fp4ref.gemm.fusion.row_sum import RowSum

_PAIRS: tuple[tuple[type[Node], type[Node]], ...] = (
    (RowBroadcast, ColBroadcast),
    (RowMaximum, ColMaximum),
    (RowSum, ColSum),
)
_OTHER = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


def is_m_major(node: Node) -> bool:
    """Whether a node takes D to lie in rows of M."""
    return getattr(node, "m_major", False) is True


def m_major(tree: Node) -> Node:
    """Return the tree for a D that lies in rows of M elements."""
    return _turned(tree, True)


def as_written(tree: Node) -> Node:
    """Return what a user wrote, of `m_major`'s result."""
    return _turned(tree, False)


def _turned(tree: Node, to_m: bool) -> Node:
    given: dict[str, Any] = {}
    for each in fields(tree):
        value = getattr(tree, each.name)
        given[each.name] = _turned(value, to_m) if isinstance(value, Node) else value
    if "m_major" in given:
        given["m_major"] = to_m
    kind: Any = _OTHER.get(type(tree), type(tree))
    return kind(**given)  # type: ignore[no-any-return]
