"""recorded_plan: what the kernel of a trace was planned to be, read from its `meta`.

Who looks at a trace takes tile, stages and memory maps from here: not from constants of
one kernel, and not by planning again. Names are those of `fp4ref.gemm.plan.Plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fp4ref.errors import TraceError

NO_PLAN = (
    "this trace does not hold its kernel's plan (tile, stages, memory maps): it is of "
    "another kernel, or from an older release; make one with fp4ref.run(...)"
)


class SmemPart(NamedTuple):
    """One stage of a buffer; `offset` counts from the CTA's shared base."""

    name: str
    stage: int
    offset: int
    nbytes: int


class TmemPart(NamedTuple):
    """Neighbouring TMEM columns of one use."""

    name: str
    column: int
    columns: int
    kind: str


@dataclass(frozen=True)
class RecordedPlan:
    """The values that observers read.

    Attributes
    ----------
    roles
        Role of each warp, by the agent's name: ``roles["warp0"] == "MMA"``.
    smem, tmem
        What lies where: every stage of the tiles, and every part of TMEM.
    smem_end, tmem_end
        Bytes and columns in all.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    k_blocks: int
    subtiles: int
    subtile_n: int
    sf_vec_size: int
    sf_rows_b: int
    scale_copies: int
    mainloop_stages: int
    d_format: str
    sfd_format: str
    tile_scheduler: str
    operand_swizzle: str
    roles: Mapping[str, str]
    smem: tuple[SmemPart, ...]
    smem_end: int
    tmem: tuple[TmemPart, ...]
    tmem_end: int

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> RecordedPlan | None:
        """Read the plan in a trace's `meta`; None if there is none.

        Raises
        ------
        TraceError
            A value is missing or of another type.
        """
        found = meta.get("plan")
        if found is None:
            return None
        try:
            return cls(
                **{name: _typed(found, name, int) for name in _NUMBERS},
                **{name: _typed(found, name, str) for name in _WORDS},
                roles=dict(_roles(found["warps"])),
                smem=tuple(_smem(found)),
                smem_end=_typed(found["smem"], "end", int),
                tmem=tuple(_tmem(found)),
                tmem_end=_typed(found["tmem"], "end", int),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TraceError(
                "the plan in this trace is not one that this release reads "
                f"({type(error).__name__}: {error}); make the trace again"
            ) from None

    @classmethod
    def required(cls, meta: Mapping[str, Any]) -> RecordedPlan:
        """Read the plan in a trace's `meta`.

        Raises
        ------
        TraceError
            There is none, or it cannot be read.
        """
        found = cls.of(meta)
        if found is None:
            raise TraceError(NO_PLAN)
        return found

    def k_tiles(self, k: int) -> int:
        """Mainloop iterations of a tile."""
        return -(-k // self.tile_k)

    @property
    def mma_k(self) -> int:
        """K of one MMA."""
        return self.tile_k // self.k_blocks

    def warps_of(self, role: str) -> int:
        """Count the warps of a role."""
        return list(self.roles.values()).count(role)


_NUMBERS = (
    "tile_m",
    "tile_n",
    "tile_k",
    "k_blocks",
    "subtiles",
    "subtile_n",
    "sf_vec_size",
    "sf_rows_b",
    "scale_copies",
    "mainloop_stages",
)
_WORDS = ("d_format", "sfd_format", "tile_scheduler", "operand_swizzle")
_TILES = ("d_subtile", "c_subtile", "a", "b", "sfa", "sfb")
"""Buffers that hold parts of matrices."""


def _typed(values: Any, name: str, kind: type) -> Any:
    value = values[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r:.80}")
    return value


def _roles(warps: Any) -> list[tuple[str, str]]:
    return [
        (f"warp{each['first'] + i}", _typed(each, "role", str))
        for each in warps
        for i in range(each["count"])
    ]


def _smem(plan: Any) -> list[SmemPart]:
    offsets = plan["smem"]["offsets"]
    return [
        SmemPart(
            _typed(each, "label", str),
            stage,
            offsets[each["name"]] + stage * _typed(each, "nbytes", int),
            each["nbytes"],
        )
        for each in plan["buffers"]
        if each["name"] in _TILES and each["nbytes"]
        for stage in range(each["stages"])
    ]


def _tmem(plan: Any) -> list[TmemPart]:
    """Name accumulators, then scales, as the kernel numbers its buffers."""
    scales = plan["k_blocks"]
    rows = (
        ("D", "accumulators", plan["tile_n"], "accumulator"),
        ("SFA", "sfa", scales * plan["sfa_columns"], "sfa"),
        ("SFB", "sfb", scales * plan["sfb_columns"], "sfb"),
    )
    return [
        TmemPart(f"{name} {i}", column, columns, kind)
        for name, place, columns, kind in rows
        for i, column in enumerate(plan["tmem"][place])
    ]
