"""Parts 5 and 7. writer_rules: which loads and stores go together."""

from __future__ import annotations

from typing import Any

from fp4ref.arguments import shown
from fp4ref.gemm.plan.rules import FORMATS, rule
from fp4ref.gemm.plan.values import Plan
from fp4ref.gemm.plan.warps import WARP_THREADS

_TRANSPOSE = "PTX: tcgen05.ld, 32x32b"
_TRANSPOSES = ("store", "swap_ab")
_CLUSTER = ("cluster_m", "cluster_n")


@rule("a transposed tile goes through memory", _TRANSPOSE, *_TRANSPOSES, "element_wise")
def _transposes(p: Plan) -> str | None:
    if not p.transposes or p.config.epilogue.element_wise == "smem":
        return None
    return (
        f"store={p.config.epilogue.store} with swap_ab={p.config.operands.swap_ab}: "
        "the tile is stored across its accumulator's rows, which a thread of the "
        "epilogue has whole. Use element_wise=smem"
    )


_SQUARE = "what a warp transposes, or stores as matrices, is 32 x 32"


@rule(_SQUARE, _TRANSPOSE, *_TRANSPOSES, "subtile_n", "tmem_load")
def _square(p: Plan) -> str | None:
    asked = p.config.epilogue
    fragment = asked.tmem_load != "32x32b"
    if p.subtile_n == WARP_THREADS or not (p.transposes or fragment):
        return None
    reason = (
        f"tmem_load={asked.tmem_load}: stmatrix stores two loads of 16 lanes"
        if fragment
        else f"store={asked.store}, swap_ab={p.config.operands.swap_ab}: each thread "
        "gets a row of D for one of its accumulator's"
    )
    return (
        f"subtile_n={p.subtile_n} with {reason}. A warp has {WARP_THREADS} rows. Use "
        f"subtile_n={WARP_THREADS}"
    )


_DIVIDES = "CuTe int_tuple.hpp, shape_div: an EpilogueTile divides the CTA's tile"


@rule(
    "a tile has whole subtiles", _DIVIDES, "subtile_n", "tile_m", "tile_n", "cta_group"
)
def _whole_subtiles(p: Plan) -> str | None:
    if p.part_n % p.subtile_n == 0:
        return None
    most = next(n for n in (64, 32, 16) if p.part_n % n == 0)
    return (
        f"subtile_n={p.subtile_n} with tile_n={p.tile_n}: CuTe's 'Divisibility "
        f"Condition'; a CTA has {p.part_n} columns in each TMEM lane. Use "
        f"subtile_n={most}"
    )


_FRAGMENT = ("store", "swap_ab", "element_wise", "d_format", "beta", "c_format")


@rule("stmatrix stores rows of 16-bit pairs", "PTX: stmatrix", "tmem_load", *_FRAGMENT)
def _stmatrix(p: Plan) -> str | None:
    if p.config.epilogue.tmem_load == "32x32b":
        return None
    wanted: dict[str, tuple[Any, ...]] = {
        "d_format": ("bf16", "f16"),
        "element_wise": ("registers",),
        "store": ("plain",),
        "swap_ab": (False,),
        "beta": (0,),
    }
    for name, legal in wanted.items():
        if p.config.asked(name) not in legal:
            return (
                f"tmem_load=16x256b with {name}={shown(p.config.asked(name))}: a "
                "thread has 16-bit pairs of four rows for stmatrix. Use "
                f"{name}={legal[0]}, or tmem_load=32x32b"
            )
    return None


@rule("cp.async fills its own CTA", "PTX: cp.async, .shared::cta", "loader", *_CLUSTER)
def _cp_async(p: Plan) -> str | None:
    if p.config.mainloop.loader == "tma" or p.cluster_size == 1:
        return None
    m, n, _ = p.cluster
    return (
        f"loader=cp_async with cluster_m={m}, cluster_n={n}: cp.async writes to the "
        "shared memory of its own CTA. Use a cluster of one CTA, or loader=tma"
    )


_COPIES = "cp.async copies packed E2M1"


@rule(_COPIES, "PTX: cp.async, cp-size", "loader", "swap_ab", *FORMATS)
def _copied_formats(p: Plan) -> str | None:
    if p.config.mainloop.loader == "tma" or p.kind == "mxf4nvf4":
        return None
    return (
        f"loader=cp_async with operand_format={p.formats[0]}: a thread "
        "copies 16 packed elements of a format of 4 bits with scales. Use "
        "loader=tma, or operand_format=nvfp4"
    )


_COLLECTIVE = "CUTLASS sm100_epilogue_tma_warpspecialized.hpp"
_DELAY = "a delayed store is one of D"


@rule(_DELAY, _COLLECTIVE, "delay_tma_store", "d_format")
def _delay(p: Plan) -> str | None:
    if not p.delay_tma_store or p.stages_d:
        return None
    return (
        "delay_tma_store=True with d_format=None: no D is stored. Use "
        "delay_tma_store=False"
    )


_REUSE = "D lies in C's memory only if there is C"
_STAGES = ("c_stages", "d_stages")


@rule(_REUSE, _COLLECTIVE, "reuse_smem_c", "c_format", "d_format", *_STAGES)
def _reuse(p: Plan) -> str | None:
    asked = p.config.epilogue
    if not asked.reuse_smem_c:
        return None
    said = "reuse_smem_c=True: CUTLASS's 'Smem reuse requirements not met'; "
    if not p.stages_d:
        return f"{said}there is no D. Use reuse_smem_c=False"
    if asked.c_format is None:
        return f"{said}there is no C. Use reuse_smem_c=False, or c_format='f32'"
    if asked.d_stages <= asked.c_stages:
        return None
    return (
        f"{said}d_stages={asked.d_stages} stores read stages of C, which has "
        f"c_stages={asked.c_stages}. Use d_stages={asked.c_stages}"
    )


@rule(
    "a delayed store does not keep what it waits for",
    _COLLECTIVE,
    *("reuse_smem_c", "delay_tma_store", _REUSE, *_STAGES),
)
def _deadlock(p: Plan) -> str | None:
    asked = p.config.epilogue
    if not (asked.reuse_smem_c and asked.delay_tma_store):
        return None
    if asked.c_stages > asked.d_stages:
        return None
    return (
        f"reuse_smem_c=True with delay_tma_store=True, c_stages={asked.c_stages} and "
        f"d_stages={asked.d_stages}: CUTLASS's 'This TMA epilogue configuration will "
        "deadlock'; a stage of C is given back by a store that is issued only when the "
        f"next C has come. Use c_stages={asked.d_stages + 1}, or delay_tma_store=False"
    )
