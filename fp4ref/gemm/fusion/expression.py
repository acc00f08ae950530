"""expression: a formula written as one, which becomes a tree of nodes.

``relu(alpha * acc + beta * c + row("bias")) | aux("y") | amax("D")`` is a value;
`build` makes an epilogue of it. Every operation rounds once, in the order of Python. A
product that is added is an fma, CUTLASS's ``homogeneous_multiply_add``; of two products
the right one is. So ``alpha * acc + beta * c`` is ``fma(beta, c, alpha * acc)``. `add`
takes products that have been rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, get_args

from fp4ref.arguments import require_choice, require_finite_float32, shown
from fp4ref.errors import InputError
from fp4ref.gemm.config import Epilogue, Format, SourceFormat
from fp4ref.gemm.fusion.acc_fetch import AccFetch
from fp4ref.gemm.fusion.add import Add
from fp4ref.gemm.fusion.add_bf16 import AddBf16
from fp4ref.gemm.fusion.alpha import Alpha
from fp4ref.gemm.fusion.aux_load import AuxLoad
from fp4ref.gemm.fusion.aux_store import AuxStore
from fp4ref.gemm.fusion.col_broadcast import ColBroadcast
from fp4ref.gemm.fusion.col_maximum import ColMaximum
from fp4ref.gemm.fusion.col_sum import ColSum
from fp4ref.gemm.fusion.constant import Constant
from fp4ref.gemm.fusion.d_gelu import DGelu
from fp4ref.gemm.fusion.d_relu import DRelu
from fp4ref.gemm.fusion.d_relu_z import DReluZ
from fp4ref.gemm.fusion.divide import Divide
from fp4ref.gemm.fusion.embedding import Embedding
from fp4ref.gemm.fusion.fma import Fma
from fp4ref.gemm.fusion.gelu import Gelu
from fp4ref.gemm.fusion.gelu_erf import GeluErf
from fp4ref.gemm.fusion.hardswish import Hardswish
from fp4ref.gemm.fusion.leaky_relu import LeakyRelu
from fp4ref.gemm.fusion.mask_load import MaskLoad
from fp4ref.gemm.fusion.maximum import Maximum
from fp4ref.gemm.fusion.minimum import Minimum
from fp4ref.gemm.fusion.multiply import Multiply
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.fusion.relu import Relu
from fp4ref.gemm.fusion.relu_mask import ReluMask
from fp4ref.gemm.fusion.row_broadcast import RowBroadcast
from fp4ref.gemm.fusion.row_maximum import RowMaximum
from fp4ref.gemm.fusion.row_sum import RowSum
from fp4ref.gemm.fusion.scalar_broadcast import ScalarBroadcast
from fp4ref.gemm.fusion.scalar_maximum import ScalarMaximum
from fp4ref.gemm.fusion.scalar_sum import ScalarSum
from fp4ref.gemm.fusion.sigmoid import Sigmoid
from fp4ref.gemm.fusion.silu import Silu
from fp4ref.gemm.fusion.split_tree import SplitTree
from fp4ref.gemm.fusion.split_tree_fetch import SplitTreeFetch
from fp4ref.gemm.fusion.src_fetch import SrcFetch
from fp4ref.gemm.fusion.subtract import Subtract
from fp4ref.gemm.fusion.tanh import Tanh

_SOURCES: tuple[SourceFormat, ...] = get_args(SourceFormat)


@dataclass(frozen=True)
class Value:
    """A value of every element of D, and the tree that gives it."""

    node: Node

    def __add__(self, other: ValueLike) -> Value:
        """Add; a product is part of an fma."""
        a, b = self.node, node_of(other)
        if isinstance(b, Multiply):
            return Value(Fma(b.a, b.b, a))
        if isinstance(a, Multiply):
            return Value(Fma(a.a, a.b, b))
        return Value(Add(a, b))

    def __radd__(self, other: ValueLike) -> Value:
        """Add."""
        return Value(node_of(other)) + self

    def __sub__(self, other: ValueLike) -> Value:
        """Subtract; no fma."""
        return Value(Subtract(self.node, node_of(other)))

    def __rsub__(self, other: ValueLike) -> Value:
        """Subtract."""
        return Value(Subtract(node_of(other), self.node))

    def __mul__(self, other: ValueLike) -> Value:
        """Multiply."""
        return Value(Multiply(self.node, node_of(other)))

    def __rmul__(self, other: ValueLike) -> Value:
        """Multiply."""
        return Value(Multiply(node_of(other), self.node))

    def __truediv__(self, other: ValueLike) -> Value:
        """Divide."""
        return Value(Divide(self.node, node_of(other)))

    def __rtruediv__(self, other: ValueLike) -> Value:
        """Divide."""
        return Value(Divide(node_of(other), self.node))

    def __neg__(self) -> Value:
        """Multiply by -1."""
        return -1.0 * self

    def __or__(self, through: Callable[[Value], Value]) -> Value:
        """Pipe the value through a store or a reduction, which hands it on.

        Raises
        ------
        InputError
            `through` is no such thing.
        """
        if not callable(through):
            raise InputError(
                f"| {shown(through)}: a value is piped through aux, relu_mask, branch "
                "or a reduction. For example acc | amax('d')"
            )
        return through(self)


ValueLike = Value | Node | float
N = TypeVar("N", bound=Node)


def node_of(value: ValueLike) -> Node:
    """Return the node of a value; a number is a constant.

    Raises
    ------
    InputError
        It is neither, or no number of float32.
    """
    if isinstance(value, Value):
        return value.node
    if isinstance(value, Node):
        return value
    given: object = value
    if given is None or isinstance(given, str):
        raise InputError(
            f"{shown(value)} is no part of a formula: give a value, as alpha * acc, or "
            "a number"
        )
    return Constant(require_finite_float32(value, "a constant of the tree"))


def operation(kind: Callable[..., N]) -> Callable[..., Value]:
    """Return a function of values that makes a node: for a class of one's own."""

    def apply(*inputs: ValueLike, **more: Any) -> Value:
        return Value(kind(*(node_of(each) for each in inputs), **more))

    apply.__doc__ = kind.__doc__
    return apply


