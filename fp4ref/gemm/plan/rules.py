"""Parts 1 and 4. rules: what this kernel and the machine allow, each rule by its name.

A rule says which fields it reads, and which rules it builds on. It is asked only if
none of these has been refused, so that all that is wrong is reported at once, and not
what merely follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np

from fp4ref.arguments import FINITE_FLOAT32, is_finite_float32, shown
from fp4ref.errors import ConfigError
from fp4ref.gemm.config import Format, GemmConfig, SourceFormat
from fp4ref.gemm.fusion.registry import activations
from fp4ref.gemm.plan import half_rows
from fp4ref.gemm.plan.nearest import (
    MOST,
    is_count,
    nearest_float,
    nearest_of,
    too_large,
)
from fp4ref.gemm.plan.values import Plan
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WARP_THREADS
from fp4ref.numerics import ScaleFormat
from fp4ref.numerics.kinds import OPERAND_FORMATS, kind_of

Check = Callable[[Plan], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes
    ----------
    reads
        Fields of the configuration that it looks at, and names of rules that must hold.
    check
        Gives a sentence if the rule is broken.
    gap
        Row in the list of gaps, if other kernels have more of this choice.
    """

    name: str
    source: str
    reads: tuple[str, ...]
    check: Check
    gap: str = ""


RULES: list[Rule] = []
"""In the order in which they are asked."""

THIS_KERNEL = "what this kernel is written for"
ROWS_OF_A_CTA = 128
"""As many as TMEM has lanes."""


def rule(
    name: str, source: str, *reads: str, gap: str = ""
) -> Callable[[Check], Check]:
    """Register a function as a rule."""

    def register(check: Check) -> Check:
        RULES.append(Rule(name, source, reads, check, gap))
        return check

    return register


def _no_count(p: Plan, field: str, value: object) -> str:
    if too_large(value):
        said = f"{field}={shown(value)}: far more than any memory holds"
        return said + _most_of(p, field)
    said = f"{field}={shown(value)}: an integer of at least 1"
    return said + ("; the nearest is 1" if is_count(value) else "")


def _most_of(p: Plan, field: str) -> str:
    """Return what is said of the largest count that can be reckoned with."""
    found = broken(p.config.replace(**{field: MOST}))
    remedies = (said.rpartition(". ")[2] for _, said in found)
    return next((f". {each}" for each in remedies if f"Use {field}=" in each), "")


def _one_of(
    field: str,
    *words: object,
    gap: str = "",
    more: Callable[[], Iterable[object]] = tuple,
) -> None:
    """Register that `field` is one of these, type and value; `more` are asked late."""

    @rule(f"{field} is one of a few", THIS_KERNEL, field, gap=gap)
    def check(p: Plan) -> str | None:
        value: Any = p.config.asked(field)
        legal = (*words, *more())
        if type(value) in {type(v) for v in legal} and value in legal:
            return None
        known = ", ".join(str(v) for v in legal)
        said = f"{field}={shown(value)}: this kernel takes one of {known}"
        return said + nearest_of(value, legal)


def _count(field: str) -> None:
    """Register that `field` is a positive integer."""

    @rule(f"{field} is a count", THIS_KERNEL, field)
    def check(p: Plan) -> str | None:
        value = p.config.asked(field)
        return None if is_count(value) and value >= 1 else _no_count(p, field, value)


def _finite(field: str) -> None:
    """Register that `field` is finite in float32."""

    @rule(f"{field} is finite in float32", "parameters are float32", field)
    def check(p: Plan) -> str | None:
        value = p.config.asked(field)
        if is_finite_float32(value):
            return None
        return f"{field}={shown(value)}: {FINITE_FLOAT32}" + nearest_float(value)


