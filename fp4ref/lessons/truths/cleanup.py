"""Part 8. cleanup: permits, TMEM, barriers, what a CTA has, what a tile costs."""

from __future__ import annotations

from fp4ref.hardware.machine import Machine
from fp4ref.lessons.record import line
from fp4ref.lessons.truths.runs import derived, events, opcode, threads_of, trace

_PAIR = 2
_MACS_PER_SECOND, _CLOCK = 1.7e12, 2e9


def awaited_stages() -> int:
    """Mainloop stages that the load warp's tail waits for."""
    return int(derived("8.8")["mainloop_stages_awaited"])


def relinquish_opcode() -> str:
    """PTX that gives up the right to allocate."""
    return opcode("tcgen05.relinquish")


def tensor_memories_of_a_pair() -> int:
    """Tensor Memories that two CTAs on two SMs have."""
    return len({id(sm.tmem) for sm in Machine(_PAIR).sms})


def dealloc_opcode() -> str:
    """PTX of the deallocation."""
    return opcode("tcgen05.dealloc")


def dealloc_threads() -> int:
    """Threads that execute the deallocation."""
    return threads_of("tcgen05.dealloc")


def meets_at_exit() -> bool:
    """Whether the CTA barrier is used after the accumulator is committed."""
    committed = events("tcgen05.commit", frame="6.10")[0].step
    syncs = (e for e in events("bar.sync") if e.operands["barrier"] == 0)
    return any(e.step > committed for e in syncs)


def freed_tmem_nbytes() -> int:
    """Bytes of TMEM that the kernel frees."""
    return int(derived("8.8")["tmem_bytes"])


def smem_nbytes() -> int:
    """Most shared memory that a CTA can have."""
    return int(line("smem_capacity"))


def mbarriers() -> int:
    """Mbarriers of the CTA."""
    return int(derived("8.8")["mbarriers"])


def k_tiles_before_the_first_mma() -> int:
    """K-tiles whose copies are issued before the first MMA, at most."""
    late = trace("late")
    first = min(e.step for e in late.select(operation="tcgen05.mma"))
    copies = late.select(frame="5.4.4", operation="cp.async.bulk.tensor")
    return sum(e.kind == "issue" and e.step < first for e in copies)


def cycles_at_the_claimed_rate() -> int:
    """Cycles at 2 GHz for the tile's multiply-adds, at 1.7e12 of them a second."""
    return round(int(derived("8.10")["macs"]) / _MACS_PER_SECOND * _CLOCK)


def mmas() -> int:
    """MMAs for a tile."""
    return int(derived("8.10")["mmas"])


def traffic_kilobytes() -> int:
    """Thousands of bytes of global memory read and written for a tile, rounded."""
    return round(int(derived("8.10")["total_bytes"]) / 1000)


def operations_per_byte() -> int:
    """Operations for each byte of global memory, rounded."""
    return round(float(derived("8.10")["operations_per_byte"]))
