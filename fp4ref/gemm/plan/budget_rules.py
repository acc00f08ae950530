"""Parts 1 and 4. budget_rules: accumulators, scales, stages and tiles fit in memory."""

from __future__ import annotations

from fp4ref.gemm.plan.nearest import most_that_holds
from fp4ref.gemm.plan.rules import FORMATS, K_GROUPS, rule
from fp4ref.gemm.plan.values import Plan
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.hardware.tmem import COLUMNS

_TMEM = "PTX: tcgen05.alloc, 512 columns"


_ACCUMULATORS = "accumulators fit in TMEM"


@rule(_ACCUMULATORS, _TMEM, "accumulator_stages", "tile_n", "tile_m", "cta_group")
def _accumulators(p: Plan) -> str | None:
    stages, n = p.config.asked("accumulator_stages"), p.part_n
    if stages * n <= COLUMNS:
        return None
    parts = f" in {p.column_parts} parts" if p.column_parts > 1 else ""
    return (
        f"accumulator_stages={stages}: accumulators of tile_n={p.tile_n} columns"
        f"{parts} need more than the {COLUMNS} TMEM columns. Use "
        f"accumulator_stages={COLUMNS // n}"
    )


_COLUMNS = (
    "accumulator_stages",
    "cta_group",
    *FORMATS,
    "tile_m",
    "tile_n",
    "tile_k",
    "scale_buffers",
    "k_group",
)


@rule("accumulators and scales fit in TMEM", _TMEM, *_COLUMNS, _ACCUMULATORS)
def _columns(p: Plan) -> str | None:
    if p.tmem.end <= COLUMNS:
        return None
    stages = p.config.asked("accumulator_stages")
    fewer = {
        "accumulator_stages": range(1, stages),
        "k_group": _below(K_GROUPS, p.k_group),
        "scale_buffers": range(1, p.scale_buffers),
    }
    return (
        f"accumulator_stages={stages} of "
        f"tile_n={p.tile_n} columns and scale_buffers={p.scale_buffers} for "
        f"k_group={p.k_group} need {p.tmem.end} TMEM columns of {COLUMNS}. "
        + most_that_holds(p, fewer, lambda less: less.tmem.end <= COLUMNS)
    )


_BOX_ROW = "a row of a box has 16 bytes"
_BOX_ROW_NBYTES = 16


@rule(_BOX_ROW, "PTX: TMA, boxDim", "subtile_n", "d_format")
def _box_row(p: Plan) -> str | None:
    nbytes = p.subtile_n * p.d_type.bits // 8
    if nbytes >= _BOX_ROW_NBYTES:
        return None
    return (
        f"subtile_n={p.subtile_n} with d_format={p.config.epilogue.d_format}: TMA "
        f"copies boxes with rows of at least {_BOX_ROW_NBYTES} bytes, and these have "
        f"{nbytes}. Use subtile_n={_BOX_ROW_NBYTES * 8 // p.d_type.bits}"
    )


_TILE = (
    "tile_m",
    "tile_n",
    "tile_k",
    *FORMATS,
    "cta_group",
    "cluster_m",
    "cluster_n",
)
_EPILOGUE = (
    *("c_stages", "d_stages", "c_format", "d_format", "reuse_smem_c", "element_wise"),
    *("k_group", "subtile_n", "staging", _BOX_ROW),
    *("accumulator_stages", *_TILE),
)
_BUDGET = "CUTLASS sm100_pipeline_carveout.inl"


SUBTILES = 32, 64
"""Columns of a subtile that any D can have, and fewer than the most; ascending."""

_ROOM = "the epilogue leaves room"


def _has_room(p: Plan) -> bool:
    return p.most_stages >= 2


def _below(values: tuple[int, ...], asked: int) -> list[int]:
    return [each for each in values if each < asked]


@rule(_ROOM, _BUDGET, *_EPILOGUE)
def _epilogue(p: Plan) -> str | None:
    if _has_room(p):
        return None
    fewer = {
        "d_stages": range(1, p.d_stages),
        "c_stages": range(1, p.config.asked("c_stages")),
        "k_group": _below(K_GROUPS, p.k_group),
        "subtile_n": _below(SUBTILES, p.subtile_n),
    }
    return (
        f"c_stages={p.config.asked('c_stages')}, d_stages={p.d_stages}: an epilogue of "
        f"{p.epilogue_nbytes} bytes leaves room for {max(p.most_stages, 0)} mainloop "
        f"stages of {p.stage_nbytes} bytes, and the ring needs 2. "
        + most_that_holds(p, fewer, _has_room)
    )


@rule("the mainloop's ring has two stages", _BUDGET, "stages", *_EPILOGUE, _ROOM)
def _ring(p: Plan) -> str | None:
    if p.mainloop_stages >= 2:
        return None
    asked = p.config.asked("stages")
    return (
        f"stages={asked}: the ring needs at least 2; {p.most_stages} fit. Use stages=2"
    )


_EVERY_COUNT = (
    "stages",
    "accumulator_stages",
    "clc_stages",
    "scheduler",
    "beta",
    "fusion",
    "loader",
    "epilogue_warps",
    "warp_order",
)


@rule("shared memory holds it all", _BUDGET, *_EPILOGUE, *_EVERY_COUNT, _ROOM)
def _smem(p: Plan) -> str | None:
    if p.smem.end <= SMEM_NBYTES:
        return None
    counts = ("c_stages", "d_stages", "accumulator_stages", "clc_stages")
    others = ", ".join(f"{name}={p.config.asked(name)}" for name in counts)
    fewer = {
        "clc_stages": range(1, p.config.asked("clc_stages")),
        "stages": range(2, p.mainloop_stages),
        "d_stages": range(1, p.d_stages),
        "c_stages": range(1, p.config.asked("c_stages")),
    }
    return (
        f"stages={p.mainloop_stages} of {p.stage_nbytes} bytes and an epilogue of "
        f"{p.epilogue_nbytes} bytes ({others}) end at {p.smem.end}; a CTA has "
        f"{SMEM_NBYTES} bytes. At most {p.most_stages} stages fit. "
        + most_that_holds(p, fewer, lambda less: less.smem.end <= SMEM_NBYTES)
    )
