"""mma_sync: ``mma.sync``, a product of small matrices in the registers of a warp.

Shapes m16n8k4 to m16n8k32, elements f16, bf16, tf32 and 8-bit integers; m8n8k4 of
float64. Source: PTX, mma.
"""

from __future__ import annotations

from fp4ref.ptx.instructions.fragments import (
    FragmentReader,
    FragmentWriter,
    per_register,
    result,
    tall,
    wide,
)
from fp4ref.ptx.instructions.warp_products import Types, multiply
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction

_N = 8


@instruction(
    "mma.sync",
    form=".aligned.m8n8k(?P<k>4).row.col(.rn)?.(?P<types>f64.f64.f64.f64)",
    operands=4,
    strict=True,
)
@instruction(
    "mma.sync",
    form=".aligned.m16n8k(?P<k>8|16).row.col.(?P<types>f32.f16.f16.f32|"
    "f32.bf16.bf16.f32|f16.f16.f16.f16)",
    operands=4,
    strict=True,
)
@instruction(
    "mma.sync",
    form=".aligned.m16n8k(?P<k>4|8).row.col.(?P<types>f32.tf32.tf32.f32)",
    operands=4,
    strict=True,
)
@instruction(
    "mma.sync",
    form=".aligned.m16n8k(?P<k>16|32).row.col(?P<satfinite>.satfinite)?."
    "(?P<types>s32.(s8|u8).(s8|u8).s32)",
    operands=4,
    strict=True,
)
def mma(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mma.sync.aligned``, which the whole warp executes."""
    types, k = Types(*form["types"].split(".")), int(form["k"])
    m = 8 if types.d == "f64" else 16
    per = per_register(types.a)
    of_a, of_b = tall(m, k, per), wide(_N, k, per)
    of_d = result(m, _N)
    put = FragmentWriter(context, each, 0, of_d, types.d)
    a = FragmentReader(context, each, 1, of_a, types.a, (m, k))
    b = FragmentReader(context, each, 2, of_b, types.b, (_N, k))
    c = FragmentReader(context, each, 3, of_d, types.c, (m, _N))
    saturates = bool(form.get("satfinite"))

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        found = multiply(types, a(state), b(state), c(state), saturates)
        put(state, found)
        state.warp.record("mma.sync", {"shape": f"m{m}n8k{k}", "types": form["types"]})

    return act
