"""tcgen05: TMEM allocation, loads and stores, scale copies, MMA and commit.

The registers of a ``tcgen05.ld`` are pending until its wait: an instruction that reads
or overwrites one before is a fault, or, with ``ordering="shipped"``, waits for the load
as the scoreboard does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from fp4ref.hardware import mma_mxf8f6f4, tcgen05, tmem
from fp4ref.hardware.copy_shape import COPY_SHAPES
from fp4ref.hardware.registers import Registers
from fp4ref.hardware.tmem import Shape
from fp4ref.ptx.run.operands import address_reader, items_of, reader
from fp4ref.ptx.run.registry import Action, Form, Step, Wait, instruction
from fp4ref.ptx.run.spaces import shared_address
from fp4ref.ptx.run.state import LaunchContext, WarpState, lanes_to_mask
from fp4ref.ptx.text.syntax import Address, Instruction, PtxError

_GROUP = ".cta_group::(?P<group>1|2)"


@instruction(
    "tcgen05.alloc",
    form=f"{_GROUP}.sync.aligned(?P<space>.shared::cta)?.b32",
    operands=2,
    writes=0,
    strict=True,
    blocks=True,
)
def alloc(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.alloc``."""
    at = address_reader(context, each.operands[0], each)
    columns = reader(context, each.operands[1], "u32", each)
    generic, group = not form["space"], int(form["group"])

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        address = state.uniform(at(state), "the destination")
        yield from tmem.alloc(
            state.warp,
            shared_address(generic, address),
            state.uniform(columns(state), "the column count"),
            group,
        )

    return act


@instruction(
    "tcgen05.dealloc",
    form=f"{_GROUP}.sync.aligned.b32",
    operands=2,
    writes=0,
    strict=True,
)
def dealloc(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.dealloc``."""
    taddr, columns = (reader(context, o, "u32", each) for o in each.operands)
    group = int(form["group"])

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        tmem.dealloc(
            state.warp,
            state.uniform(taddr(state), "the address"),
            state.uniform(columns(state), "the column count"),
            group,
        )

    return act


@instruction(
    "tcgen05.relinquish_alloc_permit",
    form=f"{_GROUP}.sync.aligned",
    operands=0,
    effect=True,
)
def relinquish(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.relinquish_alloc_permit``."""
    group = int(form["group"])

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        tmem.relinquish_alloc_permit(state.warp, group)

    return act


# -- loads and stores ---------------------------------------------

_MOST_REGISTERS = 128
_PER_REPEAT = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
_ACCESS = (
    f".sync.aligned.(?P<shape>{'|'.join(_PER_REPEAT)})"
    ".x(?P<repeat>1|2|4|8|16|32|64|128)%s.b32"
)
_LOAD, _STORE = (
    _ACCESS % "(?P<packed>.pack::16b)?",
    _ACCESS % "(?P<packed>.unpack::16b)?",
)


def _access(each: Instruction, form: Form, registers: int) -> tuple[Shape, int]:
    """Return shape and repeat, which fit the number of registers and operands."""
    shape, repeat = form["shape"], int(form["repeat"])
    split = shape == "16x32bx2"
    fits = registers == repeat * _PER_REPEAT[shape] and registers <= _MOST_REGISTERS
    if not fits or len(each.operands) != 2 + split:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {registers} registers and "
            f"{len(each.operands)} operands"
        )
    return cast("Shape", shape), repeat


