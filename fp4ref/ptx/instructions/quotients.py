"""quotients: ``div.approx``, ``div.full`` and approximations without ``.ftz``.

None of these is an instruction of the hardware. ptxas writes a few multiplications
around a reciprocal or a power of two, the same for sm_90 and sm_100a:

- ``div.approx`` multiplies by the reciprocal; without ``.ftz`` both operands are first
  scaled by 2^24 if the divisor is subnormal.
- ``div.full`` scales both by 1/4 too if the divisor is above 2^126, whose reciprocal
  would be flushed.
- ``rcp.approx`` scales in the same way, and the result once more.
- ``ex2.approx`` squares the power of half of an operand below -126.

Checked on an H200: the operations of one operand for all 2^32 inputs, the quotients for
2^32 pairs of random patterns.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.formats import F32
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.ptx.instructions.approximate import ex2_approx_ftz
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.floating import canonical, flushing
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext
from fp4ref.ptx.text.syntax import Instruction

_UP, _DOWN, _ONE = np.float32(2.0**24), np.float32(0.25), np.float32(1)
_SMALLEST, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)


def _scale(b: F32, *, full: bool) -> F32:
    """Return what a divisor is multiplied by before its reciprocal."""
    up = np.where(np.abs(b) < _SMALLEST, _UP, _ONE)
    return np.where(np.abs(b) > _LARGE, _DOWN, up) if full else up


def div_approx(a: F32, b: F32) -> F32:
    """Return ``div.approx.f32``, subnormals kept; ``.ftz`` flushes around it."""
    scale = _scale(b, full=False)
    return rcp_approx_ftz(b * scale) * (a * scale)


def div_full(a: F32, b: F32) -> F32:
    """Return ``div.full.f32``, subnormals kept; ``.ftz`` flushes around it."""
    scale = _scale(b, full=True)
    return rcp_approx_ftz(b * scale) * (a * scale)


def rcp_approx(x: F32) -> F32:
    """Return ``rcp.approx.f32``, subnormals kept."""
    scale = _scale(x, full=True)
    return scale * rcp_approx_ftz(x * scale)


def ex2_approx(x: F32) -> F32:
    """Return ``ex2.approx.f32``, subnormals kept."""
    low = x < np.float32(-126)
    power = ex2_approx_ftz(np.where(low, x * np.float32(0.5), x))
    return np.where(low, power * power, power)


_QUOTIENTS = {"div.approx": div_approx, "div.full": div_full}
_FUNCTIONS = {"rcp.approx": rcp_approx, "ex2.approx": ex2_approx}


@instruction("div.approx", "div.full", form="(?P<ftz>.ftz)?.f32", operands=3)
def quotient(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``div.approx`` and ``div.full``."""
    function = flushing(_QUOTIENTS[form["name"]], form)
    return elementwise(context, each, function, "f32")


@instruction("rcp.approx", "ex2.approx", form=".f32", operands=2)
def without_ftz(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``rcp.approx`` and ``ex2.approx`` that keep subnormals."""
    function = _FUNCTIONS[form["name"]]
    return elementwise(context, each, lambda x: canonical(function(x)), "f32")
