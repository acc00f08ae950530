"""Document 003. optimisation_notes: its own figures, put together.

The constants are what the document gives for its kernel; the rules are PTX's and this
package's.
"""

from __future__ import annotations

from fp4ref.cuda_kernel.build import packaged
from fp4ref.errors import TensorMapError
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.tmem import LANES, lane_column
from fp4ref.lab.bounds import published_intervals
from fp4ref.lab.request import Request
from fp4ref.layout import SwizzleMode
from fp4ref.lessons.record import is_assembled
from fp4ref.lessons.truths.runs import issued, quarter_of

_BANKS, _BANK_NBYTES = 32, 4
_PADDED_ROW, _PLAIN_ROW, _STORE_NBYTES = 272, 256, 16
_STAGE_NBYTES = 32_768
_PADDED_STAGING, _PLAIN_STAGING = 69_632, 65_536
_EPILOGUE_WARPS, _WARP = (2, 3, 4, 5), 2
_W1_CYCLES, _EPILOGUE_CYCLES, _WAIT_CYCLES = 5_011, 5_268, 1_056
_SAVED_CYCLES = 300
_INSTRUCTIONS, _MMAS, _WAITS, _COMMITS = 411, 24, 7, 7
_OTHERS = 373
_TILES, _K_ITERS, _STAGES = 10_878, 6, 4
_MATRICES, _DESCRIPTOR_BITS, _REGISTER_BITS = 2, 64, 32
_PARTS = ((50, 80), (25, 35), (15, 30))
"""Instructions saved: descriptors, predicates, indices; at least and at most."""
_STORES, _STORE_CYCLES, _PHASE_2B_CYCLES = 32, 70, 899
_SWIZZLE, _BOX_ROWS = SwizzleMode.B128, 32
_MMA_CYCLES, _TILE_CYCLES, _K_LOOP_CYCLES = 140, 6_067, 4_154
_MMA_SHAPE = (256, 256, 2)
"""M, N and cta_group of its MMAs."""
_ML_WAIT, _PHASE_1, _PHASE_2B = 1_139, 4_129, 899
_PAIRS, _MILLISECONDS = 74, 0.543
_BULK_GAIN = 12.6
"""Per cent of the K-loop that bulk stores saved."""
_ROWS, _COLUMNS = 128, 256
"""Of the accumulator, in one SM."""


def bank_of_lane_2() -> int:
    """Bank of lane 2's store in rows of 272 bytes."""
    return 2 * _PADDED_ROW // _BANK_NBYTES % _BANKS


def most_box_columns() -> int:
    """Most BF16 columns of a box of 32 rows with the 128-byte swizzle."""
    most = 0
    for columns in range(8, 257, 8):
        try:
            TensorMap(
                DataType.BFLOAT16,
                0,
                (768, 2048),
                (1536,),
                (columns, _BOX_ROWS),
                swizzle=_SWIZZLE,
            )
        except TensorMapError:
            continue
        most = columns
    return most


def left_for_staging() -> int:
    """Thousands of bytes beside five stages, rounded down."""
    return (SMEM_NBYTES - 5 * _STAGE_NBYTES) // 1000


def headroom() -> int:
    """Thousands of bytes beside four stages and the padded staging, rounded down."""
    return (SMEM_NBYTES - _STAGES * _STAGE_NBYTES - _PADDED_STAGING) // 1000


def row_groups_lie_along() -> str:
    """What differs between the epilogue warps' addresses: lanes or columns."""
    first = {e.agent: int(e.operands["taddr"]) for e in reversed(issued("tcgen05.ld"))}
    lanes = {lane_column(taddr)[0] for taddr in first.values()}
    return "lanes" if len(lanes) == len(first) else "columns"


def row_group_of_warp_2() -> int:
    """Which group of 32 rows, a row being a lane, warp 2 reaches."""
    first, last = quarter_of(_WARP)
    return first // (last - first + 1)


def warps_for_all_lanes() -> int:
    """Fewest warps that together reach all lanes."""
    reached: set[int] = set()
    for count, warp in enumerate(_EPILOGUE_WARPS, 1):
        first, last = quarter_of(warp)
        reached.update(range(first, last + 1))
        if len(reached) == LANES:
            return count
    raise AssertionError("four warps reach all lanes")


