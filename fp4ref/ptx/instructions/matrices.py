"""matrices: ``ldmatrix``, ``stmatrix`` and ``movmatrix``, blocks of 8 x 8.

Lane 8 m + r holds the address of row r of matrix m; thread t holds the 32 bits of row
t // 4, columns 2 (t % 4) and the next. Source: PTX, ldmatrix, stmatrix,
movmatrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.observed import observe
from fp4ref.ptx.run.operands import address_reader, items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.spaces import check_alignment, read_memory, resolve, write_memory
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

_FORM = (
    ".sync.aligned.m8n8.x(?P<count>1|2|4)(?P<trans>.trans)?"
    "(.(?P<space>shared(::cta)?))?.b16"
)


def _count(each: Instruction, form: Form, operand: int) -> int:
    count = int(form["count"])
    if len(items_of(each.operands[operand])) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes {count} registers")
    return count


def _rows(
    state: WarpState, addresses: NDArray[np.uint64], form: Form, opcode: str
) -> NDArray[np.uint64]:
    """Check the rows' addresses and return them as shared addresses."""
    check_alignment(state, addresses, 16, opcode)
    found = list(resolve(form["space"] or "generic", addresses))
    if len(found) != 1 or not found[0][0].startswith("shared"):
        raise PtxError(f"PTX line {state.line}: {opcode} outside shared memory")
    return found[0][1]


@instruction("ldmatrix", form=_FORM, operands=2)
def load_matrix(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``ldmatrix.m8n8.xN{.trans}.shared.b16``."""
    count = _count(each, form, 0)
    puts = [writer(context, o, "b32", each) for o in items_of(each.operands[0])]
    at = address_reader(context, each.operands[1], each)

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        addresses = _rows(state, at(state)[: 8 * count], form, each.opcode)
        lanes = np.arange(8 * count)
        observe(state, "shared", addresses, 16, "ldmatrix", is_write=False, lanes=lanes)
        rows = read_memory(state, "shared", addresses, 16)
        matrices = rows.view("<u2").reshape(count, 8, 8)
        if form["trans"]:
            matrices = matrices.transpose(0, 2, 1)
        words = np.ascontiguousarray(matrices).view("<u4").reshape(count, LANES)
        for put, values in zip(puts, words, strict=True):
            put(state, values)
        state.warp.record("ldmatrix", {"matrices": count})

    return act


@instruction("stmatrix", form=_FORM, operands=2, writes=0, strict=True)
def store_matrix(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``stmatrix.m8n8.xN{.trans}.shared.b16``, the inverse of ldmatrix."""
    count = _count(each, form, 1)
    reads = [reader(context, o, "b32", each) for o in items_of(each.operands[1])]
    at = address_reader(context, each.operands[0], each)

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        words = np.stack([read(state) for read in reads])
        matrices = words.view("<u2").reshape(count, 8, 8)
        if form["trans"]:
            matrices = matrices.transpose(0, 2, 1)
        rows = np.ascontiguousarray(matrices).view(np.uint8).reshape(8 * count, 16)
        addresses = _rows(state, at(state)[: 8 * count], form, each.opcode)
        lanes = np.arange(8 * count)
        observe(state, "shared", addresses, 16, "stmatrix", is_write=True, lanes=lanes)
        write_memory(state, "shared", addresses, rows)
        state.warp.record("stmatrix", {"matrices": count})

    return act


@instruction("movmatrix", form=".sync.aligned.m8n8.trans.b16", operands=2, strict=True)
def transpose(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``movmatrix``: the transposed matrix of one register of each lane."""
    put = writer(context, each.operands[0], "b32", each)
    read = reader(context, each.operands[1], "b32", each)

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        matrix = read(state).view("<u2").reshape(8, 8)
        put(state, np.ascontiguousarray(matrix.T).view("<u4").reshape(LANES))
        state.warp.record("movmatrix", {"matrices": 1})

    return act
