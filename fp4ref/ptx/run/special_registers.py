"""special_registers: ``%tid``, ``%laneid``, ``%cluster_ctarank`` and the like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fp4ref.hardware.shared_memory import BASE
from fp4ref.ptx.run.registry import Unknown
from fp4ref.ptx.run.state import FULL, LANES, Lanes, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

Compute = Callable[[WarpState], Any]
CLOCKS = {
    "%clock": slice(0, 32),
    "%clock_hi": slice(32, 64),
    "%clock64": slice(0, 64),
    "%globaltimer_lo": slice(0, 32),
    "%globaltimer_hi": slice(32, 64),
    "%globaltimer": slice(0, 64),
}
"""Registers that are another number each time, and their bits of it."""

_NOT_MODELLED = re.compile(
    r"%(gridid|pm[0-7](_64)?|envreg(0|[3-9]|[12]\d|3[01])"
    r"|reserved_smem_offset_(begin|end|cap|0|1)|current_graph_exec)"
)


def special_reader(
    name: str, dtype: np.dtype[Any], instruction: Instruction
) -> Callable[[WarpState], Lanes]:
    """Return a function that reads a special register.

    Raises
    ------
    PtxError
        There is no such register.
    Unknown
        It is not modelled.
    """
    if _NOT_MODELLED.fullmatch(name):
        raise Unknown("ptx-special-register")
    if name in CLOCKS:
        return lambda state: _time(state, CLOCKS[name]).astype(dtype)
    if name not in SPECIALS:
        raise PtxError(f"PTX line {instruction.line}: unknown register {name}")
    compute = SPECIALS[name]

    def read(state: WarpState) -> Lanes:
        if name not in state.special:
            state.special[name] = np.broadcast_to(
                np.asarray(compute(state), np.uint64), (LANES,)
            )
        return state.special[name].astype(dtype)

    return read


def _time(state: WarpState, bits: slice) -> Lanes:
    """Return the time in every lane."""
    state.read_time = True
    now = state.warp.machine.cycles.read()
    found = now >> bits.start & (1 << bits.stop - bits.start) - 1
    return np.full(LANES, found, np.uint64)


def _tid(state: WarpState, axis: int) -> Lanes:
    x, y, _ = state.context.block
    linear = state.warp.index * LANES + np.arange(LANES)
    return (linear % x, linear // x % y, linear // (x * y))[axis]


def _workspace(state: WarpState) -> int:
    """Return where a grid's threads count those that wait for all: grid.sync().

    The driver gives a kernel that is launched cooperatively such a place, of zeros, and
    says where in ``%envreg1`` (upper half) and ``%envreg2``. Here every launch has one.
    """
    context = state.context
    if context.workspace is None:
        gmem = state.warp.machine.gmem
        context.workspace = gmem.upload("grid workspace", np.zeros(16, np.uint32))
    return context.workspace


def _used_nbytes(state: WarpState) -> int:
    """Bytes of shared memory, static and dynamic."""
    return state.context.static_nbytes + state.context.dynamic_nbytes


_SMEM_UNIT = 128
"""Shared memory is given in such pieces; an H200 says so for 2,064 bytes."""

_BY_AXIS: dict[str, Callable[[WarpState, int], Any]] = {
    "tid": _tid,
    "ntid": lambda s, i: s.context.block[i],
    "ctaid": lambda s, i: s.warp.cta.ctaid[i],
    "nctaid": lambda s, i: s.warp.cta.grid[i],
    "clusterid": lambda s, i: s.warp.cta.ctaid[i] // s.warp.cta.cluster.shape[i],
    "nclusterid": lambda s, i: s.warp.cta.grid[i] // s.warp.cta.cluster.shape[i],
    "cluster_ctaid": lambda s, i: s.warp.cta.ctaid[i] % s.warp.cta.cluster.shape[i],
    "cluster_nctaid": lambda s, i: s.warp.cta.cluster.shape[i],
}


def _axis(function: Callable[[WarpState, int], Any], i: int) -> Compute:
    return lambda state: function(state, i)


_lane = np.arange(LANES, dtype=np.uint64)

SPECIALS: dict[str, Compute] = {
    **{
        f"%{what}.{letter}": _axis(function, i)
        for what, function in _BY_AXIS.items()
        for i, letter in enumerate("xyz")
    },
    "%laneid": lambda s: _lane,
    "%warpid": lambda s: s.warp.index,
    "%nwarpid": lambda s: len(s.warp.cta.warps),
    "%smid": lambda s: s.warp.cta.sm.index,
    "%nsmid": lambda s: s.warp.machine.sm_count,
    "%cluster_ctarank": lambda s: s.warp.cta.rank,
    "%cluster_nctarank": lambda s: len(s.warp.cta.cluster.ctas),
    "%dynamic_smem_size": lambda s: s.context.dynamic_nbytes,
    "%total_smem_size": lambda s: -(-_used_nbytes(s) // _SMEM_UNIT) * _SMEM_UNIT,
    "%aggr_smem_size": lambda s: BASE + _used_nbytes(s),
    "%is_explicit_cluster": lambda s: len(s.warp.cta.cluster.ctas) > 1,
    "%envreg1": lambda s: _workspace(s) >> 32,
    "%envreg2": lambda s: _workspace(s) & 0xFFFFFFFF,
    "%lanemask_eq": lambda s: 1 << _lane,
    "%lanemask_lt": lambda s: (1 << _lane) - 1,
    "%lanemask_le": lambda s: (2 << _lane) - 1,
    "%lanemask_gt": lambda s: FULL ^ ((2 << _lane) - 1),
    "%lanemask_ge": lambda s: FULL ^ ((1 << _lane) - 1),
}
"""Name to a function that computes the register for a warp."""