K_GROUPS = 1, 2, 4
"""k-tiles of a stage, ascending."""
_TILE_GAP = "gemm-tile"
_one_of("tile_m", 64, 128, 256, gap="gemm-tile")
_one_of("tile_n", 64, 128, 192, 256, gap="gemm-tile")
_one_of("operand_format", *OPERAND_FORMATS, gap="gemm-operands")
_one_of("b_format", None, *OPERAND_FORMATS, gap="gemm-operands")
_one_of("d_format", *get_args(Format), None, gap="gemm-output")
_one_of("c_format", None, *get_args(SourceFormat), gap="gemm-output")
_one_of("activation", None, gap="gemm-activation", more=activations)
_one_of("scheduler", "clc", "static", gap="gemm-scheduler")
_one_of("raster", "m", "n", gap="gemm-scheduler")
_one_of("raster_swizzle", 1, 2, 4, 8)
_one_of("scale_buffers", 1, 2)
_one_of("k_group", *K_GROUPS)
_one_of("cta_group", 1, 2)
_one_of("cluster_m", 1, 2, 4)
_one_of("cluster_n", 1, 2, 4)
_one_of("loader", "tma", "cp_async")
_one_of("mma_loop", "unrolled", "rolled")
_one_of("bias", False, True)
_one_of("swap_ab", False, True)
_one_of("reuse_smem_c", False, True)
_one_of("delay_tma_store", False, True)
_one_of("store", "plain", "transposed", gap="gemm-output")
_one_of("element_wise", "registers", "smem")
_one_of("tmem_load", "32x32b", "16x256b")
_one_of("staging", "tiles", "padded", "bulk", "swizzled", "none")
_one_of("unroll", 1, 2, 4)
_one_of("release", "loaded", "stored")
_one_of("warp_order", "mma_first", "load_first")
_one_of("prefetch_tile", False, True)
_one_of("subtile_n", 16, 32, 64, 128, gap="gemm-output")
for _field in ("c_stages", "d_stages", "accumulator_stages", "clc_stages", "splits"):
    _count(_field)
for _field in ("norm_constant", "beta"):
    _finite(_field)


@rule("SFD has a scale type", "PTX: tcgen05.mma block scaling", "sfd_format")
def _sfd_format(p: Plan) -> str | None:
    if isinstance(p.config.asked("sfd_format"), ScaleFormat):
        return None
    value = p.config.asked("sfd_format")
    return f"sfd_format={shown(value)}: one of ScaleFormat.UE4M3 or ScaleFormat.UE8M0"


@rule("stages is a count, or None", THIS_KERNEL, "stages")
def _stages(p: Plan) -> str | None:
    stages = p.config.asked("stages")
    return (
        None if stages is None or is_count(stages) else _no_count(p, "stages", stages)
    )


_LANES = "PTX: tcgen05.ld, Access restrictions"


@rule("every TMEM lane has an epilogue warp", _LANES, "epilogue_warps")
def _every_lane(p: Plan) -> str | None:
    asked = p.config.asked("epilogue_warps")
    if type(asked) is int and asked in (4, 6, 8):
        return None
    said = f"epilogue_warps={shown(asked)}: this kernel takes one of 4, 6, 8"
    if type(asked) is int and 0 < asked < EPILOGUE_WARPS:
        said = (
            f"epilogue_warps={asked}: a warp reaches the {WARP_THREADS} lanes from "
            f"{WARP_THREADS} x (warp mod 4) and no others, so {asked} of them leave "
            f"{ROWS_OF_A_CTA - asked * WARP_THREADS} rows of the {ROWS_OF_A_CTA} of a "
            "CTA unread"
        )
    return f"{said}. Use epilogue_warps=4"


MOST_UNITS = 65_535
"""Extent of a grid along z: the splits of every batch."""


@rule("the grid holds the splits", "CUDA guide: gridDim.z", "splits")
def _splits(p: Plan) -> str | None:
    splits = p.config.asked("splits")
    if splits <= MOST_UNITS:
        return None
    return (
        f"splits={splits}: the splits of a tile lie along z, and a grid has at most "
        f"{MOST_UNITS} there. Use splits={MOST_UNITS}; those beyond the k-tiles are "
        "empty"
    )


@rule("the norm constant is positive", "CUTLASS sm100_visitor_store", "norm_constant")
def _norm_constant(p: Plan) -> str | None:
    norm = p.config.asked("norm_constant")
    if np.float32(norm) > 0:
        return None
    return f"norm_constant={norm}: a positive number. Use norm_constant=1.0"


@rule("beta needs C", "D = alpha * A * B + beta * C", "beta", "c_format")
def _beta(p: Plan) -> str | None:
    beta = p.config.asked("beta")
    if beta == 0 or p.config.asked("c_format") is not None:
        return None
    return f"beta={beta} without C. Use beta=0, or c_format='f32'"


_KINDS = "PTX: tcgen05.mma kinds and shapes"
_TOGETHER = "one MMA takes A and B"
FORMATS = ("operand_format", "b_format", "swap_ab", _TOGETHER)
"""What the formats of A and B depend on."""


