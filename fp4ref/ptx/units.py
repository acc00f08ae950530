"""units: the PTX instructions that talk to hardware units.

Each hands raw integers to `fp4ref.hardware`, exactly as the emulated kernel does. An
instruction that one thread issues must be executed by one lane; ``.sync.aligned`` ones
by the whole warp.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import HardwareFault
from fp4ref.hardware import (
    clc,
    cluster,
    mbarrier,
    named_barrier,
    smem,
    tcgen05,
    tma,
    tmem,
)
from fp4ref.hardware.sm import Blocked, elect_sync
from fp4ref.hardware.tensor_map import NBYTES as MAP_NBYTES
from fp4ref.hardware.tensor_map import TensorMap
from fp4ref.ptx.memory import address_reader
from fp4ref.ptx.parser import Address, Instruction, Pair, PtxError, Symbol, Vector
from fp4ref.ptx.registry import Action, Unknown, instruction
from fp4ref.ptx.state import (
    LANES,
    PARAM_WINDOW,
    WINDOW_MASK,
    Get,
    LaunchContext,
    WarpState,
    reader,
    writer,
)
from fp4ref.trace import Range

Wait = Generator[Blocked, None, None]


class IssueFault(HardwareFault):
    """An instruction was executed by the wrong number of lanes."""


def _one_lane(state: WarpState, each: Instruction) -> int:
    """Return the only executing lane."""
    if state.mask & (state.mask - 1):
        raise IssueFault(
            f"{each.opcode} executed by {state.mask.bit_count()} lanes",
            who=state.warp.who,
            where=f"PTX line {each.line}",
            rule="one thread issues it; each further lane would issue it again",
            remedy="elect one lane",
        )
    return state.first_lane


def _whole_warp(state: WarpState, each: Instruction) -> None:
    if state.mask.bit_count() != LANES:
        raise IssueFault(
            f"{each.opcode} executed by {state.mask.bit_count()} lanes",
            who=state.warp.who,
            where=f"PTX line {each.line}",
            rule=".sync.aligned needs all 32 lanes at the same instruction",
            remedy="reconverge first",
        )


def _per_address(addresses: NDArray[Any], state: WarpState) -> list[tuple[int, int]]:
    """(address, lanes that name it), in the order of the first lane."""
    values, counts = np.unique(addresses[state.lanes], return_counts=True)
    return [(int(a), int(n)) for a, n in zip(values, counts, strict=True)]


# -- mbarriers ---------------------------------------------


@instruction("mbarrier.init", writes=0, strict=True)
def mbarrier_init(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.init``."""
    at = address_reader(context, each.operands[0], each)
    count = reader(context, each.operands[1], "u32", each)

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        mbarrier.init(state.warp, int(at(state)[lane]), int(count(state)[lane]))

    return act


