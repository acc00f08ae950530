"""Part 5. loads: the load warp's states, coordinates, bytes and stages."""

from __future__ import annotations

import re

from fp4ref.errors import TensorMapError
from fp4ref.hardware.mbarrier_unit import NBYTES as MBARRIER_NBYTES
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.lessons.record import compiled, is_assembled, lines
from fp4ref.lessons.truths import runs
from fp4ref.lessons.truths.runs import derived, events, instructions, shown


def prologue() -> int:
    """K-tiles of the first load call."""
    return int(shown("5.1")["prologue"])


def entry_state() -> list[int]:
    """Index, phase and count with which the producer enters."""
    return [int(value) for value in lines("producer_start_state")]


def barrier_of_the_token() -> str:
    """Which barrier ``producer_try_acquire`` asks."""
    asked = events("mbarrier.test_wait", frame="5.3")[0].operands["mbar"]
    names = {
        change.address: change.label
        for event in events("mbarrier.init")
        for change in event.barrier
    }
    return names[asked].partition(".")[2].partition("[")[0]


def expectations_of_a_stage() -> int:
    """``expect_tx`` operations for one stage."""
    first, second = events("mbarrier.arrive.expect_tx", frame="5.4.8")[:2]
    between = events("mbarrier.arrive.expect_tx")
    return sum(first.step <= e.step < second.step for e in between)


def state_after_the_first() -> list[int]:
    """Index, phase and count after the first advance."""
    ring = ("mainloop", "producer")
    first = next(
        e.operands
        for e in events("pipeline.advance")
        if (e.operands["ring"], e.operands["role"]) == ring
    )
    return [first["index"], first["phase"], first["count"]]


def results_of_elect() -> int:
    """Results of ``elect.sync``: the elected lane and a predicate."""
    return len(instructions()["elect.sync"].split(",")[0].split("|"))


def coords_of_a() -> list[int]:
    """Coordinates of the first copy of A."""
    return list(runs.loads("A")[0].operands["coords"])


def map_nbytes() -> int:
    """Bytes of a tensor map."""
    return int(compiled("cute_types", "tma_descriptor_nbytes"))


def arrivals_of_tma() -> int:
    """Arrivals that the first copy of A makes on the full barrier."""
    landed = events("cp.async.bulk.tensor", frame="5.4.4", kind="land")[0]
    return sum(change.after[1] < change.before[1] for change in landed.barrier)


def coords_of_b_3() -> list[int]:
    """Coordinates of B's copy of k-tile 3."""
    return list(runs.loads("B")[3].operands["coords"])


def sfa_nbytes() -> int:
    """Bytes that one copy of SFA credits."""
    return int(runs.loads("SFA")[0].operands["tx_bytes"])


def scales_of_this_cta() -> int:
    """Scales of A in the rows of tile (5, 0), over all k-tiles."""
    rows, columns = shown("3.4")["SFA"]["tile"]
    return int(rows * columns * len(shown("5.2")["k"]))


def coords_of_sfa() -> list[int]:
    """Coordinates of the first copy of SFA."""
    return list(runs.loads("SFA")[0].operands["coords"])


def sfb_nbytes() -> int:
    """Bytes that one copy of SFB credits."""
    return int(runs.loads("SFB")[0].operands["tx_bytes"])


def stage_nbytes() -> int:
    """Bytes that the four copies of a stage credit."""
    first = [runs.loads(tensor)[0] for tensor in ("A", "B", "SFA", "SFB")]
    return sum(int(e.operands["tx_bytes"]) for e in first)


def _stages() -> list[int]:
    barriers = [int(e.operands["mbar"]) for e in runs.loads("A")]
    return [(each - barriers[0]) // MBARRIER_NBYTES for each in barriers]


def stage_of_k_tile_7() -> int:
    """Stage into which k-tile 7 is loaded."""
    return _stages()[7]


def k_tiles_that_wait() -> int:
    """K-tiles that need a stage which was in use before."""
    stages = _stages()
    return len(stages) - len(set(stages))


def exit_state() -> list[int]:
    """Index and phase after the last load call."""
    last = events("load.exit")[-1].operands
    return [last["index"], last["phase"]]


def second_call() -> int:
    """K-tiles of the second load call."""
    return int(events("load.exit")[-1].operands["k_tiles"])


def total_nbytes() -> int:
    """Bytes that the load warp moves for a tile."""
    return int(derived("5.8")["total_bytes"])


def stages_used() -> int:
    """Stages that the tile's loads go through."""
    return int(derived("5.8")["stages"])


def dimensions_of_a() -> int:
    """Dimensions of A's copy, the first one in the kernel's PTX."""
    load = re.compile(r"cp\.async\.bulk\.tensor\.(\d)d\.shared")
    found = filter(None, map(load.match, instructions()))
    return int(next(found)[1])


def mask_without_multicast() -> bool:
    """Whether ptxas takes a CTA mask without ``.multicast::cluster``."""
    return is_assembled("tensor_load_mask")


def largest_extent() -> int:
    """Greatest extent of a map's dimension, a power of two."""
    taken = 1
    while _is_extent(2 * taken):
        taken *= 2
    return taken


def _is_extent(extent: int) -> bool:
    try:
        TensorMap(DataType.UINT8, 0, (extent,), (), (16,))
    except TensorMapError:
        return False
    return True


def sfa_total_nbytes() -> int:
    """Bytes of A's scales that the load warp moves for a tile."""
    return sum(int(e.operands["tx_bytes"]) for e in runs.loads("SFA"))
