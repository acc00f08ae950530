"""halves: arithmetic of f16, bf16 and their pairs.

Subnormals are kept unless ``.ftz`` flushes them, a NaN result is 0x7fff, and each half
of a pair is computed alone. Source: PTX, Half precision floating-point instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.ptx.instructions.approximate import ex2_approx_ftz, tanh_approx
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.moves import BOOLEAN, COMBINE, comparison
from fp4ref.ptx.instructions.rounded import rounded
from fp4ref.ptx.instructions.rounding import (
    NARROW,
    Narrow,
    flush_result,
    narrow,
    saturate,
)
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, Pair, PtxError

_FTZ, _SAT = "(?P<ftz>.ftz)?", "(?P<sat>.sat)?"


def by_half(
    context: LaunchContext,
    each: Instruction,
    form: Form,
    function: Callable[..., Lanes],
) -> Action:
    """Build an operation of patterns of 16 bits, on one half or on both of a pair."""
    if not form["pair"]:
        return elementwise(context, each, function, "b16")

    def both(*sources: Lanes) -> Lanes:
        # A pair is two neighbours in memory, the lower half first.
        halves = (np.ascontiguousarray(x).view(np.uint16) for x in sources)
        return function(*halves).astype(np.uint16).view(np.uint32)

    return elementwise(context, each, both, "b32")


def flush_half(bits: Lanes, to: Narrow) -> Lanes:
    """Replace subnormal patterns by zero of their sign."""
    exponent = bits & to.storage.type(to.infinity)
    return np.where(exponent, bits, bits & to.storage.type(to.sign))


@instruction(
    "add",
    "sub",
    "mul",
    form=f"(.rn)?{_FTZ}{_SAT}.(?P<half>f16)(?P<pair>x2)?",
    operands=3,
)
@instruction("add", "sub", "mul", form="(.rn)?.(?P<half>bf16)(?P<pair>x2)?", operands=3)
@instruction(
    "fma.rn", form=f"{_FTZ}(?P<relu>.relu)?.(?P<half>f16)(?P<pair>x2)?", operands=4
)
@instruction(
    "fma.rn", form=f"{_FTZ}(?P<sat>.sat).(?P<half>f16)(?P<pair>x2)?", operands=4
)
@instruction("fma.rn", form="(?P<relu>.relu)?.(?P<half>bf16)(?P<pair>x2)?", operands=4)
def arithmetic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build sums, products and both in one, rounded once to nearest even.

    ``.relu`` makes negative results +0 and keeps a NaN.
    """
    name, to = form["name"].partition(".")[0], NARROW[form["half"]]
    ftz = bool(form.get("ftz"))
    negative = to.storage.type(to.sign)

    def act(*sources: Lanes) -> Lanes:
        taken = (flush_half(x, to) if ftz else x for x in sources)
        exact, found = rounded(name, to, "rn", *map(to.widen, taken))
        if ftz:
            found = flush_result(exact, found, to, "rn")
        if form.get("sat"):
            found = saturate(found, to)
        if form.get("relu"):
            found = np.where(found & negative, to.storage.type(0), found)
        return found

    return by_half(context, each, form, act)


