"""recorded_plan: what the kernel of a trace was planned to be, read from its `meta`.

Who looks at a trace takes tile, stages and memory maps from here: not from constants of
one kernel, and not by planning again. Names are those of `fp4ref.gemm.plan.Plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
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
                **_scalars(found),
                roles=dict(_roles(found["warps"])),
                smem=tuple(_smem(found)),
                smem_end=_number(found["smem"], "end"),
                tmem=tuple(_tmem(found)),
                tmem_end=_number(found["tmem"], "end"),
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


def is_m_major(meta: Mapping[str, Any]) -> bool:
    """Whether C, D and a tree's tensors lie in rows of M; other kernels have none.

    Of their coordinates the first is then that of M, and the second that of N.
    """
    return bool(_chosen(meta, "epilogue", "store") == "transposed")


def has_lanes_of_n(meta: Mapping[str, Any]) -> bool:
    """Whether the lanes of an accumulator are columns of D: B was multiplied by A."""
    return _chosen(meta, "operands", "swap_ab") is True


def splits_of(meta: Mapping[str, Any]) -> int:
    """In how many parts K is summed, each by a work tile of its own."""
    return int(_chosen(meta, "tiles", "splits") or 1)


def _chosen(meta: Mapping[str, Any], part: str, name: str) -> Any:
    """Return a field of the configuration in a trace's `meta`; None if not there."""
    try:
        return meta["config"][part][name]
    except (LookupError, TypeError):
        return None


_TILES = ("d_subtile", "c_subtile", "a", "b", "sfa", "sfb")
"""Buffers that hold parts of matrices."""
_OF_SCALES = ("sf_vec_size", "sf_rows_b", "scale_copies")
"""What is 0 for operands without scales."""
MOST = 1024
"""Warps of a role, or stages of a buffer: more than any CTA has."""


def _scalars(found: Any) -> dict[str, Any]:
    """Return the numbers and words, by the names and types of the class."""
    readers: dict[Any, Callable[[Any, str], Any]] = {"int": _number, "str": _word}
    return {
        each.name: _number(found, each.name, 0)
        if each.name in _OF_SCALES
        else readers[each.type](found, each.name)
        for each in fields(RecordedPlan)
        if each.type in readers and not each.name.endswith("_end")
    }


def _number(values: Any, name: str, least: int = 1, most: int | None = None) -> int:
    value = values[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r:.80}")
    if most is not None and value > most:
        raise ValueError(f"{name} is {value!r:.80}, and {most} is the most")
    return value


def _word(values: Any, name: str) -> str:
    value = values[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.80}")
    return value


def _roles(warps: Any) -> list[tuple[str, str]]:
    return [
        (f"warp{_number(each, 'first', 0) + i}", _word(each, "role"))
        for each in warps
        for i in range(_number(each, "count", most=MOST))
    ]


def _smem(plan: Any) -> list[SmemPart]:
    """Return every stage, each inside the CTA's shared memory."""
    end = _number(plan["smem"], "end")
    parts = []
    for each in plan["buffers"]:
        if each.get("lies_in"):
            continue
        name, nbytes = each["name"], _number(each, "nbytes", 0)
        if name not in _TILES or not nbytes:
            continue
        offset = _number(plan["smem"]["offsets"], name, 0)
        for stage in range(_number(each, "stages", 0, MOST)):
            part = SmemPart(
                _word(each, "label"), stage, offset + stage * nbytes, nbytes
            )
            if part.offset + nbytes > end:
                raise ValueError(f"{part.name} {stage} lies beyond byte {end}")
            parts.append(part)
    return parts


def _tmem(plan: Any) -> list[TmemPart]:
    """Name accumulators, then scales, as the kernel numbers its buffers."""
    end, atoms = _number(plan["tmem"], "end"), _number(plan, "sf_atoms", 0)
    rows = [("D", "accumulators", _number(plan, "tile_n"), "accumulator")]
    if atoms:  # operands without scales have none in TMEM
        rows += [
            ("SFA", "sfa", atoms * _number(plan, "sfa_columns"), "sfa"),
            ("SFB", "sfb", atoms * _number(plan, "sfb_columns"), "sfb"),
        ]
    parts = [
        TmemPart(f"{name} {i}", column, columns, kind)
        for name, place, columns, kind in rows
        for i, column in enumerate(plan["tmem"][place])
    ]
    for part in parts:
        if not 0 <= part.column <= end - part.columns:
            raise ValueError(f"{part.name} lies beyond column {end}")
    return parts
