"""elementwise: actions that apply one NumPy function to every lane."""

from __future__ import annotations

from collections.abc import Callable

from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Lanewise
from fp4ref.ptx.run.state import Lanes, LaunchContext
from fp4ref.ptx.text.syntax import Instruction


def elementwise(
    context: LaunchContext,
    each: Instruction,
    function: Callable[..., Lanes],
    kind: str,
    result: str | None = None,
) -> Action:
    """Build ``d = function(a, b, ...)`` for sources of one type."""
    reads = [reader(context, o, kind, each) for o in each.operands[1:]]
    put = writer(context, each.operands[0], result or kind, each)
    if len(reads) == 1:
        (first,) = reads
        return lambda state: put(state, function(first(state)))
    if len(reads) == 2:
        first, second = reads
        return lambda state: put(state, function(first(state), second(state)))
    return lambda state: put(state, function(*(read(state) for read in reads)))


def lanewise(
    context: LaunchContext,
    each: Instruction,
    function: Callable[..., Lanes],
    kind: str,
    result: str | None = None,
) -> Lanewise:
    """Build the same, for a function that takes several instructions' lanes at once.

    Parameters
    ----------
    function
        The opcode alone says what it does. It takes arrays of (n, 32), or of (n, 1)
        for literals.
    """
    alone = elementwise(context, each, function, kind, result)
    target, *sources = each.operands
    kinds = (kind,) * len(sources)
    return Lanewise(function, tuple(sources), kinds, target, result or kind, alone)
