"""fusion: the nodes of which an epilogue's formula is made.

A node is a type; a formula is a tree of them. `visit` gives the node's values. The
other callbacks are called around it, in the order of CUTLASS's collective: for a tile
`begin`, for each subtile `begin_loop`, `previsit`, `visit`, `reduce`, `postreduce`,
`tma_store` and `end_loop`, and last `end`. The epilogue load warp calls `load_begin`,
`load_step` for each subtile, and `load_end`. A node has those that it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.arguments import Argument
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer, PipelineState, Stage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Blocked, Warp

F32 = NDArray[np.float32]
Loaded = dict["Node", F32]


class EpilogueWarp(Protocol):
    """What a node that loads or stores may use of its warp."""

    warp: Warp
    c: Consumer
    load_wait: PipelineState

    @property
    def params(self) -> GemmParams:
        """What the launch passes."""
        ...

    @property
    def store_releases_c(self) -> bool:
        """Whether C's stage is given back by the store of D that lies in it."""
        ...

    def c_rows(self, stage: int) -> range:
        """Shared addresses of the warp's rows of a C stage, one for each panel."""
        ...


class LoadWarp(Protocol):
    """What a node may use of the epilogue load warp."""

    warp: Warp


Steps = Generator[Blocked, None, None]


@dataclass(frozen=True, slots=True)
class Region:
    """A warp's 32 rows of a subtile, in D; the last rows and columns may lie outside.

    Attributes
    ----------
    work
        The tile.
    subtile
        Its number in the tile.
    """

    work: WorkTile
    subtile: int
    rows: range
    columns: range


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
    inside
        (32, 32): which elements are of D.
    values
        What each node of the tree gave, by node, in order of evaluation.
    shared
        What a branch takes from the tree.
    """

    acc: F32
    params: GemmParams
    loaded: Loaded
    inside: NDArray[np.bool_]
    values: Loaded = field(default_factory=dict)
    shared: F32 | None = None


@dataclass(frozen=True)
class Node(ABC):
    """One operation of the formula.

    Attributes
    ----------
    stores
        Whether it leaves something besides its value, so that a tree has it once.
    struct
        CUDA of a node that has no file in ``kernel/gemm/fusion``, as one of a notebook;
        what it includes is named as in ``kernel/gemm/parts.cuh``.
    """

    stores: ClassVar[bool] = False
    struct: ClassVar[str] = ""

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose values it takes, in order."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value for value in values if isinstance(value, Node))

    @cached_property
    def having(self) -> dict[str, tuple[Node, ...]]:
        """Nodes of the tree that ends here by a callback that they have."""
        return {}

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What the launch passes to it, and what it leaves."""
        return ()

    def walk(self) -> Iterator[Node]:
        """Give every node below and then this one: the order of evaluation."""
        for each in self.inputs:
            yield from each.walk()
        yield self

    # -- callbacks of the epilogue warps -------------------------------------------

    def begin(self, e: EpilogueWarp, work: WorkTile) -> Steps:
        """Get ready for a tile."""
        yield from ()

    def begin_loop(self, e: EpilogueWarp, at: Region) -> Steps:
        """Get ready for a subtile, before it is waited for."""
        yield from ()

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Load what the node needs for these rows and columns of D, or nothing."""
        yield from ()
        return None

    @abstractmethod
    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the node's values, (32, 32) or what broadcasts to it."""

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Combine the values of a visit, before D is written to shared memory."""
        yield from ()

    def postreduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Write the values of a visit, when D is in shared memory."""
        yield from ()

    def tma_store(self, e: EpilogueWarp, at: Region) -> Steps:
        """Start stores that are committed with D's; their data are visible to TMA."""
        yield from ()

    def end_loop(self, e: EpilogueWarp, at: Region) -> Steps:
        """End a subtile."""
        yield from ()

    def end(self, e: EpilogueWarp, work: WorkTile) -> Steps:
        """End a tile."""
        yield from ()

    # -- callbacks of the epilogue load warp ---------------------------------------

    def load_begin(self, p: LoadWarp, work: WorkTile) -> Steps:
        """Get ready for a tile's loads."""
        yield from ()

    def load_step(
        self, p: LoadWarp, work: WorkTile, subtile: int, stage: Stage
    ) -> Steps:
        """Start loads that C's full barrier counts, after C's."""
        yield from ()

    def load_end(self, p: LoadWarp, work: WorkTile) -> Steps:
        """End a tile's loads."""
        yield from ()

    # -- the tree ------------------------------------------------------------------

    def value(self, v: Visit) -> F32:
        """Evaluate the tree that ends here."""
        found = self.visit(v, *(each.value(v) for each in self.inputs))
        v.values[self] = found
        return found

    @property
    def template(self) -> tuple[str, ...]:
        """What follows its inputs in the C++ type: formats and slots."""
        return ()

    def __repr__(self) -> str:
        """Return the C++ type."""
        arguments = [*(repr(each) for each in self.inputs), *self.template]
        name = type(self).__name__
        return f"{name}<{', '.join(arguments)}>" if arguments else name


def slot(name: str) -> str:
    """Return the C++ template argument that names a field of the parameter block."""
    return f"&GemmParams::{name}"


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