acc = Value(AccFetch())
"""The accumulator."""
c = Value(SrcFetch())
"""C, in the format that `build` is told."""
alpha = Value(Alpha())
"""The launch's ``alpha``."""
beta = Value(ScalarBroadcast("beta", 1.0))
"""The launch's ``arguments["beta"]``, 1 if it passes none. C is read whatever it is."""

add, divide, subtract = operation(Add), operation(Divide), operation(Subtract)
multiply, fma = operation(Multiply), operation(Fma)
maximum, minimum = operation(Maximum), operation(Minimum)
relu, silu, sigmoid, tanh = map(operation, (Relu, Silu, Sigmoid, Tanh))
gelu, gelu_erf, hardswish = map(operation, (Gelu, GeluErf, Hardswish))
leaky_relu, d_gelu = operation(LeakyRelu), operation(DGelu)
d_relu, d_relu_z = operation(DRelu), operation(DReluZ)
add_bf16 = operation(AddBf16)


def clamp(x: ValueLike, low: ValueLike, high: ValueLike) -> Value:
    """Return ``min(max(x, low), high)``; a NaN stays. CUTLASS's ``Clamp``."""
    return minimum(maximum(x, low), high)


def scalar(name: str, default: float | None = None) -> Value:
    """Return a number of the launch, ``arguments[name]``."""
    return Value(ScalarBroadcast(name, default))


def row(name: str) -> Value:
    """Return a number for each column, ``arguments[name]`` or ``bias``: (N,)."""
    return Value(RowBroadcast(name))


def col(name: str) -> Value:
    """Return a number for each row, ``arguments[name]`` or ``bias``: (M,)."""
    return Value(ColBroadcast(name))


def aux_load(name: str, element: SourceFormat = "f32") -> Value:
    """Return a tensor of the launch, ``arguments[name]``: (M, N) or (L, M, N)."""
    return Value(AuxLoad(name, _aux_format(element)))


def embedding(name: str) -> Value:
    """Return row m mod P of ``arguments[name]`` for row m: (P, N) in BF16."""
    return Value(Embedding(name))


def mask_load(name: str) -> Value:
    """Return 1 where ``arguments[name]`` is true, else 0: (M, N) or (L, M, N)."""
    return Value(MaskLoad(name))


def aux(name: str, element: SourceFormat = "f32") -> Callable[[Value], Value]:
    """Store the value in ``run.aux[name]``, and hand it on unconverted."""
    checked = _aux_format(element)
    return lambda x: Value(AuxStore(x.node, name, checked))


def relu_mask(name: str) -> Callable[[Value], Value]:
    """Store in ``run.aux[name]`` whether ReLU leaves the value, and hand it on."""
    return lambda x: Value(ReluMask(x.node, name))


def branch(make: Callable[[Value], ValueLike]) -> Callable[[Value], Value]:
    """Give the value to a tree that stores or reduces more of it, and hand it on.

    ``z | branch(lambda z: z * scalar("scale") | aux("y", "e4m3"))``
    """
    shared = Value(SplitTreeFetch())
    return lambda x: Value(SplitTree(x.node, node_of(make(shared))))


def _reduction(kind: Any) -> Callable[[str], Callable[[Value], Value]]:
    def pipe(name: str) -> Callable[[Value], Value]:
        return lambda x: Value(kind(x.node, name))

    pipe.__doc__ = f"{kind.__doc__} The result is in ``run.reductions[name]``."
    return pipe


amax = _reduction(ScalarMaximum)
row_amax, col_amax = _reduction(RowMaximum), _reduction(ColMaximum)
total, row_sum, col_sum = map(_reduction, (ScalarSum, RowSum, ColSum))


def build(
    tree: ValueLike, *, d: Format | None = "f32", c: str | None = None, **more: Any
) -> Epilogue:
    """Return the epilogue that computes `tree`.

    Parameters
    ----------
    d
        Format of D; None stores no D, but what the tree's nodes store.
    c
        Format of C, if the tree has it; None takes that of D, or float32 for a D with
        block scales: CUTLASS's ``ElementSource_ = ElementOutput_``.
    more
        Other fields of `Epilogue`.

    Raises
    ------
    InputError
        `tree` is no formula, or an epilogue has no such field.
    """
    node = node_of(tree)
    known = [each.name for each in fields(Epilogue)]
    for name in more:
        require_choice(name, "a field of the epilogue", known)
    source = (d if d in _SOURCES else "f32") if c is None else c
    reads_c = any(isinstance(each, SrcFetch) for each in node.walk())
    return Epilogue(
        d_format=d,
        c_format=source if reads_c else None,  # type: ignore[arg-type]
        fusion=with_source(node, source),
        **more,
    )


def with_source(node: Node, element: str) -> Node:
    """Return the tree with a format for C."""
    if isinstance(node, SrcFetch):
        return SrcFetch(node.element or element)
    changed = {
        each.name: with_source(value, element)
        for each in fields(node)
        if isinstance(value := getattr(node, each.name), Node)
    }
    return replace(node, **changed)


def _aux_format(element: SourceFormat) -> SourceFormat:
    return require_choice(element, "element", _SOURCES, gap="gemm-output")
