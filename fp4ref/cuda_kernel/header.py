"""header: ``plan.cuh``, the constants of one configuration, written from its plan.

The kernel derives no number again. The header in ``kernel/gemm`` is the one of
``GemmConfig()``, to be read; what is compiled gets the header of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fp4ref.gemm import plan as plan_room
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.gemm.plan.rings import Arrivals, RingSpec
from fp4ref.hardware.shared_memory import BASE as SMEM_BASE
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.hardware.tmem import COLUMNS
from fp4ref.numerics import ScaleFormat

PLAN = "kernel/gemm/plan.cuh"
"""Path of the header."""

_INLINE = "__device__ __forceinline__"


def plan_header(config: GemmConfig) -> str:
    """Return the text of ``plan.cuh`` for `config`."""
    planned = plan(config)
    parts = (_head(), _asked(planned), _deduced(planned), _maps(planned))
    return "\n".join([*(line for part in parts for line in part), *_rings(planned)])


def constants(config: GemmConfig) -> list[str]:
    """Return what the compiler reads of the header: all but the reasons.

    Two configurations with the same lines are one kernel, as ``stages=5`` and None.
    """
    lines = plan_header(config).splitlines()
    return [line for line in lines if not line.lstrip().startswith("//")]


def _head() -> Iterator[str]:
    yield f"// {(plan_room.__doc__ or '').splitlines()[0]}"
    yield "//"
    yield "// Written by fp4ref.cuda_kernel.header from fp4ref.gemm.plan. This is"
    yield "// the plan of GemmConfig(); the plan of what is compiled takes its place."
    yield "#pragma once"
    yield '#include "pipeline.cuh"'
    yield ""


def _asked(p: Plan) -> Iterator[str]:
    """What the configuration asks for."""
    config = p.config
    yield "enum class Format { F32, BF16, F16, NVFP4 };"
    yield "enum class Activation { NONE, RELU, GELU, SILU };"
    yield ""
    yield _constant("Format", "D_FORMAT", f"Format::{config.d_format.upper()}")
    c_format = (config.c_format or "f32").upper()
    yield _constant("Format", "C_FORMAT", f"Format::{c_format}")
    activation = (config.activation or "none").upper()
    yield _constant("Activation", "ACTIVATION", f"Activation::{activation}")
    for name, value in (
        ("SFD_UE8M0", config.sfd_format is ScaleFormat.UE8M0),
        ("HAS_BIAS", config.bias),
        ("SCHEDULER_IS_CLC", config.scheduler == "clc"),
        ("RASTER_ALONG_M", config.raster == "m"),
    ):
        yield _constant("bool", name, str(value).lower())
    yield ""
    yield "// float32 constants by their bits."
    yield _number("BETA_BITS", _bits(config.beta))
    yield _number("NORM_CONSTANT_BITS", _bits(config.norm_constant))
    yield ""
    for name in ("c_stages", "d_stages", "clc_stages", "accumulator_stages"):
        yield _number(name.upper(), getattr(config, name))
    yield _number("SCALE_BUFFERS", config.scale_buffers)
    yield ""


_NUMBERS = (
    *("tile_n", "mainloop_stages", "a_nbytes", "b_nbytes", "sfa_nbytes", "sfb_nbytes"),
    *("stage_tx_bytes", "c_subtile_nbytes", "d_subtile_nbytes", "sfb_columns"),
)


def _deduced(p: Plan) -> Iterator[str]:
    """What follows, with the plan's reason above it."""
    yield f"// {p.why['loads_c'].sentence}."
    yield _constant("bool", "LOADS_C", str(p.loads_c).lower())
    for name in _NUMBERS:
        yield f"// {p.why[name].sentence}."
        yield _number(name.upper(), getattr(p, name))
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
    yield "}  // namespace smem_map"
    yield ""
    yield "// TMEM columns: accumulators from 0, TILE_N apart, then (SFA, SFB) for each"
    yield "// scale buffer. Frames 4.3 and 4.4."
    yield "namespace tmem_map {"
    yield _number("SFA", p.tmem.sfa[0])
    yield _number("SFB", p.tmem.sfb[0])
    columns = (p.tmem.end - p.tmem.sfa[0]) // p.config.scale_buffers
    yield f"{_number('BUFFER', columns)}  // columns of one scale buffer"
    needed = f"SFA + SCALE_BUFFERS * BUFFER <= {COLUMNS}"
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
    yield f"    {_INLINE} void init() const {{"
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
    yield f"    {_INLINE} {kind} {ring.name}() const {{"
    yield f"        return {value};"
    yield "    }"


def _init(ring: RingSpec) -> Iterator[str]:
    yield f"        // {_said(ring.full, 'full')}{_said(ring.empty, '; empty')}."
    if ring.empty is None:
        yield f"        mbarrier_init({ring.name}(), {ring.full.count});"
    else:
        yield f"        {ring.name}().init({ring.full.count}, {ring.empty.count});"


def _said(arrivals: Arrivals | None, what: str) -> str:
    return f"{what}: {arrivals.count} by {arrivals.by}" if arrivals else ""


def _constant(kind: str, name: str, value: str) -> str:
    return f"constexpr {kind} {name} = {value};"


def _number(name: str, value: int) -> str:
    return _constant("u32", name, str(value))


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))