@instruction("tcgen05.ld", form=_LOAD, operands=(2, 3), taints=True, effect=True)
def load(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.ld``."""
    items = items_of(each.operands[0])
    shape, repeat = _access(each, form, len(items))
    indices = [
        (column, context.register(item, each))
        for column, item in enumerate(items)
        if item is not None
    ]
    at = address_reader(context, each.operands[1], each)
    packed = bool(form["packed"])
    split = (
        reader(context, each.operands[2], "u32", each)
        if len(each.operands) > 2
        else None
    )

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        registers = tmem.ld(
            state.warp,
            state.uniform(at(state), "the address"),
            shape,
            repeat,
            int(split(state)[0]) if split else 0,
            packed,
        )
        for column, index in indices:
            state.pending[index] = (registers, column)

    return act


def _deposit(state: WarpState, loads: set[Registers]) -> None:
    """Move the results of loads into their registers."""
    for index, (registers, column) in list(state.pending.items()):
        if registers in loads:
            words, known = registers.landed()
            state.registers[index][:] = words[:, column]
            state.defined[index] = lanes_to_mask(known[:, column])
            del state.pending[index]


def settle(state: WarpState, step: Step) -> None:
    """Complete the loads whose registers an instruction reads or overwrites.

    Raises
    ------
    RegistersNotReady
        With ``ordering="ptx"``: a register that is overwritten, and not read, needs
        ``tcgen05.wait::ld`` first.
    """
    read = {state.pending[i][0] for i in step.sources if i in state.pending}
    written = {state.pending[i][0] for i in step.targets if i in state.pending}
    for registers in written - read:
        registers.overwrite()
    if read or written:
        _deposit(state, read | written)


@instruction("tcgen05.st", form=_STORE, operands=(2, 3), writes=0, strict=True)
def store(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.st``."""
    items = items_of(each.operands[-1])
    shape, repeat = _access(each, form, len(items))
    at = address_reader(context, each.operands[0], each)
    reads = [reader(context, item, "b32", each) for item in items]
    packed = bool(form["packed"])
    split = (
        reader(context, each.operands[1], "u32", each)
        if len(each.operands) > 2
        else None
    )

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        tmem.st(
            state.warp,
            state.uniform(at(state), "the address"),
            np.stack([read(state) for read in reads], axis=1),
            shape,
            repeat,
            int(split(state)[0]) if split else 0,
            packed,
        )

    return act


@instruction("tcgen05.wait::ld.sync.aligned", operands=0, blocks=True)
def wait_ld(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.wait::ld``."""

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        yield from tmem.wait_ld(state.warp)
        _deposit(state, {registers for registers, _ in state.pending.values()})

    return act


@instruction("tcgen05.wait::st.sync.aligned", operands=0, blocks=True)
def wait_st(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.wait::st``."""

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        yield from tmem.wait_st(state.warp)

    return act


@instruction("tcgen05.fence::before_thread_sync", operands=0)
def fence_before(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.fence::before_thread_sync``."""
    return lambda state: tcgen05.fence_before_thread_sync(state.warp)


@instruction("tcgen05.fence::after_thread_sync", operands=0)
def fence_after(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.fence::after_thread_sync``."""
    return lambda state: tcgen05.fence_after_thread_sync(state.warp)


# -- copy, MMA, commit: one lane issues ---------------------------------------------


@instruction(
    "tcgen05.cp",
    form=f"{_GROUP}.(?P<shape>{'|'.join(COPY_SHAPES)})",
    operands=2,
    writes=0,
    strict=True,
)
def copy(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.cp``."""
    at = address_reader(context, each.operands[0], each)
    descriptor = reader(context, each.operands[1], "u64", each)

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        taddr, desc = int(at(state)[lane]), int(descriptor(state)[lane])
        tcgen05.cp(state.warp, taddr, desc, form["shape"], int(form["group"]))

    return act


@instruction(
    "tcgen05.mma",
    form=f"{_GROUP}.kind::(?P<kind>mxf4nvf4).block_scale"
    "(.scale_vec::(?P<vector>4X|2X)|.(?P<block>block16|block32))"
    "(.collector::a::(?P<collector>fill|use|lastuse|discard))?",
    operands=7,
    writes=0,
    strict=True,
)
@instruction(
    "tcgen05.mma",
    form=f"{_GROUP}.kind::(?P<kind>mxf4).block_scale"
    "(.scale_vec::(?P<vector>2X)|.(?P<block>block32))?"
    "(.collector::a::(?P<collector>fill|use|lastuse|discard))?",
    operands=7,
    writes=0,
    strict=True,
)
@instruction(
    "tcgen05.mma",
    form=f"{_GROUP}.kind::(?P<kind>mxf8f6f4).block_scale"
    "(.scale_vec::(?P<vector>1X)|.(?P<block>block32))?"
    "(.collector::a::(?P<collector>fill|use|lastuse|discard))?",
    operands=7,
    writes=0,
    strict=True,
)
def mma(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.mma...block_scale``, A in shared memory or in TMEM."""
    in_tmem = isinstance(each.operands[1], Address)
    d, sfa, sfb = (address_reader(context, each.operands[i], each) for i in (0, 4, 5))
    a = (
        address_reader(context, each.operands[1], each)
        if in_tmem
        else reader(context, each.operands[1], "u64", each)
    )
    b = reader(context, each.operands[2], "u64", each)
    idesc = reader(context, each.operands[3], "u32", each)
    enable = reader(context, each.operands[6], "pred", each)
    kinds: dict[str, Callable[..., None]] = {
        "mxf4nvf4": partial(tcgen05.mma, kind="mxf4nvf4"),
        "mxf4": partial(tcgen05.mma, kind="mxf4"),
        "mxf8f6f4": mma_mxf8f6f4.mma,
    }
    issue = kinds[form["kind"]]

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        issue(
            state.warp,
            int(d(state)[lane]),
            int(a(state)[lane]),
            int(b(state)[lane]),
            int(idesc(state)[lane]),
            int(sfa(state)[lane]),
            int(sfb(state)[lane]),
            bool(enable(state)[lane]),
            scale_vec=form["vector"] or form["block"],
            a_in_tmem=in_tmem,
            cta_group=int(form["group"]),
            collector=form["collector"] or "discard",
        )

    return act


@instruction(
    "tcgen05.commit",
    form=f"{_GROUP}.mbarrier::arrive::one(?P<space>.shared::cluster)?"
    "(?P<multicast>.multicast::cluster)?.b64",
    operands=(1, 2),
    writes=0,
    strict=True,
)
def commit(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.commit``."""
    multicast = bool(form["multicast"])
    if len(each.operands) != 1 + multicast:
        raise PtxError(f"PTX line {each.line}: {each.opcode} and its CTA mask")
    at = address_reader(context, each.operands[0], each)
    mask = reader(context, each.operands[1], "u16", each) if multicast else None
    generic = not form["space"]

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        tcgen05.commit(
            state.warp,
            shared_address(generic, int(at(state)[lane])),
            int(mask(state)[lane]) if mask else None,
            int(form["group"]),
        )

    return act
