"""wmma: ``wmma.load``, ``wmma.mma`` and ``wmma.store``, tiles of 16 x 16 in a warp.

Which lane has which element PTX leaves open; here it is as on an H200. A and B in f16
are held twice, or four times. D in f16 with C in f32 is rounded from f32, as there.
Source: PTX, wmma.load, wmma.store, wmma.mma.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import MisalignedAddress
from fp4ref.ptx.instructions.fragments import (
    STORED,
    FragmentReader,
    FragmentWriter,
    Held,
    per_register,
    result,
    tall,
    wide,
)
from fp4ref.ptx.instructions.warp_products import Types, multiply
from fp4ref.ptx.run.observed import observe
from fp4ref.ptx.run.operands import address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.spaces import read_memory, resolve, write_memory
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

_SHAPES = "m16n16k16|m8n32k16|m32n8k16"
_SPACE = "(.(?P<space>global|shared(::cta)?))?"
_TILE = {
    "m16n16k16": (16, 16, 16),
    "m8n32k16": (8, 32, 16),
    "m32n8k16": (32, 8, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}
_ROW_NBYTES = 16
_REGISTERS_OF_F16 = 8


def _held(matrix: str, shape: str, kind: str) -> tuple[Held, tuple[int, int]]:
    """Return what a lane holds of A, B, C or D, and the matrix's shape."""
    m, n, k = _TILE[shape]
    # Of m8n32 the hardware computes the transposed product.
    flat = (m, n) == (8, 32)
    if matrix in "cd":
        return result(n, m).transposed if flat else result(m, n), (m, n)
    per = per_register(kind)
    if matrix == "a":
        found, extent = (wide if flat else tall)(m, k, per), (m, k)
    else:
        found, extent = (tall if flat else wide)(n, k, per).transposed, (k, n)
    if kind == "f16":
        found = found.copied(_REGISTERS_OF_F16 * per // found.row.shape[1])
    return found, extent


class _Place:
    """Where the elements that each lane holds lie in memory."""

    def __init__(
        self,
        context: LaunchContext,
        each: Instruction,
        form: Form,
        operand: int,
        held: Held,
        extent: tuple[int, int],
    ) -> None:
        self.at = address_reader(context, each.operands[operand], each)
        self.stride: Callable[[WarpState], NDArray[np.generic]] | None = None
        if len(each.operands) == 3:
            self.stride = reader(context, each.operands[2], "u32", each)
        self.by_rows = form["layout"] == "row"
        self.least = extent[1] if self.by_rows else extent[0]
        self.held, self.each = held, each
        self.nbytes = STORED[form["kind"]].itemsize
        self.alignment = held.row.shape[1] * self.nbytes
        self.space = form["space"] or "generic"

    def resolved(self, state: WarpState) -> tuple[str, NDArray[np.uint64]]:
        """Return the state space, and the address of each element of each lane."""
        base = state.uniform(self.at(state), "the address of a matrix")
        stride = self.least
        if self.stride is not None:
            stride = state.uniform(self.stride(state), "the stride of a matrix")
        self._check(state, base, stride)
        slow, quick = self.held if self.by_rows else self.held.transposed
        places = (slow * stride + quick) * self.nbytes + base
        found = list(resolve(self.space, places.ravel().astype(np.uint64)))
        if len(found) != 1 or found[0][0] not in ("global", "shared", "shared::cta"):
            raise PtxError(
                f"PTX line {self.each.line}: {self.each.opcode} of a matrix that is "
                "neither in global nor in shared memory"
            )
        space, addresses, _ = found[0]
        return "global" if space == "global" else "shared", addresses

    def _check(self, state: WarpState, base: int, stride: int) -> None:
        of_rows = min(self.alignment, _ROW_NBYTES)
        if base % self.alignment or stride * self.nbytes % of_rows:
            raise MisalignedAddress(
                f"{self.each.opcode} at {base:#x}, {stride * self.nbytes} bytes from "
                "row to row, or column to column",
                who=state.warp.who,
                where=state.at,
                rule=f"the address is a multiple of the {self.alignment} bytes that a "
                f"lane has [PTX: wmma, address alignment], and the stride of {of_rows} "
                "[CUDA: nvcuda::wmma]",
                remedy="align the tile, and pad its rows to as much",
            )


@instruction(
    "wmma.load",
    form=f".(?P<matrix>a|b).sync.aligned.(?P<layout>row|col).(?P<shape>{_SHAPES})"
    f"{_SPACE}.(?P<kind>f16|bf16|s8|u8)",
    operands=(2, 3),
)
@instruction(
    "wmma.load",
    form=".(?P<matrix>a|b).sync.aligned.(?P<layout>row|col).(?P<shape>m16n16k8)"
    f"{_SPACE}.(?P<kind>tf32)",
    operands=(2, 3),
)
@instruction(
    "wmma.load",
    form=".(?P<matrix>a|b|c).sync.aligned.(?P<layout>row|col).(?P<shape>m8n8k4)"
    f"{_SPACE}.(?P<kind>f64)",
    operands=(2, 3),
)
@instruction(
    "wmma.load",
    form=f".(?P<matrix>c).sync.aligned.(?P<layout>row|col).(?P<shape>{_SHAPES})"
    f"{_SPACE}.(?P<kind>f16|f32|s32)",
    operands=(2, 3),
)
@instruction(
    "wmma.load",
    form=".(?P<matrix>c).sync.aligned.(?P<layout>row|col).(?P<shape>m16n16k8)"
    f"{_SPACE}.(?P<kind>f32)",
    operands=(2, 3),
)
def load(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``wmma.load``: a matrix from memory into the registers of a warp."""
    kind = form["kind"]
    held, extent = _held(form["matrix"], form["shape"], kind)
    put = FragmentWriter(context, each, 0, held, kind)
    place = _Place(context, each, form, 1, held, extent)
    lanes = np.repeat(np.arange(held.row.shape[0]), held.row.shape[1])

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        space, addresses = place.resolved(state)
        nbytes = place.nbytes
        observe(state, space, addresses, nbytes, "wmma.load", is_write=False,
                lanes=lanes)  # fmt: skip
        data = read_memory(state, space, addresses, nbytes)
        matrix = np.zeros(extent, STORED[kind])
        matrix[held] = data.view(STORED[kind]).reshape(held.row.shape)
        put(state, matrix)
        state.warp.record("wmma.load", {"matrix": form["matrix"]})

    return act


@instruction(
    "wmma.store",
    form=f".(?P<matrix>d).sync.aligned.(?P<layout>row|col).(?P<shape>{_SHAPES})"
    f"{_SPACE}.(?P<kind>f16|f32|s32)",
    operands=(2, 3),
    writes=0,
    strict=True,
)
@instruction(
    "wmma.store",
    form=".(?P<matrix>d).sync.aligned.(?P<layout>row|col).(?P<shape>m16n16k8)"
    f"{_SPACE}.(?P<kind>f32)",
    operands=(2, 3),
    writes=0,
    strict=True,
)
@instruction(
    "wmma.store",
    form=".(?P<matrix>d).sync.aligned.(?P<layout>row|col).(?P<shape>m8n8k4)"
    f"{_SPACE}.(?P<kind>f64)",
    operands=(2, 3),
    writes=0,
    strict=True,
)
def store(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``wmma.store``: D from the registers of a warp into memory."""
    kind = form["kind"]
    held, extent = _held("d", form["shape"], kind)
    read = FragmentReader(context, each, 1, held, kind, extent)
    place = _Place(context, each, form, 0, held, extent)
    lanes = np.repeat(np.arange(held.row.shape[0]), held.row.shape[1])

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        space, addresses = place.resolved(state)
        nbytes = place.nbytes
        observe(state, space, addresses, nbytes, "wmma.store", is_write=True,
                lanes=lanes)  # fmt: skip
        values = np.ascontiguousarray(read(state)[held])
        write_memory(state, space, addresses, values.view(np.uint8).reshape(-1, nbytes))
        state.warp.record("wmma.store", {"matrix": "d"})

    return act


@instruction(
    "wmma.mma",
    form=f".sync.aligned.(row|col).(row|col).(?P<shape>{_SHAPES})."
    "(?P<d>f16|f32).(?P<c>f16|f32)",
    operands=4,
    strict=True,
)
@instruction(
    "wmma.mma",
    form=f".sync.aligned.(row|col).(row|col).(?P<shape>{_SHAPES})."
    "(?P<types>f32.bf16.bf16.f32)",
    operands=4,
    strict=True,
)
@instruction(
    "wmma.mma",
    form=".sync.aligned.(row|col).(row|col).(?P<shape>m16n16k8)."
    "(?P<types>f32.tf32.tf32.f32)",
    operands=4,
    strict=True,
)
@instruction(
    "wmma.mma",
    form=".sync.aligned.(row|col).(row|col).(?P<shape>m8n8k4)."
    "(?P<types>f64.f64.f64.f64)(.rn)?",
    operands=4,
    strict=True,
)
@instruction(
    "wmma.mma",
    form=f".sync.aligned.(row|col).(row|col).(?P<shape>{_SHAPES})."
    "(?P<types>s32.s8.s8.s32|s32.u8.u8.s32)(?P<satfinite>.satfinite)?",
    operands=4,
    strict=True,
)
def mma(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``wmma.mma``; the layouts in memory do not matter to the registers."""
    named = form.get("types") or f"{form['d']}.f16.f16.{form['c']}"
    types, shape = Types(*named.split(".")), form["shape"]
    reads = []
    for operand, (matrix, kind) in enumerate(zip("abc", types[1:], strict=True), 1):
        held, extent = _held(matrix, shape, kind)
        reads.append(FragmentReader(context, each, operand, held, kind, extent))
    put = FragmentWriter(context, each, 0, _held("d", shape, types.d)[0], types.d)
    saturates = bool(form.get("satfinite"))
    # ptxas makes two of tf32, for sm_90a and sm_100a: HMMA.1684.
    k = _TILE[shape][2]
    step = k // 2 if types.a == "tf32" else k
    parts = [slice(first, first + step) for first in range(0, k, step)]

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        a, b, c = (read(state) for read in reads)
        for some in parts:
            c = multiply(
                types, a[:, some], np.ascontiguousarray(b[some].T), c, saturates
            )
        put(state, c)
        state.warp.record("wmma.mma", {"shape": shape, "types": named})

    return act
