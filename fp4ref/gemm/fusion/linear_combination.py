"""linear_combination: activation(beta * C + (alpha * acc + bias)) as a tree."""

from __future__ import annotations

from fp4ref.gemm.fusion.acc_fetch import AccFetch
from fp4ref.gemm.fusion.alpha import Alpha
from fp4ref.gemm.fusion.constant import Constant
from fp4ref.gemm.fusion.fma import Fma
from fp4ref.gemm.fusion.multiply import Multiply
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.fusion.registry import activations
from fp4ref.gemm.fusion.src_fetch import SrcFetch


def linear_combination(
    *, beta: float, source: str | None, bias: Node | None, activation: str | None
) -> Node:
    """Return CUTLASS's ``LinearCombination``, with a bias and an activation if asked.

    ``alpha * acc`` is one rounding, or one fma with the bias; ``beta * C`` is always an
    fma, also with beta 0, where C is +0: it turns -0 into +0.

    Parameters
    ----------
    source
        Format of C; None if it is not read.
    bias
        The node that brings it; None without.
    """
    scaled: Node = Multiply(Alpha(), AccFetch())
    if bias is not None:
        scaled = Fma(Alpha(), AccFetch(), bias)
    c = Constant(0.0) if source is None else SrcFetch(source)
    tree: Node = Fma(Constant(beta), c, scaled)
    return activations()[activation](tree) if activation else tree
