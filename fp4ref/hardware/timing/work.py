"""work: what an operation occupies and for how long. The only rules of the clock.

A warp's own operation takes some clocks of its warp (`cost`). Asynchronous work
(`work_of`) is served in the order in which it comes. Each server that it takes begins
on it when it was issued and all that came before has left that server, and has it for
a time of its own; the work lands a latency after the last of them is done. The tensor
pipe and the port by which it reads shared memory are two servers of one SM, so that
MMAs follow each other every ``max(columns / 2, operand bytes / 128)`` clocks; a pair
takes both SMs'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fp4ref.hardware.instr_descriptor import mma_shape
from fp4ref.hardware.timing.durations import Durations
from fp4ref.trace import Range

K_NBYTES: Final = 32
"""Bytes of a row of A or B that one MMA takes, whatever the kind."""
LANE_NBYTES: Final = 4 * 512
MMA, CP, COMMIT = "tcgen05.mma", "tcgen05.cp", "tcgen05.commit"
LOAD, WAIT_LOAD = "tcgen05.ld", "tcgen05.wait::ld"
REGISTER_NBYTES: Final = 32 * 4
"""Of one register of every thread of a warp."""


class Work(NamedTuple):
    """What asynchronous work takes.

    Attributes
    ----------
    takes
        Servers, each with the clocks for which it is held.
    latency
        Clocks beyond the last of these.
    cold_takes, cold_latency
        The same of bytes that no load has brought into L2, if it is a load.
    """

    takes: tuple[tuple[str, Any], ...]
    latency: Any = 0.0
    cold_takes: tuple[tuple[str, Any], ...] | None = None
    cold_latency: Any = 0.0


def larger(a: Any, b: Any) -> Any:
    """Return the larger one, of arrays each of them."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return a if a >= b else b


def cost(
    operation: str,
    operands: Mapping[str, Any],
    registers: int,
    again: bool,
    d: Durations,
) -> Any:
    """Return the clocks that an operation takes of its warp.

    Loads that follow each other overlap: the latency is that of the first one.

    Parameters
    ----------
    registers
        Accumulator elements that each thread has loaded since it last waited for them.
    again
        Whether the warp's operation before was the same.
    """
    if again and operation in ("ld.shared", "ld.global"):
        return larger(d.warp_instruction, operands["nbytes"] / d.smem_bandwidth)
    match operation:
        case "st.shared":
            return larger(d.warp_instruction, operands["nbytes"] / d.smem_bandwidth)
        case "ld.shared":
            return larger(d.smem_load_latency, operands["nbytes"] / d.smem_bandwidth)
        case "stmatrix":
            return larger(
                d.warp_instruction, operands["matrices"] * d.stmatrix_interval
            )
        case "ld.global":
            return larger(d.warp_instruction, d.global_load_latency)
        case "tcgen05.alloc":
            return d.tmem_alloc
        case "tcgen05.wait::ld":
            return d.tmem_wait + registers * d.epilogue_element
        case "tcgen05.wait::st":
            return d.tmem_wait
    if operation.startswith("fence.proxy.async"):
        return d.fence_proxy_async
    # A mark for the compiler, which makes no instruction of it.
    return 0.0 if operation.startswith("tcgen05.fence::") else d.warp_instruction


def waits_for(operation: str, earlier: str) -> bool:
    """Whether work starts only when earlier work of its warp has landed.

    The tensor core's work is a line: a MMA starts behind another one and waits only for
    scales, a commit for everything.
    """
    if operation == MMA:
        return earlier == CP
    return operation != CP


def work_of(
    unit: str,
    operation: str,
    operands: Mapping[str, Any],
    where: tuple[int, Sequence[Range], Sequence[Range]],
    d: Durations,
    sms: int,
) -> Work:
    """Return what asynchronous work takes.

    Parameters
    ----------
    unit
        Who does it, as `AsyncOp.unit` and the agent of a landing in a trace.
    where
        The SM of who issued it, and the ranges that it reads and writes.
    sms
        Of the machine: together they have their share of L2 and memory.
    """
    sm, reads, writes = where
    if unit == "tcgen05":
        return _tcgen05(operation, operands, _sms(writes), d)
    if unit == "tmem":
        return _tmem(operation, sm, reads, writes, d)
    if unit == "clc":
        return Work((), d.clc_latency)
    if unit == "tma.read":
        nbytes = _nbytes(reads)
        took = [(f"drain{sm}", nbytes / d.tma_fill_bandwidth)]
        return Work((*took, *_port(sm, nbytes, d)), d.store_read_latency)
    if operation.startswith("cp.async.mbarrier.arrive"):
        return Work(())
    if not _sms(writes):
        return Work(_memory(_nbytes(writes), d, sms), d.store_write_latency)
    return _load(operands, reads, writes, d, sms)