@instruction("neg", "abs", form=f"{_FTZ}.(?P<half>f16)(?P<pair>x2)?", operands=2)
@instruction("neg", "abs", form=".(?P<half>bf16)(?P<pair>x2)?", operands=2)
def sign(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build negation and magnitude; a NaN becomes canonical."""
    to = NARROW[form["half"]]
    bit = to.storage.type(to.sign)
    is_abs = form["name"] == "abs"

    def act(bits: Lanes) -> Lanes:
        taken = flush_half(bits, to) if form.get("ftz") else bits
        found = taken & ~bit if is_abs else taken ^ bit
        return canonical_half(found, to)

    return by_half(context, each, form, act)


def canonical_half(bits: Lanes, to: Narrow) -> Lanes:
    """Replace every NaN pattern by the one of arithmetic."""
    magnitude = bits & ~to.storage.type(to.sign)
    nan = magnitude > to.storage.type(to.infinity)
    return np.where(nan, to.storage.type(to.nan), bits)


def smaller_or_larger(
    a: Lanes, b: Lanes, to: Narrow, *, larger: bool, keeps_nan: bool
) -> Lanes:
    """Return the smaller or larger patterns; -0 < +0, and a NaN result is canonical.

    Parameters
    ----------
    keeps_nan
        Whether a NaN wins; if not, it loses.
    """
    bit = to.storage.type(to.sign)
    a_is_nan, b_is_nan = (x & ~bit > to.storage.type(to.infinity) for x in (a, b))
    # Sign and magnitude as a number that orders all of them, the zeros too.
    first, second = (
        np.where(x & bit, bit - np.int32(1) - (x & ~bit), x.astype(np.int32) + bit)
        for x in (a, b)
    )
    found = np.where((first > second) == larger, a, b)
    if keeps_nan:
        found = np.where(a_is_nan | b_is_nan, to.storage.type(to.nan), found)
    else:
        found = np.where(a_is_nan, b, np.where(b_is_nan, a, found))
    return canonical_half(found, to)


_NAN = "(?P<nan>.NaN)?(?P<xorsign>.xorsign.abs)?"


@instruction("min", "max", form=f"{_FTZ}{_NAN}.(?P<half>f16)(?P<pair>x2)?", operands=3)
@instruction("min", "max", form=f"{_NAN}.(?P<half>bf16)(?P<pair>x2)?", operands=3)
def min_max(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build min / max: with ``.NaN`` a NaN wins, without it loses; -0 < +0.

    ``.xorsign.abs`` compares magnitudes, and the result has the product's sign.
    """
    to = NARROW[form["half"]]
    bit = to.storage.type(to.sign)
    larger, keeps_nan = form["name"] == "max", bool(form["nan"])

    def act(a: Lanes, b: Lanes) -> Lanes:
        if form.get("ftz"):
            a, b = flush_half(a, to), flush_half(b, to)
        if not form["xorsign"]:
            return smaller_or_larger(a, b, to, larger=larger, keeps_nan=keeps_nan)
        found = smaller_or_larger(
            a & ~bit, b & ~bit, to, larger=larger, keeps_nan=keeps_nan
        )
        return canonical_half(found & ~bit | (a ^ b) & bit, to)

    return by_half(context, each, form, act)


_COMPARE = f".(?P<compare>(eq|ne|lt|le|gt|ge)u?|num|nan){COMBINE}"


@instruction("setp", form=f"{_COMPARE}.ftz.(?P<half>f16)(?P<pair>x2)?", operands=(3, 4))
@instruction("setp", form=f"{_COMPARE}.(?P<half>f16)(?P<pair>x2)", operands=(3, 4))
@instruction("setp", form=f"{_COMPARE}.(?P<half>bf16)(?P<pair>x2)?", operands=(3, 4))
def set_predicate(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``setp`` of halves; a pair has a predicate for each, the lower first."""
    to, combine, pair = NARROW[form["half"]], form["combine"], bool(form["pair"])
    target = each.operands[0]
    if bool(combine) != (len(each.operands) == 4) or pair != isinstance(target, Pair):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} gives one predicate for each half, "
            "and takes a third source to combine with"
        )
    compare = comparison({"compare": form["compare"], "kind": "f64"})
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    puts = [writer(context, t, "pred", each) for t in targets]
    a, b = (
        reader(context, o, "b32" if pair else "b16", each) for o in each.operands[1:3]
    )
    third = reader(context, each.operands[3], "pred", each) if combine else None

    def halves(values: Lanes) -> Lanes:
        bits = np.ascontiguousarray(values).view(np.uint16).reshape(LANES, -1)
        return to.widen(flush_half(bits, to) if ".ftz" in each.opcode else bits)

    def act(state: WarpState) -> None:
        found = compare(halves(a(state)), halves(b(state)))
        for column, put in enumerate(puts):
            result = found[:, column]
            if third is not None:
                result = BOOLEAN[combine](result, third(state))
            put(state, result)

    return act


@instruction("ex2.approx", form=".(?P<half>f16)(?P<pair>x2)?", operands=2)
@instruction("ex2.approx.ftz", form=".(?P<half>bf16)(?P<pair>x2)?", operands=2)
@instruction("tanh.approx", form=".(?P<half>f16|bf16)(?P<pair>x2)?", operands=2)
def approximate(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``ex2`` and ``tanh``: the float32 function cut to 16 bits.

    Right for all 65,536 inputs on an H200. What exceeds f16 becomes infinite.
    """
    to = NARROW[form["half"]]
    function = ex2_approx_ftz if form["name"].startswith("ex2") else tanh_approx

    def act(bits: Lanes) -> Lanes:
        found = function(to.widen(bits).astype(np.float32)).astype(np.float64)
        limit = float(to.widen(np.array([to.infinity - 1], to.storage))[0])
        return narrow(np.where(found > limit, np.inf, found), to, "rz")

    return by_half(context, each, form, act)
