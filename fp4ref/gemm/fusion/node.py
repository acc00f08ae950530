"""fusion: the nodes of which an epilogue's formula is made.

A node is a type; a formula is a tree of them. `previsit` runs once for a subtile and
loads what the node needs; `visit` gives the node's values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer
from fp4ref.hardware.sm import Blocked, Warp

F32 = NDArray[np.float32]
Loaded = dict["Node", F32]


class EpilogueWarp(Protocol):
    """What a node that loads may use of its warp."""

    warp: Warp
    c: Consumer

    @property
    def params(self) -> GemmParams:
        """What the launch passes."""
        ...

    def c_rows(self, stage: int) -> int:
        """Shared address of the warp's rows of a C stage."""
        ...


@dataclass(frozen=True, slots=True)
class Visit:
    """The warp's 32 rows of a subtile.

    Attributes
    ----------
    acc
        (32, 32) of the accumulator.
    params
        What the launch passes.
    loaded
        What `Node.previsit` brought, by node.
    """

    acc: F32
    params: GemmParams
    loaded: Loaded


@dataclass(frozen=True)
class Node(ABC):
    """One operation of the formula."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose values it takes, in order."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value for value in values if isinstance(value, Node))

    def walk(self) -> Iterator[Node]:
        """Give every node below and then this one: the order of evaluation."""
        for each in self.inputs:
            yield from each.walk()
        yield self

    def previsit(
        self, e: EpilogueWarp, rows: range, columns: range
    ) -> Generator[Blocked, None, F32 | None]:
        """Load what the node needs for these rows and columns of D, or nothing."""
        yield from ()
        return None

    @abstractmethod
    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the node's values, (32, 32) or what broadcasts to it."""

    def value(self, v: Visit) -> F32:
        """Evaluate the tree that ends here."""
        return self.visit(v, *(each.value(v) for each in self.inputs))

    def __repr__(self) -> str:
        """Return the C++ type."""
        arguments = [repr(each) for each in self.inputs]
        name = type(self).__name__
        return f"{name}<{', '.join(arguments)}>" if arguments else name


@dataclass(frozen=True, repr=False)
class Unary(Node):
    """An operation on one node."""

    a: Node
    activation: ClassVar[str] = ""
    """What a configuration calls it, if it can be the last operation."""


@dataclass(frozen=True, repr=False)
class Binary(Node):
    """An operation on two nodes."""

    a: Node
    b: Node


@dataclass(frozen=True, repr=False)
class Ternary(Node):
    """An operation on three nodes."""

    a: Node
    b: Node
    c: Node
