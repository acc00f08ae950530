"""comparisons: ``set``, a comparison whose result is a number, and ``testp``.

True is all ones as an integer and 1.0 as a float; each half of a pair is compared
alone. Source: PTX, set; half precision comparison, set; testp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.ptx.instructions.halves import flush_half
from fp4ref.ptx.instructions.moves import BOOLEAN, COMBINE, comparison
from fp4ref.ptx.instructions.rounding import NARROW
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

_TRUE = {
    **{"u16": 0xFFFF, "s16": 0xFFFF, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF},
    **{"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000},
}
_ANY = "(eq|ne|lt|le|gt|ge)u?|num|nan"
_FTZ = "(?P<ftz>.ftz)?"
_TO = ".(?P<to>u32|s32|f16|bf16|f32)"


def _put_true(
    context: LaunchContext,
    each: Instruction,
    form: Form,
    compare: Callable[[WarpState], Lanes],
    true: Lanes,
) -> Action:
    """Build a result of ``true`` where the comparison holds, and zero elsewhere.

    Parameters
    ----------
    compare
        Gives an array (32, n), one column for each of the n elements of `true`.
    """
    combine = form["combine"]
    if bool(combine) != (len(each.operands) == 4):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {len(each.operands)} operands"
        )
    third = reader(context, each.operands[3], "pred", each) if combine else None
    whole = np.dtype(f"u{true.nbytes}")
    put = writer(context, each.operands[0], f"b{8 * true.nbytes}", each)

    def act(state: WarpState) -> None:
        found = compare(state)
        if third is not None:
            found = BOOLEAN[combine](found, third(state)[:, None])
        values = np.where(found, true, true.dtype.type(0))
        put(state, np.ascontiguousarray(values).view(whole)[:, 0])

    return act


@instruction(
    "set",
    form=f".(?P<compare>eq|ne){COMBINE}{_TO}.(?P<kind>[bsu](16|32|64))",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>lt|le|gt|ge){COMBINE}{_TO}.(?P<kind>[su](16|32|64))",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>lo|ls|hi|hs){COMBINE}{_TO}.(?P<kind>u(16|32|64))",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}{_FTZ}.(?P<to>u32|s32|f16|f32).(?P<kind>f32)",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}.(?P<to>bf16).(?P<kind>f32)",
    operands=(3, 4),
)
@instruction(
    "set", form=f".(?P<compare>{_ANY}){COMBINE}{_TO}.(?P<kind>f64)", operands=(3, 4)
)
def set_value(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``set`` of integers, float32 and float64."""
    a, b = (reader(context, o, form["kind"], each) for o in each.operands[1:3])
    compare = comparison(form)
    nbytes = 2 if form["to"] in ("f16", "bf16") else 4
    true = np.array([_TRUE[form["to"]]], f"u{nbytes}")

    def found(state: WarpState) -> Lanes:
        return np.broadcast_to(compare(a(state), b(state)), LANES)[:, None]

    return _put_true(context, each, form, found, true)


@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}{_FTZ}.(?P<to>[su](16|32)|f16).(?P<half>f16)",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}{_FTZ}"
    ".(?P<to>f16x2|u32|s32).(?P<half>f16)(?P<pair>x2)",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}.(?P<to>[su](16|32)|bf16).(?P<half>bf16)",
    operands=(3, 4),
)
@instruction(
    "set",
    form=f".(?P<compare>{_ANY}){COMBINE}"
    ".(?P<to>bf16x2|u32|s32).(?P<half>bf16)(?P<pair>x2)",
    operands=(3, 4),
)
def set_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``set`` of f16, bf16 and their pairs; halves of those are 0xffff or 1.0."""
    to, pair, name = NARROW[form["half"]], bool(form.get("pair")), form["to"]
    a, b = (
        reader(context, o, "b32" if pair else "b16", each) for o in each.operands[1:3]
    )
    compare = comparison({"compare": form["compare"], "kind": "f64"})
    if pair:
        of_half = 0xFFFF if name in ("u32", "s32") else _TRUE[name.removesuffix("x2")]
        true = np.array([of_half, of_half], np.uint16)
    else:
        true = np.array([_TRUE[name]], "u4" if name in ("u32", "s32") else "u2")

    def halves(values: Lanes) -> Lanes:
        every = np.ascontiguousarray(np.broadcast_to(values, LANES))
        bits = every.view(np.uint16).reshape(LANES, -1)
        return to.widen(flush_half(bits, to) if form.get("ftz") else bits)

    return _put_true(
        context, each, form, lambda s: compare(halves(a(s)), halves(b(s))), true
    )


_CLASSES: dict[str, Callable[[Lanes], Lanes]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
}


@instruction(
    "testp",
    form=f".(?P<what>{'|'.join(_CLASSES)}|normal|subnormal).(?P<kind>f32|f64)",
    operands=2,
)
def is_of_class(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``testp``: which class a float is of; a zero is normal."""
    what, kind = form["what"], form["kind"]
    read = reader(context, each.operands[1], kind, each)
    put = writer(context, each.operands[0], "pred", each)
    smallest = np.finfo(np.float32 if kind == "f32" else np.float64).smallest_normal

    def is_subnormal(x: Lanes) -> Lanes:
        found: Lanes = (x != 0) & (np.abs(x) < smallest)
        return found

    def act(state: WarpState) -> None:
        x = read(state)
        if what == "subnormal":
            put(state, is_subnormal(x))
        elif what == "normal":
            put(state, np.isfinite(x) & ~is_subnormal(x))
        else:
            put(state, _CLASSES[what](x))

    return act