@rule(_TOGETHER, _KINDS, "operand_format", "b_format")
def _together(p: Plan) -> str | None:
    a, b = p.formats
    if kind_of(a, b) is not None:
        return None
    fitting = (each for each in OPERAND_FORMATS if kind_of(a, each))
    return (
        f"b_format={b!r} with operand_format={a!r}: no MMA takes "
        f"both. Use b_format={' or '.join(map(repr, fitting))}"
    )


@rule("a k-tile is a row of shared memory", _KINDS, "tile_k", *FORMATS, gap=_TILE_GAP)
def _tile_k(p: Plan) -> str | None:
    asked = p.config.asked("tile_k")
    if asked is None or (type(asked) is int and asked == p.tile_k):
        return None
    return (
        f"tile_k={shown(asked)}: this kernel takes one of {p.tile_k}, which are the "
        f"128 bytes of a row of {p.a_format} in shared memory. Use "
        f"tile_k={p.tile_k}, or None"
    )


_PAIR = "PTX: tcgen05.mma shapes"


@rule("the tile has the rows of its SMs", _PAIR, "tile_m", "cta_group")
def _rows(p: Plan) -> str | None:
    m, group = p.config.asked("tile_m"), p.config.asked("cta_group")
    if m == ROWS_OF_A_CTA * group or m == ROWS_OF_A_CTA // 2 * group:
        return None
    return (
        f"tile_m={m} with cta_group={group}: each SM has {ROWS_OF_A_CTA} rows, or half "
        "of them. Use "
        f"tile_m={ROWS_OF_A_CTA * group}"
    )


_HALF = ("tile_m", "cta_group", *FORMATS)
_CUT = "CUTLASS sm100_common.inl, sm100_make_blockscaled_2sm_trivial_tiled_mma"
rule("scaled MMAs of one SM have 128 rows", _PAIR, *_HALF)(half_rows.scaled_rows)
rule("64 rows of a pair's SM have no scales", _CUT, *_HALF)(half_rows.pair_scales)
rule("the epilogue reads every lane", THIS_KERNEL, *_HALF, gap=_TILE_GAP)(
    half_rows.half_lanes
)


@rule("a pair is in one cluster", "PTX: CTA pair", "cluster_m", "cta_group")
def _pair(p: Plan) -> str | None:
    m, group = p.config.asked("cluster_m"), p.config.asked("cta_group")
    if m % group == 0:
        return None
    return (
        f"cluster_m={m} with cta_group={group}: both CTAs of a pair are in one column "
        f"of a cluster. Use cluster_m={group}"
    )


_PORTABLE = 8


@rule("a cluster is portable", "CUDA guide: clusters", "cluster_m", "cluster_n")
def _portable(p: Plan) -> str | None:
    if p.cluster_size <= _PORTABLE:
        return None
    m, n, _ = p.cluster
    return (
        f"cluster_m={m}, cluster_n={n}: a cluster has at most {_PORTABLE} CTAs. Use "
        f"cluster_n={_PORTABLE // m}"
    )


def _wrong_parts(config: GemmConfig) -> Iterator[tuple[Rule, str]]:
    """Give a rule for each part of `config` that is something else."""
    for part in fields(GemmConfig):
        kind = type(getattr(GemmConfig(), part.name))
        value = getattr(config, part.name)
        if not isinstance(value, kind):
            name = f"{part.name} is a {kind.__name__}"
            said = f"{part.name}={shown(value)}: give an object of type {kind.__name__}"
            yield Rule(name, THIS_KERNEL, (part.name,), lambda _: None), said


def broken(config: GemmConfig) -> list[tuple[Rule, str]]:
    """Return every rule that `config` breaks, with what it says.

    A part of another type has no fields that could be judged, so that is said alone.
    """
    if parts := list(_wrong_parts(config)):
        return parts
    asked = Plan(config)
    refused: set[str] = set()
    found: list[tuple[Rule, str]] = []
    for each in RULES:
        if refused.isdisjoint(each.reads) and (said := each.check(asked)):
            found.append((each, said))
            # A field that is wrong by itself says nothing about the others.
            refused.update(each.reads if len(each.reads) == 1 else [each.name])
    return found


def check(config: GemmConfig) -> None:
    """Refuse what is not allowed.

    Raises
    ------
    ConfigError
        With every rule that is broken, one a line.
    """
    if found := broken(config):
        gap = next((each.gap for each, _ in found if each.gap), "")
        raise ConfigError("\n".join(said for _, said in found), gap=gap)