def descriptor_registers() -> int:
    """32-bit registers of a 64-bit descriptor for each of 4 stages and 2 matrices."""
    return _STAGES * _MATRICES * _DESCRIPTOR_BITS // _REGISTER_BITS


def wait_after_saving_300() -> int:
    """The epilogue wait that the document's linear model gives for 300 cycles less."""
    deficit = _EPILOGUE_CYCLES - _W1_CYCLES
    return round((deficit + _SAVED_CYCLES) * _WAIT_CYCLES / deficit)


def overhead_per_mma() -> float:
    """Instructions beside MMAs, waits and commits for each MMA, to one decimal."""
    other = _INSTRUCTIONS - _MMAS - _WAITS - _COMMITS
    return round(other / _MMAS, 1)


def leading_offset_bits() -> list[int]:
    """First and last bit of the leading-dimension byte offset."""
    words = [
        SmemDescriptor(0, nbytes, 1024, SwizzleMode.B128).encode()
        for nbytes in (0, 0x3FFF0)
    ]
    changed = words[0] ^ words[1]
    return [(changed & -changed).bit_length() - 1, changed.bit_length() - 1]


def fence_instructions() -> int:
    """MEMBARs in the packaged SASS beyond those of ``fence.proxy.async``."""
    ptx, sass = packaged("example_72b.ptx"), packaged("example_72b.sass")
    assert "tcgen05.fence::after_thread_sync" in ptx
    return sass.count("MEMBAR") - ptx.count("fence.proxy.async")


def predicate_may_be_left_out() -> bool:
    """Whether ptxas takes an MMA without ``enable-input-d``."""
    return is_assembled("mma_without_enable_input_d")


def parts_of_the_reduction() -> list[int]:
    """Sums of the parts that the expected reduction names: at least and at most."""
    return [sum(part) for part in zip(*_PARTS, strict=True)]


def times_stage_0_is_described() -> int:
    """Calls of ``make_smem_desc(smem_a[0])`` for all tiles."""
    return _TILES * sum(k % _STAGES == 0 for k in range(_K_ITERS))


def store_slowdown() -> float:
    """Time of the bulk stores over that of phase 2B, to one decimal."""
    return round(_STORES * _STORE_CYCLES / _PHASE_2B_CYCLES, 1)


def conflict_of_plain_rows() -> int:
    """Greatest number of lanes that meet in one bank in rows of 256 bytes.

    A 16-byte store is taken to go in groups of as many lanes as fill all banks once.
    """
    lanes = _BANKS * _BANK_NBYTES // _STORE_NBYTES
    banks = [lane * _PLAIN_ROW // _BANK_NBYTES % _BANKS for lane in range(lanes)]
    return max(banks.count(bank) for bank in banks)


def tensor_pipe_share() -> int:
    """Per cent of a tile in which MMAs of the estimated length keep the pipe busy."""
    return round(100 * _MMAS * _MMA_CYCLES / _TILE_CYCLES)


def idle_share_of_the_k_loop() -> int:
    """Per cent of the K-loop without an MMA, by the published interval."""
    (clocks,) = (
        each.clocks
        for each in published_intervals()
        if (each.m, each.n, each.cta_group) == _MMA_SHAPE and not each.a_in_tmem
    )
    return round(100 * (1 - _MMAS * clocks / _K_LOOP_CYCLES))


def cycles_of_an_epilogue_warp() -> int:
    """Cycles of a tile that its wait, phase 1 and phase 2B take together."""
    return _ML_WAIT + _PHASE_1 + _PHASE_2B


def clock_of_the_cycles() -> float:
    """GHz at which a pair's tiles take the run's time, to one decimal."""
    cycles = _TILES / _PAIRS * _TILE_CYCLES
    return round(cycles / (_MILLISECONDS * 1e6), 1)


def cycles_that_bulk_stores_save() -> int:
    """Cycles of the K-loop that bulk stores take away."""
    return round(_K_LOOP_CYCLES * _BULK_GAIN / 100)


def cycles_to_read_the_accumulator() -> int:
    """Cycles that a SM's accumulator takes at the published rate of all its warps."""
    rate = Request().parameters["tmem_read_bandwidth"].value
    assert rate is not None
    return round(_ROWS * _COLUMNS * 4 / rate)


def instructions_of_the_mma_warp() -> int:
    """Instructions of a tile, of the kinds that the document's table has."""
    return _MMAS + _WAITS + _COMMITS + _OTHERS