def _load(
    operands: Mapping[str, Any],
    reads: Sequence[Range],
    writes: Sequence[Range],
    d: Durations,
    sms: int,
) -> Work:
    """A copy into shared memory; of a multicast each receiver counts a share in L2."""
    to = _sms(writes)
    nbytes = operands.get("tx_bytes", operands.get("nbytes", 0))
    receivers = max(1, operands.get("cta_mask", 1).bit_count())
    fills = [(f"fill{each}", nbytes / d.tma_fill_bandwidth) for each in to]
    ports = [port for each in to for port in _port(each, nbytes, d)]
    read = _nbytes(reads)
    l2, hbm = _memory(read, d, sms)
    l2 = "l2", l2[1] / receivers
    hot = (*fills, *ports, l2)
    return Work(hot, d.tma_l2_latency, (*hot, hbm), d.tma_hbm_latency)


def _memory(nbytes: int, d: Durations, sms: int) -> tuple[tuple[str, Any], ...]:
    """Return L2 and memory with the time for some bytes."""
    return (
        ("l2", nbytes / (d.l2_bandwidth * sms)),
        ("hbm", nbytes / (d.hbm_bandwidth * sms)),
    )


def _tcgen05(
    operation: str, operands: Mapping[str, Any], to: Sequence[int], d: Durations
) -> Work:
    if operation == COMMIT:
        return Work((), d.commit_latency)
    if operation == CP:
        ports = [port for sm in to for port in _port(sm, operands["nbytes"], d)]
        return Work((*((f"copies{sm}", d.scale_copy) for sm in to), *ports))
    m, n = mma_shape(operands["idesc"])
    ctas = operands.get("cta_group", 1)
    compute = d.mma_column * (n / 2 if ctas == 2 and m == 128 else n)
    rows = n / ctas + (0 if "a_tmem" in operands else m / ctas)
    reading = rows * K_NBYTES / d.smem_bandwidth
    takes = [
        taken
        for sm in to
        for taken in ((f"tensor{sm}", compute), (f"smem{sm}", reading))
    ]
    return Work(tuple(takes), d.mma_fill + (d.mma_pair if ctas == 2 else 0.0))


def _tmem(
    operation: str,
    sm: int,
    reads: Sequence[Range],
    writes: Sequence[Range],
    d: Durations,
) -> Work:
    """``tcgen05.ld`` and ``st``: a quarter of the lanes has a path of its own."""
    path = f"tmem{sm}.{(*reads, *writes)[0].start // LANE_NBYTES // 32}"
    if operation == LOAD:
        took = _nbytes(reads) / d.tmem_load_bandwidth
        return Work(((path, took),), d.tmem_load_latency)
    registers = _nbytes(writes) / REGISTER_NBYTES
    return Work(((path, registers * d.tmem_store_interval),), d.tmem_store_latency)


def _port(sm: int, nbytes: int, d: Durations) -> tuple[tuple[str, Any], ...]:
    """Return the slots of shared memory that something else than a MMA takes."""
    shared = d.smem_port_shared
    if not np.any(shared):
        return ()
    return ((f"smem{sm}", shared * nbytes / d.smem_bandwidth),)


def registers_of(where: Iterable[Range]) -> int:
    """Return the registers of each thread that a ``tcgen05.ld`` fills."""
    return _nbytes(where) // REGISTER_NBYTES


def _nbytes(where: Iterable[Range]) -> int:
    return sum(each.size for each in where)


def _sms(where: Iterable[Range]) -> tuple[int, ...]:
    """Return the SMs whose shared or tensor memory some ranges lie in."""
    names = {each.space for each in where if each.space[:4] in ("smem", "tmem")}
    return tuple(sorted(int(name[4:]) for name in names))
