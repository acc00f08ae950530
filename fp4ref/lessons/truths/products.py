"""Part 6. products: scale copies, MMAs, commits, operations for each byte."""

from __future__ import annotations

import re

import numpy as np

from fp4ref.cuda_kernel.build import packaged
from fp4ref.gemm.config import SF_VEC_SIZE
from fp4ref.gemm.plan import plan
from fp4ref.hardware import tmem
from fp4ref.hardware.operand_cells import ROW_NBYTES
from fp4ref.hardware.tcgen05 import MMA_K, MMA_M
from fp4ref.lessons.record import line, lines
from fp4ref.lessons.truths.runs import (
    EXAMPLE,
    arrivals,
    derived,
    events,
    instructions,
    issued,
    opcode,
    shown,
    threads_of,
)
from fp4ref.numerics import ScaleFormat, encode_e2m1, encode_ue4m3, mma_block_scaled

_DOCUMENTS_MMAS, _LATENCY = 128, 10
_ACCUMULATOR_RANGE = (0x1000, 0x1FFFF)
_ROW_SCALES = (1, 2, 4, 8)


def accumulator_entry() -> list[int]:
    """Index, phase and count with which the accumulator's producer enters."""
    return [int(value) for value in lines("producer_start_state")]


def mma_shape() -> list[int]:
    """M, N and K of one MMA."""
    return list(shown("6.2")["shape"])


def sfa_shape() -> list[int]:
    """Rows and columns of A's scales of one k-tile."""
    return list(shown("6.2")["sfa"])


def token_type() -> str:
    """Type of what one test of an mbarrier writes: a predicate is a yes or no."""
    result = instructions()[opcode("mbarrier.test_wait")].split(",")[0]
    declared = re.findall(rf"\.reg \.(\w+) {result};", packaged("example_72b.ptx"))
    return "bool" if set(declared) == {"pred"} else "pointer"


def mmas_that_leave_the_accumulator_unread() -> int:
    """MMAs of a tile that read none of the cells that they write."""
    landed = events("tcgen05.mma", kind="land")
    return sum(not set(e.writes) & set(e.reads) for e in landed)


def copy_opcode() -> str:
    """PTX of a scale copy."""
    return opcode("tcgen05.cp")


def _k_tiles() -> int:
    return int(events("mma.exit")[0].operands["k_tiles"])


def copies_of_a_k_tile() -> int:
    """Scale copies for one k-tile."""
    return len(issued("tcgen05.cp")) // _k_tiles()


def copy_nbytes() -> int:
    """Bytes of one scale copy."""
    (nbytes,) = {int(e.operands["nbytes"]) for e in issued("tcgen05.cp")}
    return nbytes


def mmas_of_a_k_tile() -> int:
    """MMAs for one k-tile."""
    return len(issued("tcgen05.mma")) // _k_tiles()


def fragment_nbytes() -> int:
    """Bytes of A that one MMA reads."""
    return MMA_M * ROW_NBYTES


def scaled_dot() -> float:
    """Dot product of 64 ones and 64 ones with row scales 1, 2, 4, 8."""
    ones = np.ones((1, MMA_K), np.float32)
    scales = encode_ue4m3(np.array([_ROW_SCALES, (1,) * 4], np.float32))
    a, b = (encode_e2m1(ones) for _ in "ab")
    d = mma_block_scaled(
        *(a, b, scales[:1], scales[1:], None),
        scale_format=ScaleFormat.UE4M3,
        vec_size=SF_VEC_SIZE,
    )
    return float(d[0, 0])


def scales_of_an_mma() -> int:
    """Scale values that one MMA reads."""
    return (MMA_M + EXAMPLE.tile.n) * MMA_K // SF_VEC_SIZE


def mma_threads() -> int:
    """Threads that issue an MMA."""
    return threads_of("tcgen05.mma")


def mma_opcode() -> str:
    """PTX of the MMA."""
    return opcode("tcgen05.mma")


def mma_result_registers() -> int:
    """Registers that the MMA writes; its result is at a TMEM address."""
    result = instructions()[mma_opcode()].split(",")[0]
    return 0 if result.startswith("[") else result.count("%")


def last_accumulator_address() -> int:
    """Address of row 127, column 127 of the first accumulator."""
    column = plan(EXAMPLE).tmem.accumulators[0] + EXAMPLE.tile.n - 1
    return tmem.address(tmem.LANES - 1, column)


def remaining_k_blocks() -> int:
    """MMAs of a k-tile after its first."""
    return mmas_of_a_k_tile() - 1


def k_block_nbytes() -> int:
    """Bytes from one K-block to the next within a row of A."""
    first, second = issued("tcgen05.mma")[:2]
    step = int(second.operands["a_desc"]) - int(first.operands["a_desc"])
    return step << 4


def release_opcode() -> str:
    """PTX of the mainloop's release."""
    (event,) = arrivals("mainloop.empty[0]")
    return opcode(event.operation)


def exit_state() -> list[int]:
    """Index and phase after the MMA loop."""
    last = events("mma.exit")[0].operands
    return [last["index"], last["phase"]]


def accumulator_arrival() -> str:
    """Instruction that arrives on the accumulator's full barrier."""
    (event,) = arrivals("accumulator.full[0]")
    return event.operation


def mmas() -> int:
    """MMAs for a tile."""
    return int(derived("6.11")["mmas"])


def scale_copies() -> int:
    """Scale copies for a tile."""
    return int(derived("6.11")["scale_copies"])


def macs_of_an_mma() -> int:
    """Multiply-adds of one MMA."""
    m, n, k = mma_shape()
    return int(m * n * k)


def operations_per_byte() -> int:
    """Operations for each byte of loads, scale copies and accumulator, rounded."""
    work, moved = derived("6.12"), derived("6.11")
    nbytes = work["read_bytes"] + moved["scale_bytes"] + moved["accumulator_bytes"]
    return round(int(work["operations"]) / int(nbytes))


def scale_copy_nbytes() -> int:
    """Bytes that the scale copies of a tile read."""
    return int(derived("6.11")["scale_bytes"])


def mmas_per_cycle() -> float:
    """MMAs for each cycle, if one is issued in each and the last one awaited."""
    return round(_DOCUMENTS_MMAS / (_DOCUMENTS_MMAS - 1 + _LATENCY), 2)


def nbytes_of_the_range() -> int:
    """Bytes of the range in which the document places the accumulator."""
    first, last = _ACCUMULATOR_RANGE
    return last - first + 1


def accumulator_rank() -> int:
    """Rank of ``FrgLayout`` that CUTLASS asserts: (MMA, MMA_M, MMA_N)."""
    return int(line("accumulator_layout_rank"))