@instruction("mbarrier.inval", writes=0, strict=True)
def mbarrier_inval(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.inval``."""
    at = address_reader(context, each.operands[0], each)
    return lambda s: mbarrier.inval(s.warp, int(at(s)[_one_lane(s, each)]))


@instruction("mbarrier.arrive", strict=True)
def mbarrier_arrive(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.arrive`` and ``arrive.expect_tx``; each lane arrives once."""
    if each.operands and each.operands[0] is not None:
        if not isinstance(each.operands[0], Address):
            raise Unknown
        operands = each.operands
    else:
        operands = each.operands[1:]
    at = address_reader(context, operands[0], each)
    amount = reader(context, operands[1], "u32", each) if len(operands) > 1 else None
    expects = "expect_tx" in each.opcode

    def act(state: WarpState) -> None:
        addresses = at(state)
        if expects and amount is not None:
            for lane in np.flatnonzero(state.lanes):
                mbarrier.arrive_expect_tx(
                    state.warp, int(addresses[lane]), int(amount(state)[lane])
                )
            return
        for address, lanes in _per_address(addresses, state):
            each_lane = 1
            if amount is not None:
                each_lane = state.uniform(amount(state), "the arrival count")
            mbarrier.arrive(state.warp, address, lanes * each_lane)

    return act


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx", writes=0, strict=True)
def mbarrier_tx(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.expect_tx`` and ``complete_tx``."""
    at = address_reader(context, each.operands[0], each)
    amount = reader(context, each.operands[1], "u32", each)
    expects = each.opcode.startswith("mbarrier.expect_tx")
    operation = mbarrier.expect_tx if expects else mbarrier.complete_tx

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            operation(state.warp, int(at(state)[lane]), int(amount(state)[lane]))

    return act


@instruction("mbarrier.test_wait.parity", strict=True)
def mbarrier_test_wait(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.test_wait.parity``: one sample for the warp."""
    put, at, parity = _wait_operands(context, each)

    def act(state: WarpState) -> None:
        address = state.uniform(at(state), "the mbarrier address")
        wanted = state.uniform(parity(state), "the parity")
        done = mbarrier.test_wait(state.warp, address, wanted)
        put(state, np.full(LANES, done))

    return act


@instruction("mbarrier.try_wait.parity", strict=True, blocks=True)
def mbarrier_try_wait(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mbarrier.try_wait.parity``.

    In a loop (a branch on its answer follows) the warp is parked until the phase is
    complete. Otherwise it is a peek, which may say false at will.
    """
    put, at, parity = _wait_operands(context, each)
    program = context.program
    position = next(i for i, x in enumerate(program.instructions) if x is each)
    target = each.operands[0]
    parks = False
    for following in program.instructions[position + 1 : position + 4]:
        if following.guard is not None and following.guard[0] == target:
            parks = following.opcode.startswith("bra")
            break

    def act(state: WarpState) -> Wait:
        address = state.uniform(at(state), "the mbarrier address")
        wanted = state.uniform(parity(state), "the parity")
        if parks:
            yield from mbarrier.try_wait(state.warp, address, wanted)
            put(state, np.full(LANES, True))
        else:
            done = mbarrier.test_wait(state.warp, address, wanted)
            put(state, np.full(LANES, done))

    return act


def _wait_operands(context: LaunchContext, each: Instruction) -> tuple[Any, Get, Get]:
    put = writer(context, each.operands[0], "pred", each)
    at = address_reader(context, each.operands[1], each)
    return put, at, reader(context, each.operands[2], "u32", each)


# -- barriers, fences, election ---------------------------------------------


@instruction(
    "bar.sync", "barrier.sync", "barrier.cta.sync", writes=0, strict=True, blocks=True
)
def bar_sync(context: LaunchContext, each: Instruction) -> Action:
    """Build ``bar.sync``; without a count, every thread of the CTA."""
    barrier = reader(context, each.operands[0], "u32", each)
    x, y, z = context.block
    everyone = -(-x * y * z // LANES) * LANES
    count = (
        reader(context, each.operands[1], "u32", each)
        if len(each.operands) > 1
        else None
    )

    def act(state: WarpState) -> Wait:
        threads = state.uniform(count(state), "the count") if count else everyone
        yield from named_barrier.sync(
            state.warp, state.uniform(barrier(state), "the barrier"), threads
        )

    return act


@instruction(
    "bar.arrive", "barrier.arrive", "barrier.cta.arrive", writes=0, strict=True
)
def bar_arrive(context: LaunchContext, each: Instruction) -> Action:
    """Build ``bar.arrive``."""
    barrier, count = (reader(context, o, "u32", each) for o in each.operands)
    return lambda s: named_barrier.arrive(
        s.warp, s.uniform(barrier(s), "the barrier"), s.uniform(count(s), "the count")
    )


@instruction("bar.warp.sync", writes=0)
def bar_warp_sync(context: LaunchContext, each: Instruction) -> Action:
    """Build ``bar.warp.sync``: lanes of a warp run together here."""
    return lambda state: None


@instruction("barrier.cluster.arrive", writes=0)
def cluster_arrive(context: LaunchContext, each: Instruction) -> Action:
    """Build ``barrier.cluster.arrive``."""

    def act(state: WarpState) -> None:
        state.call_params["cluster round"] = cluster.arrive(state.warp).to_bytes(8)

    return act


@instruction("barrier.cluster.wait", writes=0, blocks=True)
def cluster_wait(context: LaunchContext, each: Instruction) -> Action:
    """Build ``barrier.cluster.wait``."""

    def act(state: WarpState) -> Wait:
        this_round = int.from_bytes(state.call_params.get("cluster round", b""))
        yield from cluster.wait(state.warp, this_round)

    return act


@instruction("fence.proxy.async", writes=0)
def fence_proxy_async(context: LaunchContext, each: Instruction) -> Action:
    """Build ``fence.proxy.async``."""
    return lambda state: smem.fence_proxy_async(state.warp)


@instruction("fence.mbarrier_init", writes=0)
def fence_mbarrier_init(context: LaunchContext, each: Instruction) -> Action:
    """Build ``fence.mbarrier_init``."""
    return lambda state: mbarrier.fence_mbarrier_init(state.warp)


@instruction(
    "fence.acq_rel", "fence.sc", "fence.acquire", "fence.release", "membar", writes=0
)
def fence(context: LaunchContext, each: Instruction) -> Action:
    """Build fences between threads: stores are seen in order here."""
    return lambda state: None


@instruction("griddepcontrol.wait", writes=0, blocks=True)
def griddepcontrol_wait(context: LaunchContext, each: Instruction) -> Action:
    """Build ``griddepcontrol.wait``."""
    return lambda state: clc.griddepcontrol_wait(state.warp)


@instruction("griddepcontrol.launch_dependents", writes=0)
def griddepcontrol_launch(context: LaunchContext, each: Instruction) -> Action:
    """Build ``griddepcontrol.launch_dependents``."""
    return lambda state: clc.griddepcontrol_launch_dependents(state.warp)


@instruction("elect.sync")
def elect(context: LaunchContext, each: Instruction) -> Action:
    """Build ``elect.sync``: the lowest lane of the mask is elected."""
    target = each.operands[0]
    if not isinstance(target, Pair):
        raise Unknown
    put_lane = writer(context, target.first, "b32", each)
    put = writer(context, target.second, "pred", each)
    members = reader(context, each.operands[1], "u32", each)

    def act(state: WarpState) -> None:
        mask = state.uniform(members(state), "the member mask") & state.mask
        lane = elect_sync(state.warp, mask)
        put_lane(state, np.full(LANES, lane, np.uint32))
        put(state, np.arange(LANES) == lane)

    return act


@instruction("mapa")
def map_address(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mapa.shared::cluster.u32``: address and rank may differ by lane."""
    if each.opcode != "mapa.shared::cluster.u32":
        raise Unknown
    put = writer(context, each.operands[0], "u32", each)
    at, rank = (reader(context, o, "u32", each) for o in each.operands[1:3])

    def act(state: WarpState) -> None:
        result = np.zeros(LANES, np.uint32)
        for lane in np.flatnonzero(state.lanes):
            result[lane] = cluster.mapa(
                state.warp, int(at(state)[lane]), int(rank(state)[lane])
            )
        put(state, result)

    return act


# -- TMA ---------------------------------------------


def _tensor_map(state: WarpState, address: int) -> TensorMap:
    """Decode the 128 bytes at a generic address; they were copied by value."""
    if address & WINDOW_MASK == PARAM_WINDOW:
        offset = address - PARAM_WINDOW
        data = state.context.params[offset : offset + MAP_NBYTES]
    else:
        where = Range("gmem", address, MAP_NBYTES)
        data = state.warp.machine.gmem.read(where).tobytes()
    if data not in _maps:
        _maps[data] = TensorMap.from_bytes(data)
    return _maps[data]


_maps: dict[bytes, TensorMap] = {}


def _tensor_operand(
    context: LaunchContext, operand: object, each: Instruction
) -> tuple[Get, list[Get]]:
    """``[map, {coordinates}]``."""
    if not isinstance(operand, Address) or operand.coords is None:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} needs [map, {{coordinates}}]"
        )
    at = address_reader(context, Address(operand.base, operand.offset), each)
    return at, [reader(context, c, "s32", each) for c in operand.coords.items]


@instruction("cp.async.bulk.tensor", writes=0, strict=True)
def bulk_tensor(context: LaunchContext, each: Instruction) -> Action:
    """Build tensor loads and stores of any rank."""
    parts = each.opcode.split(".")[4:]
    known = {
        "shared::cluster", "shared::cta", "global", "tile", "bulk_group",
        "mbarrier::complete_tx::bytes", "multicast::cluster", "L2::cache_hint",
        "1d", "2d", "3d", "4d", "5d",
    }  # fmt: skip
    if set(parts) - known:
        raise Unknown
    if "bulk_group" in parts:
        return _bulk_store(context, each)
    dst = address_reader(context, each.operands[0], each)
    at, coords = _tensor_operand(context, each.operands[1], each)
    mbar = address_reader(context, each.operands[2], each)
    mask = None
    if "multicast::cluster" in parts:
        mask = reader(context, each.operands[3], "u16", each)

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        tma.load(
            state.warp,
            _tensor_map(state, int(at(state)[lane])),
            [int(c(state)[lane]) for c in coords],
            int(dst(state)[lane]),
            int(mbar(state)[lane]),
            int(mask(state)[lane]) if mask else None,
        )

    return act


def _bulk_store(context: LaunchContext, each: Instruction) -> Action:
    """Build a tensor store.

    Compiled kernels let all lanes execute it with equal operands; the instruction is
    one per warp in SASS, and one operation here.
    """
    at, coords = _tensor_operand(context, each.operands[0], each)
    src = address_reader(context, each.operands[1], each)

    def act(state: WarpState) -> None:
        tma.store(
            state.warp,
            _tensor_map(state, state.uniform(at(state), "the tensor map")),
            [_signed(state.uniform(c(state), "a coordinate")) for c in coords],
            state.uniform(src(state), "the source"),
        )

    return act


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


@instruction("cp.async.bulk.commit_group", writes=0)
def bulk_commit(context: LaunchContext, each: Instruction) -> Action:
    """Build ``cp.async.bulk.commit_group``."""
    return lambda state: tma.commit_group(state.warp)


@instruction("cp.async.bulk.wait_group", writes=0, blocks=True)
def bulk_wait(context: LaunchContext, each: Instruction) -> Action:
    """Build ``cp.async.bulk.wait_group`` and ``.read``."""
    pending = reader(context, each.operands[0], "u32", each)
    read = each.opcode.endswith(".read")
    return lambda s: tma.wait_group(s.warp, s.uniform(pending(s), "the count"), read)


@instruction("prefetch.tensormap", writes=0, strict=True)
def prefetch_tensormap(context: LaunchContext, each: Instruction) -> Action:
    """Build ``prefetch.tensormap``."""
    at = address_reader(context, each.operands[0], each)
    return lambda s: tma.prefetch_tensormap(
        s.warp, _tensor_map(s, int(at(s)[s.first_lane]))
    )


# -- TMEM and tcgen05 ---------------------------------------------


def _cta_group(each: Instruction) -> int:
    return 2 if "cta_group::2" in each.opcode else 1


@instruction("tcgen05.alloc", writes=0, strict=True, blocks=True)
def tmem_alloc(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.alloc``."""
    if _cta_group(each) != 1:
        raise Unknown
    at = address_reader(context, each.operands[0], each)
    columns = reader(context, each.operands[1], "u32", each)

    def act(state: WarpState) -> Wait:
        _whole_warp(state, each)
        yield from tmem.alloc(
            state.warp,
            state.uniform(at(state), "the destination"),
            state.uniform(columns(state), "the column count"),
        )

    return act


@instruction("tcgen05.dealloc", writes=0, strict=True)
def tmem_dealloc(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.dealloc``."""
    if _cta_group(each) != 1:
        raise Unknown
    taddr, columns = (reader(context, o, "u32", each) for o in each.operands)

    def act(state: WarpState) -> None:
        _whole_warp(state, each)
        tmem.dealloc(
            state.warp,
            state.uniform(taddr(state), "the address"),
            state.uniform(columns(state), "the column count"),
        )

    return act


@instruction("tcgen05.relinquish_alloc_permit", writes=0)
def tmem_relinquish(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.relinquish_alloc_permit``."""
    return lambda state: tmem.relinquish_alloc_permit(state.warp)


def _tmem_shape(each: Instruction) -> tuple[Any, int]:
    parts = each.opcode.split(".")
    shape = next((p for p in parts if p in tmem.MAX_REPEAT), None)
    repeat = next((p for p in parts if p[0] == "x" and p[1:].isdigit()), None)
    if (
        shape is None
        or repeat is None
        or "pack::16b" in parts
        or "unpack::16b" in parts
    ):
        raise Unknown
    return shape, int(repeat[1:])


@instruction("tcgen05.ld")
def tmem_ld(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.ld``; its registers are filled when it is waited for."""
    shape, repeat = _tmem_shape(each)
    target = each.operands[0]
    items = target.items if isinstance(target, Vector) else (target,)
    indices = [context.register(item, each) for item in items]
    at = address_reader(context, each.operands[1], each)
    split = (
        reader(context, each.operands[2], "u32", each)
        if len(each.operands) > 2
        else None
    )

    def act(state: WarpState) -> None:
        _whole_warp(state, each)
        registers = tmem.ld(
            state.warp,
            state.uniform(at(state), "the address"),
            shape,
            repeat,
            int(split(state)[0]) if split else 0,
        )
        for column, index in enumerate(indices):
            state.pending[index] = (registers, column)

    return act


def _deposit(state: WarpState) -> None:
    """Move the results of finished loads into registers."""
    for index, (registers, column) in state.pending.items():
        state.registers[index][:] = registers.words[:, column]
        state.defined[index] = (1 << LANES) - 1
    state.pending.clear()


def use_before_wait(state: WarpState) -> None:
    """Handle an instruction that touches registers of a load in flight.

    The PTX text wants ``tcgen05.wait::ld`` first: reading the registers is a fault.
    Shipped kernels rely on the scoreboard, which holds the instruction until the load
    has landed; with ``ordering="shipped"`` reading does that.
    """
    _deposit(state)


@instruction("tcgen05.st", writes=0, strict=True)
def tmem_st(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.st``."""
    shape, repeat = _tmem_shape(each)
    at = address_reader(context, each.operands[0], each)
    source = each.operands[-1]
    items = source.items if isinstance(source, Vector) else (source,)
    reads = [reader(context, item, "b32", each) for item in items]

    def act(state: WarpState) -> None:
        _whole_warp(state, each)
        words = np.stack([read(state) for read in reads], axis=1)
        tmem.st(
            state.warp, state.uniform(at(state), "the address"), words, shape, repeat
        )

    return act


@instruction("tcgen05.wait::ld", writes=0, blocks=True)
def tmem_wait_ld(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.wait::ld``."""

    def act(state: WarpState) -> Wait:
        yield from tmem.wait_ld(state.warp)
        _deposit(state)

    return act


@instruction("tcgen05.wait::st", writes=0, blocks=True)
def tmem_wait_st(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.wait::st``."""
    return lambda state: tmem.wait_st(state.warp)


@instruction("tcgen05.fence::before_thread_sync", writes=0)
def fence_before(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.fence::before_thread_sync``."""
    return lambda state: tcgen05.fence_before_thread_sync(state.warp)


@instruction("tcgen05.fence::after_thread_sync", writes=0)
def fence_after(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.fence::after_thread_sync``."""
    return lambda state: tcgen05.fence_after_thread_sync(state.warp)


@instruction("tcgen05.cp", writes=0, strict=True)
def tcgen05_cp(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.cp``."""
    parts = each.opcode.split(".")
    shape = ".".join(parts[3:])
    at = address_reader(context, each.operands[0], each)
    descriptor = reader(context, each.operands[1], "u64", each)

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        taddr, desc = int(at(state)[lane]), int(descriptor(state)[lane])
        tcgen05.cp(state.warp, taddr, desc, shape, _cta_group(each))

    return act


@instruction("tcgen05.mma", writes=0, strict=True)
def tcgen05_mma(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.mma...block_scale``, operands A and B in shared memory."""
    parts = each.opcode.split(".")
    kind = next((p[6:] for p in parts if p.startswith("kind::")), "")
    if kind not in ("mxf4nvf4", "mxf4") or "block_scale" not in parts:
        raise Unknown
    vector = next(
        (p.removeprefix("scale_vec::") for p in parts if p[:5] in ("scale", "block")
         and p != "block_scale"),
        "",
    )  # fmt: skip
    if len(each.operands) != 7 or isinstance(each.operands[1], Address):
        raise Unknown
    d, sfa, sfb = (address_reader(context, each.operands[i], each) for i in (0, 4, 5))
    a, b = (reader(context, each.operands[i], "u64", each) for i in (1, 2))
    idesc = reader(context, each.operands[3], "u32", each)
    enable = reader(context, each.operands[6], "pred", each)

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        tcgen05.mma(
            state.warp,
            int(d(state)[lane]),
            int(a(state)[lane]),
            int(b(state)[lane]),
            int(idesc(state)[lane]),
            int(sfa(state)[lane]),
            int(sfb(state)[lane]),
            bool(enable(state)[lane]),
            kind="mxf4nvf4" if kind == "mxf4nvf4" else "mxf4",
            scale_vec=vector,
            cta_group=_cta_group(each),
        )

    return act


@instruction("tcgen05.commit", writes=0, strict=True)
def tcgen05_commit(context: LaunchContext, each: Instruction) -> Action:
    """Build ``tcgen05.commit``."""
    at = address_reader(context, each.operands[0], each)
    mask = (
        reader(context, each.operands[1], "u16", each)
        if "multicast::cluster" in each.opcode
        else None
    )

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        tcgen05.commit(
            state.warp,
            int(at(state)[lane]) & 0xFFFFFFFF,
            int(mask(state)[lane]) if mask else None,
            _cta_group(each),
        )

    return act


# -- cluster launch control ---------------------------------------------


@instruction("clusterlaunchcontrol.try_cancel", writes=0, strict=True)
def try_cancel(context: LaunchContext, each: Instruction) -> Action:
    """Build ``clusterlaunchcontrol.try_cancel.async``."""
    response, mbar = (address_reader(context, o, each) for o in each.operands[:2])

    def act(state: WarpState) -> None:
        lane = _one_lane(state, each)
        if len(state.warp.cta.cluster.ctas) > 1:
            raise Unknown
        clc.try_cancel(state.warp, int(response(state)[lane]), int(mbar(state)[lane]))

    return act


@instruction("clusterlaunchcontrol.query_cancel.is_canceled")
def is_canceled(context: LaunchContext, each: Instruction) -> Action:
    """Build ``query_cancel.is_canceled``."""
    put = writer(context, each.operands[0], "pred", each)
    index = context.register(each.operands[1], each)

    def act(state: WarpState) -> None:
        put(state, (state.registers[index][:, 1] & np.uint64(1)) != 0)

    return act


@instruction("clusterlaunchcontrol.query_cancel.get_first_ctaid")
def get_first_ctaid(context: LaunchContext, each: Instruction) -> Action:
    """Build ``query_cancel.get_first_ctaid``, one component or ``v4``."""
    index = context.register(each.operands[1], each)
    target = each.operands[0]
    if isinstance(target, Vector):
        puts = [writer(context, o, "b32", each) for o in target.items]
        axes = range(len(puts))
    else:
        axis = each.opcode.split("get_first_ctaid::")[1][0]
        puts, axes = (
            [writer(context, target, "b32", each)],
            range("xyz".index(axis), "xyz".index(axis) + 1),
        )

    def act(state: WarpState) -> None:
        low = state.registers[index][:, 0]
        x = low.astype(np.uint32)
        high = (low >> np.uint64(32)).astype(np.uint32)
        values = [x, high & np.uint32(0xFFFF), high >> np.uint32(16), x * 0]
        for axis_number, put in zip(axes, puts, strict=True):
            put(state, values[axis_number])

    return act


# -- control ---------------------------------------------


@instruction("bra", "ret", "exit", writes=0)
def control(context: LaunchContext, each: Instruction) -> Action:
    """Build control flow; the executor handles it."""
    return lambda state: None


@instruction("brkpt", "trap", writes=0)
def trap(context: LaunchContext, each: Instruction) -> Action:
    """Build ``trap`` and ``brkpt``: the kernel stops itself."""

    def act(state: WarpState) -> None:
        _trapped(state, f"{each.opcode} reached", each)

    return act


@instruction("call", writes=0)
def call(context: LaunchContext, each: Instruction) -> Action:
    """Build ``call`` of ``__assertfail``; other functions are refused."""
    name = each.operands[1]
    if not isinstance(name, Symbol) or name.name != "__assertfail":
        raise Unknown
    arguments = each.operands[2]
    assert isinstance(arguments, Vector)

    def act(state: WarpState) -> None:
        texts = []
        for argument in arguments.items[:2]:
            assert isinstance(argument, Symbol)
            address = int.from_bytes(
                state.call_params.get(argument.name, b""), "little"
            )
            texts.append(_text(state, address))
        _trapped(state, f"assertion failed: {texts[0]} in {texts[1]}", each)

    return act


def _text(state: WarpState, address: int) -> str:
    """Read a zero-terminated string."""
    gmem = state.warp.machine.gmem
    found = gmem.find(address)
    if found is None:
        return "?"
    data = gmem.contents(address, found.address + found.nbytes - address)
    return data.tobytes().split(b"\0")[0].decode(errors="replace").rsplit("/", 1)[-1]


def _trapped(state: WarpState, what: str, each: Instruction) -> None:
    from fp4ref.ptx.executor import KernelTrap

    raise KernelTrap(
        what,
        who=state.warp.who,
        where=f"PTX line {each.line}, {state.context.program.source(state.pc)}",
        rule="the kernel's own check",
        remedy="look at the condition in its source",
    )


@instruction("nanosleep", writes=0)
def nanosleep(context: LaunchContext, each: Instruction) -> Action:
    """Build ``nanosleep``: time does not pass here."""
    return lambda state: None
