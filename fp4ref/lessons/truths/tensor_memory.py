"""Part 4. tensor_memory: allocation, columns, addresses, what a thread reads."""

from __future__ import annotations

from fp4ref.gemm.plan import plan
from fp4ref.hardware import tmem
from fp4ref.hardware.tmem import fragment
from fp4ref.lessons.truths.runs import EXAMPLE, events, opcode, shown, threads_of


def allocated_columns() -> int:
    """Columns that the kernel allocates, which are all there are."""
    (event,) = events("tcgen05.alloc")
    return int(event.operands["columns"])


def alloc_opcode() -> str:
    """PTX of the allocation."""
    return opcode("tcgen05.alloc")


def alloc_threads() -> int:
    """Threads that execute the allocation."""
    return threads_of("tcgen05.alloc")


def sfa_tmem_nbytes() -> int:
    """Bytes of TMEM that A's scales of one k-tile fill, with their four copies."""
    return int(shown("4.3")["sfa_columns"]) * tmem.LANES * tmem.CELL_NBYTES


def second_accumulator() -> int:
    """Address of the second accumulator in an allocation at 0."""
    return plan(EXAMPLE).tmem.accumulators[1]


def sfa_address() -> int:
    """Address of A's scales in an allocation at 0."""
    return plan(EXAMPLE).tmem.sfa[0]


def accumulator_step() -> int:
    """Distance of the addresses of the two accumulators."""
    first, second = plan(EXAMPLE).tmem.accumulators
    return second - first


def values_of_a_thread() -> int:
    """Accumulator values that one epilogue thread reads for a tile."""
    loads = events("tcgen05.ld", kind="issue")
    return sum(int(e.operands["repeat"]) for e in loads if e.agent == "warp4")


def thread_shape() -> list[int]:
    """Rows and columns that one thread reads by one ``tcgen05.ld``."""
    (form,) = {
        (str(e.operands["shape"]), int(e.operands["repeat"]))
        for e in events("tcgen05.ld", kind="issue")
    }
    lanes, columns = fragment("32x32b", form[1])
    return [len(set(lanes[0].tolist())), len(set(columns[0].tolist()))]
