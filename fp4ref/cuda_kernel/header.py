"""header: ``plan.cuh``, the constants of one configuration, written from its plan.

The kernel derives no number again. The header in ``kernel/gemm`` is the one of
``GemmConfig()``, to be read; what is compiled gets the header of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from fp4ref.gemm import plan as plan_room
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.gemm.plan.rings import Arrivals, RingSpec
from fp4ref.gemm.plan.warps import NamedBarrierId
from fp4ref.hardware.shared_memory import BASE as SMEM_BASE
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.hardware.tmem import COLUMNS

PLAN = "kernel/gemm/plan.cuh"
"""Path of the header."""

INLINE = "__device__ __forceinline__"


def plan_header(config: GemmConfig) -> str:
    """Return the text of ``plan.cuh`` for `config`."""
    planned = plan(config)
    parts = (_head(), *(part(planned) for part in _PARTS))
    return "\n".join(chain.from_iterable(parts))


def _head() -> Iterator[str]:
    yield f"// {(plan_room.__doc__ or '').splitlines()[0]}"
    yield "//"
    yield "// Written by fp4ref.cuda_kernel.header from fp4ref.gemm.plan. This is"
    yield "// the plan of GemmConfig(); the plan of what is compiled takes its place."
    yield "#pragma once"
    yield '#include "../hardware/sm.cuh"'
    yield ""


def _cluster(p: Plan) -> Iterator[str]:
    """Who works together; the pipeline's scope depends on it."""
    asked = p.config.cluster
    yield _number("CTA_GROUP", asked.cta_group)
    yield _number("CLUSTER_M", asked.cluster_m)
    yield _number("CLUSTER_N", asked.cluster_n)
    yield _number("CLUSTER_SIZE", p.cluster_size)
    yield _constant("bool", "IN_CLUSTER", str(p.cluster_size > 1).lower())
    yield ""
    yield '#include "pipeline.cuh"'
    yield ""


def _asked(p: Plan) -> Iterator[str]:
    """What the configuration asks for."""
    config = p.config
    raster_along_m = str(config.tiles.raster == "m").lower()
    yield _constant("bool", "RASTER_ALONG_M", raster_along_m)
    yield _number("RASTER_SWIZZLE", config.tiles.raster_swizzle)
    yield _constant("bool", "TRANSPOSES", str(p.transposes).lower())
    yield _number("SPLITS", config.tiles.splits)
    yield _number("MMA_M", config.tile.m)
    yield _constant("bool", "OF_16_BITS", str(p.kind == "f16").lower())
    for name in ("c_stages", "d_stages", "clc_stages"):
        yield _number(name.upper(), config.asked(name))
    yield _number("STORE_STAGES", p.store_stages)
    for name in _STORE_MODES:
        yield _constant("bool", name.upper(), str(getattr(p, name)).lower())
    yield _number("ACCUMULATOR_BARRIERS", p.accumulator_barriers)
    yield _constant("bool", "OVERLAPPED", str(p.overlapped).lower())
    yield _number("SCALE_BUFFERS", config.mainloop.scale_buffers)
    yield ""


_STORE_MODES = (
    *("stages_d", "delay_tma_store", "acquires_ahead", "store_releases_c"),
    "waits_for_c",
)


_NUMBERS = (
    *("tile_m", "tile_n", "tile_k", "k_blocks"),
    *("column_parts", "part_n", "subtile_n", "subtiles"),
    *("lanes", "subtile_boxes", "subtile_box_rows", "tmem_load_lanes"),
    *("c_boxes", "c_box_n", "c_box_row_nbytes"),
    *("d_boxes", "d_box_n", "d_box_row_nbytes"),
    *("b_rows", "a_parts", "b_parts", "sfb_parts"),
    *("a_code", "b_code", "sfd_vec_size", "sf_atoms"),
    *("k_blocks_per_atom", "sfa_blocks", "sfb_blocks"),
    *("mainloop_stages", "k_group", "round_stages", "round_k_tiles"),
    *("a_nbytes", "b_nbytes", "sfa_nbytes", "sfb_nbytes"),
    *("k_tile_tx_bytes", "c_subtile_nbytes", "c_row_nbytes", "d_row_nbytes"),
    *("sfa_columns", "sfb_columns", "sums_nbytes"),
    *("accumulator_stride", "subtiles_to_release"),
)


def _deduced(p: Plan) -> Iterator[str]:
    """What follows, with the plan's reason above it."""
    for name in _NUMBERS:
        yield f"// {p.why[name].sentence}."
        yield _number(name.upper(), getattr(p, name))
    yield "static_assert(MAINLOOP_STAGES >= SCALE_BUFFERS);"
    yield ""


