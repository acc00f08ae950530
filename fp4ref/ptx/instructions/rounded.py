"""rounded: float32 arithmetic in directions ``.rz .rm .rp``, with ``.sat``; ``mad``.

What is rounded to nearest and not limited is in `floating`. Sources of 16 bits may take
part in a float32 sum. Source: PTX, Floating-point instructions; Mixed precision
floating-point instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.numerics.arithmetic import add_round_to_odd
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.floating import flush
from fp4ref.ptx.instructions.rounding import (
    F32,
    F64,
    NARROW,
    Narrow,
    flush_result,
    narrow,
    saturate,
)
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction

Exact = Callable[..., F64]


def exact_sum(a: F64, b: F64) -> F64:
    """Return ``a + b``, rounded to odd."""
    return np.atleast_1d(add_round_to_odd(a, b))


def exact_fma(a: F64, b: F64, c: F64) -> F64:
    """Return ``a * b + c``, rounded to odd; the product has at most 48 bits."""
    return exact_sum(a * b, c)


EXACT: dict[str, Exact] = {
    "add": exact_sum,
    "sub": lambda a, b: exact_sum(a, -b),
    "mul": np.multiply,
    "fma": exact_fma,
    "mad": exact_fma,
    # A quotient or a root of 24-bit numbers that is no 24-bit number is 2^-49 of
    # itself or more away from one, so that a float64 lies on the right side of it.
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda x: np.divide(1.0, x),
}
_SUMS = ("add", "sub", "fma", "mad")


def rounded(name: str, to: Narrow, way: str, *sources: F64) -> tuple[F64, Lanes]:
    """Return the exact result, or it rounded to odd, and its pattern in `to`.

    A sum of zero whose terms differ in sign is -0 if it is rounded down.
    """
    exact = EXACT[name](*sources)
    if way == "rm" and name in _SUMS:
        zero = exact == 0
        if zero.any():
            *first, last = sources
            term = first[0] * first[1] if len(first) == 2 else first[0]
            other = -last if name == "sub" else last
            minus = zero & (np.signbit(term) | np.signbit(other))
            exact = np.where(minus, -0.0, exact)
    return exact, narrow(exact, to, way)


_DIRECTED = ".(?P<way>rz|rm|rp)(?P<ftz>.ftz)?"
_SAT = "(?P<sat>.sat)"


@instruction("add", "sub", "mul", form=f"{_DIRECTED}{_SAT}?.f32", operands=3)
@instruction("add", "sub", "mul", form=f"(.rn)?(?P<ftz>.ftz)?{_SAT}.f32", operands=3)
@instruction("fma", form=f"{_DIRECTED}{_SAT}?.f32", operands=4)
@instruction("fma", form=f".rn(?P<ftz>.ftz)?{_SAT}.f32", operands=4)
@instruction("mad", form=f".(?P<way>rn|rz|rm|rp)(?P<ftz>.ftz)?{_SAT}?.f32", operands=4)
@instruction("div", form=f"{_DIRECTED}.f32", operands=3)
@instruction("sqrt", "rcp", form=f"{_DIRECTED}.f32", operands=2)
def arithmetic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build arithmetic in every direction; ``mad`` is ``fma`` since sm_20."""
    return elementwise(context, each, directed(form), "f32")


def directed(form: Form) -> Callable[..., Lanes]:
    """Return an operation on float32 that rounds as its opcode says."""
    name, way = form["name"], form.get("way") or "rn"

    def act(*sources: Lanes) -> Lanes:
        taken = map(flush, sources) if form["ftz"] else iter(sources)
        exact, found = rounded(name, F32, way, *(x.astype(np.float64) for x in taken))
        if form["ftz"]:
            found = flush_result(exact, found, F32, way)
        if form.get("sat"):
            found = saturate(found, F32)
        return found.view(np.float32)

    return act


_MIXED = f"(.(?P<way>rn|rz|rm|rp))?{_SAT}?.f32.(?P<kind>f16|bf16)"


@instruction("add", "sub", form=_MIXED, operands=3)
@instruction("fma", form=_MIXED.replace(")?", ")", 1), operands=4)
def mixed(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a float32 sum whose other term, or its factors, have 16 bits."""
    name, way = form["name"], form["way"] or "rn"
    widen = NARROW[form["kind"]].widen
    *halves, term = each.operands[1:]
    reads = [reader(context, o, "b16", each) for o in halves]
    last = reader(context, term, "f32", each)
    put = writer(context, each.operands[0], "b32", each)

    def act(state: WarpState) -> None:
        wide = [widen(read(state)) for read in reads]
        _, found = rounded(name, F32, way, *wide, last(state).astype(np.float64))
        put(state, saturate(found, F32) if form["sat"] else found)

    return act
