"""explanation: the value of every node of the epilogue's formula at one element of D.

The tile is computed once more by the emulator, which shows what each node gave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.gemm.fusion.majorness import as_written
from fp4ref.gemm.fusion.node import Node, Region, Visit
from fp4ref.gemm.problem import GemmProblem


@dataclass(frozen=True)
class NodeValue:
    """What one node gave.

    Attributes
    ----------
    node
        Its C++ type without its inputs.
    value
        A float32.
    """

    node: str
    value: float

    @property
    def bits(self) -> int:
        """The float32's pattern."""
        return int(np.float32(self.value).view(np.uint32))

    def __str__(self) -> str:
        return f"0x{self.bits:08x}  {self.value:<14.8g} {self.node}"


@dataclass(frozen=True)
class Explanation:
    """Every node's value at one element of D, in order of evaluation.

    Attributes
    ----------
    m, n, batch
        The element.
    """

    m: int
    n: int
    batch: int
    nodes: tuple[NodeValue, ...]

    def __str__(self) -> str:
        where = f"D[{self.m}, {self.n}] of batch {self.batch}"
        return "\n".join([where, *map(str, self.nodes)])

    def __repr__(self) -> str:
        return str(self)


def explain(problem: GemmProblem, m: int, n: int, batch: int = 0) -> Explanation:
    """Compute the tile of an element once more, and return its nodes' values.

    Parameters
    ----------
    problem
        One that has not been launched.

    Raises
    ------
    InputError
        The element is outside D.
    """
    at = _inside(problem, (batch, m, n))
    row, column = _in_memory(problem, m, n)
    found: list[NodeValue] = []
    plain = problem.config.epilogue.store == "plain"

    def probe(where: Region, visit: Visit) -> None:
        if found or where.work.l != at[0]:
            return
        if row in where.rows and column in where.columns:
            i, j = row - where.rows.start, column - where.columns.start
            found.extend(_values(visit, i, j, plain))

    problem.params = replace(problem.params, probe=probe)
    problem.launch(_tiles(problem, *at))
    return Explanation(m, n, at[0], tuple(found))


def _inside(problem: GemmProblem, at: tuple[int, int, int]) -> tuple[int, int, int]:
    checked = []
    for name, value, size in zip(("batch", "m", "n"), at, problem.shape, strict=True):
        index = require_integer(value, name, 0)
        if index >= size:
            raise InputError(f"{name}={index}: D has {size}; give 0 to {size - 1}")
        checked.append(index)
    return checked[0], checked[1], checked[2]


def _in_memory(problem: GemmProblem, m: int, n: int) -> tuple[int, int]:
    plain = problem.config.epilogue.store == "plain"
    return (m, n) if plain else (n, m)


def _tiles(
    problem: GemmProblem, batch: int, m: int, n: int
) -> list[tuple[int, int, int]] | None:
    """Return the element's tile; None for all, where a part cannot be launched."""
    config, tile_n = problem.config, problem.config.tile.n
    if config.tiles.scheduler == "static":
        return None
    rows, columns = (n, m) if config.operands.swap_ab else (m, n)
    return [(rows // problem.plan.tile_m, columns // tile_n, batch)]


def _values(visit: Visit, i: int, j: int, plain: bool) -> list[NodeValue]:
    """Return the nodes' values, by the names in the tree that the user wrote."""
    shape = visit.inside.shape
    return [
        NodeValue(
            _name(node if plain else as_written(node)),
            float(np.broadcast_to(value, shape)[i, j]),
        )
        for node, value in visit.values.items()
    ]


def _name(node: Node) -> str:
    own = f"<{', '.join(node.template)}>" if node.template else ""
    return type(node).__name__ + own