def _warps(p: Plan) -> Iterator[str]:
    """The warps by role, their threads, and the barriers where they meet."""
    for name in ("warp_threads", "epilogue_warps", "epilogue_threads"):
        yield _number(name.upper(), getattr(p, name))
    yield _number("CTA_THREADS", p.threads)
    yield ""
    yield "// The first warp of each role."
    roles = ", ".join(f"{each.role.name} = {each.first}" for each in p.warps)
    yield f"enum WarpRole : u32 {{ {roles} }};"
    yield ""
    ids = ", ".join(f"{each.name}_BARRIER = {each.value}" for each in NamedBarrierId)
    yield f"enum NamedBarrierId : u32 {{ {ids} }};"
    yield ""


def _maps(p: Plan) -> Iterator[str]:
    """The maps of shared memory and TMEM."""
    yield "// Byte offsets from the CTA's shared base: barriers first, then buffers."
    yield "namespace smem_map {"
    yield "// Where dynamic shared memory starts in practice."
    yield _number("BASE", SMEM_BASE)
    for name, offset in p.smem.items():
        yield _number(name.upper(), offset)
    yield _number("END", p.smem.end)
    yield f'static_assert(END <= {SMEM_NBYTES}, "a CTA has {SMEM_NBYTES:,} bytes");'
    yield "static_assert(A % 1024 == 0 && B % 1024 == 0);  // 128-byte swizzle"
    yield "}  // namespace smem_map"
    yield ""
    yield "// TMEM columns: accumulators from 0, ACCUMULATOR_STRIDE apart, then (SFA,"
    yield "// SFB) for each scale buffer. Frames 4.3 and 4.4."
    yield "namespace tmem_map {"
    yield _number("SFA", p.tmem.sfa[0])
    yield _number("SFB", p.tmem.sfb[0])
    columns = (p.tmem.end - p.tmem.sfa[0]) // len(p.tmem.sfa)
    yield f"{_number('K_TILE', columns)}  // columns of the scales of a k-tile"
    needed = f"SFA + SCALE_BUFFERS * K_GROUP * K_TILE <= {COLUMNS}"
    yield f'static_assert({needed}, "TMEM has {COLUMNS} columns");'
    yield "}  // namespace tmem_map"
    yield ""


def _rings(p: Plan) -> Iterator[str]:
    """The rings by name, and their initialisation."""
    yield "// The rings of barriers, by name."
    yield "struct Rings {"
    yield "    u32 base;"
    yield ""
    for ring in p.rings:
        yield from _accessor(ring)
    yield ""
    yield "    // Initialise what is used. Frame 1.4; arrivals: 1.2, 1.9 and 1.10."
    yield f"    {INLINE} void init() const {{"
    for ring in sorted(p.rings, key=lambda each: each.turn):
        if ring.used:
            yield from _init(ring)
    yield "    }"
    yield "};"
    yield ""


def _accessor(ring: RingSpec) -> Iterator[str]:
    name = ring.name.upper()
    if ring.empty is None:
        kind, value = "u32", f"base + smem_map::{name}"
    else:
        kind = f"Ring<{ring.stages}>"
        value = f"{{base + smem_map::{name}_FULL, base + smem_map::{name}_EMPTY}}"
    yield f"    {INLINE} {kind} {ring.name}() const {{"
    yield f"        return {value};"
    yield "    }"


def _init(ring: RingSpec) -> Iterator[str]:
    yield f"        // {_said(ring.full, 'full')}{_said(ring.empty, '; empty')}."
    if ring.empty is None:
        yield f"        mbarrier_init({ring.name}(), {ring.full.count});"
    else:
        yield f"        {ring.name}().init({ring.full.count}, {ring.empty.count});"


def _buffers(p: Plan) -> Iterator[str]:
    """The buffers by name."""
    yield "// What lies behind the barriers, by name."
    yield "struct Buffers : Rings {"
    for buffer in p.buffers:
        at = f"base + smem_map::{buffer.name.upper()}"
        stage, offset = ("u32 stage", f" + stage * {buffer.nbytes}")
        if not buffer.numbered:
            stage, offset = "", ""
        yield f"    {INLINE} u32 {buffer.name}({stage}) const {{"
        yield f"        return {at}{offset};"
        yield "    }"
    yield "};"
    yield ""


_PARTS = (_cluster, _asked, _deduced, _warps, _maps, _rings, _buffers)


def _said(arrivals: Arrivals | None, what: str) -> str:
    return f"{what}: {arrivals.count} by {arrivals.by}" if arrivals else ""


def _constant(kind: str, name: str, value: str) -> str:
    return f"constexpr {kind} {name} = {value};"


def _number(name: str, value: int) -> str:
    return _constant("u32", name, str(value))
