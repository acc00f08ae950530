"""scenes: what there is to show, each as a `Player`.

Every number in a scene comes from the package: layouts from `fp4ref.layout`, memory
maps from the configuration, bytes from the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import (
    require_array,
    require_choice,
    require_instance,
    require_integer,
    require_list,
    require_number,
)
from fp4ref.errors import DeadlockError, HardwareFault, InputError
from fp4ref.evidence.comparison import compare, hardware_events
from fp4ref.evidence.side_by_side import side_by_side
from fp4ref.execution.runs import Run
from fp4ref.gemm.config import TILE_K, TILE_M
from fp4ref.gemm.plan.descriptors import K_BLOCKS
from fp4ref.hardware.tcgen05 import SF_ROWS
from fp4ref.layout import (
    SwizzleMode,
    padded_shape,
    sf_nbytes,
    sf_offset,
    swizzled_offsets,
    tmem_scale_position,
)
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    dequantize_blocks,
    mma_block_scaled,
    quantize_blocks,
)
from fp4ref.trace import Trace
from fp4ref.viz.packet import Header, config_of, trace_packet
from fp4ref.viz.player import Player
from fp4ref.viz.strings import say
from fp4ref.viz.text import step_text, table_text

VIEWS = ("timeline", "barriers", "smem", "tmem", "scales", "mma", "tiles", "sides")
SF_VEC_SIZE = 16
PREVIEW = 32
"""Bytes of a hardware event that the side by side view shows."""


def play(
    run: Run | Trace,
    kernel: Run | None = None,
    *,
    view: str = "timeline",
    views: Sequence[str] | None = None,
    step: int = 0,
    sms: Iterable[int] = (0,),
    tiles: int = 2,
    title: str = "",
) -> Player:
    """Return the player of a run.

    Parameters
    ----------
    run
        A run with a trace, or a trace.
    kernel
        The compiled kernel's run of the same problem, for the view ``"sides"``.
    view
        The view shown first: ``"timeline"``, ``"barriers"``, ``"smem"``, ``"tmem"``,
        ``"scales"``, ``"mma"``, ``"tiles"`` or ``"sides"``.
    views
        The views that can be chosen; all that the trace has by default.
    step
        The step shown first.
    sms
        SMs whose memory is kept.
    tiles
        Tiles of each of these SMs whose bytes are kept.

    Raises
    ------
    InputError
        The run has no trace, a view is unknown or needs what was not passed, or a
        step or SM is not in the trace.
    """
    trace = _trace(run, "run")
    require_choice(view, "view", VIEWS)
    for name in _names(views):
        require_choice(name, "views", VIEWS)
    header, payload = trace_packet(trace, sms=_numbers("sms", sms), tiles=tiles)
    config = config_of(trace)
    if config:
        m, n, k = (int(trace.meta["shape"][name]) for name in "mnk")
        header["scales"] = {
            "SFA": scale_places(TILE_M, TILE_K, rows_in_all=m, k_in_all=k),
            "SFB": scale_places(
                TILE_M, TILE_K, rows_in_all=min(n, config.tile_n), k_in_all=k
            ),
        }
    if kernel is not None:
        if not isinstance(run, Run) or not isinstance(kernel, Run):
            raise InputError(
                "run, kernel: the view 'sides' compares two runs; pass both as Run"
            )
        header["sides"] = _sides(run, kernel)
    elif view == "sides":
        raise InputError(
            "kernel: the view 'sides' needs the kernel's run: play(run, kernel_run, "
            "view='sides') with kernel_run = fp4ref.run(..., backend='ptx')"
        )
    there = available(header)
    chosen = there if views is None else [n for n in there if n in _names(views)]
    if not chosen:
        raise InputError(
            f"views={views!r}: none of them is there; this trace has {', '.join(there)}"
        )
    if view not in chosen:
        if view != "timeline":
            raise InputError(
                f"view: {view!r} is not among the views: {', '.join(chosen)}"
            )
        view = chosen[0]
    header["title"] = str(title)
    return Player(
        header,
        payload,
        steps=len(trace),
        step=step,
        view=view,
        views=chosen,
        text=lambda at, name: step_text(trace, at, name),
    )


def available(header: Header) -> list[str]:
    """Return the views that a header has something for."""
    tables, maps = header.get("tables", {}), header.get("maps", {})
    operations = tables.get("operation", ())
    spaces = header.get("spaces", {})
    there = {
        "timeline": bool(operations),
        "barriers": bool(tables.get("barrier")),
        "smem": bool(maps.get("smem")) and any(s.startswith("smem") for s in spaces),
        "tmem": any(s.startswith("tmem") for s in spaces),
        "scales": "scales" in header,
        "mma": "tcgen05.mma" in operations,
        "tiles": any(o.startswith("tile_scheduler") for o in operations)
        and "shape" in header.get("meta", {}),
        "sides": "sides" in header,
        "fault": "fault" in header,
    }
    return [name for name, has in there.items() if has]


def _names(views: object) -> list[Any]:
    return [] if views is None else require_list(views, "views", "names")


def _numbers(name: str, values: object) -> list[int]:
    listed = require_list(values, name, "whole numbers")
    return [require_integer(value, name) for value in listed]


def _trace(run: object, name: str) -> Trace:
    if not isinstance(run, Run):
        return require_instance(run, name, Trace, "Or the Run that fp4ref.run returns")
    if run.trace is None:
        raise InputError(f"{name} has no trace; call run(..., trace=True)")
    return run.trace


def _sides(run: Run, kernel: Run) -> Header:
    """Pair the hardware events of both runs, with the first bytes of each."""
    trace, other = _trace(run, "run"), _trace(kernel, "kernel")
    mine, theirs = hardware_events(trace), hardware_events(other)
    pairs = []
    for pair in side_by_side(run, kernel):
        a, b = mine.get(pair.key), theirs.get(pair.key)
        x = a.data.ravel() if a else np.empty(0, np.uint8)
        y = b.data.ravel() if b else np.empty(0, np.uint8)
        size = min(x.size, y.size)
        wrong = np.flatnonzero(x[:size] != y[:size])
        first = int(wrong[0]) if wrong.size else 0
        at = max(0, first - PREVIEW // 2) if pair.different else 0
        pairs.append(
            {
                "step": a.event.step if a else -1,
                "key": str(pair.key),
                "frame": pair.frames[-1] if pair.frames else "",
                "python": [pair.python.place, pair.python.text]
                if pair.python
                else ["", ""],
                "cuda": [pair.cuda.place, pair.cuda.text] if pair.cuda else ["", ""],
                "nbytes": pair.nbytes,
                "different": pair.different,
                "from": at,
                "mine": _preview(x, at),
                "theirs": _preview(y, at),
            }
        )
    found = compare(run, kernel)
    first_pair = next((i for i, p in enumerate(pairs) if p["different"]), -1)
    return {
        "pairs": pairs,
        "first": first_pair,
        "difference": str(found.first_difference or ""),
    }


def _preview(data: npt.NDArray[np.uint8], at: int) -> list[int | None]:
    part: list[int | None] = [int(v) for v in data[at : at + PREVIEW]]
    return part + [None] * (PREVIEW - len(part) if not part else 0)


def scale_places(rows: int, k: int, *, rows_in_all: int, k_in_all: int) -> Header:
    """Say where each scale of a tile lies: global, shared and tensor memory.

    Parameters
    ----------
    rows, k
        Of the tile; `k` elements have ``k / 16`` scales.
    rows_in_all, k_in_all
        Of the whole matrix. What a tile has beyond them lies in no global memory.
    """
    groups, in_all = k // SF_VEC_SIZE, -(-k_in_all // SF_VEC_SIZE)
    places: Header = {name: [] for name in ("gmem", "smem", "lane", "column", "byte")}
    columns = K_BLOCKS * rows // SF_ROWS
    _, padded = padded_shape(rows, in_all)
    for row in range(rows):
        for group in range(groups):
            block, s = divmod(group, groups // K_BLOCKS)
            where = tmem_scale_position(row, s)
            offset = sf_offset(row, group, in_all) if group < padded else None
            places["gmem"].append(offset)
            places["smem"].append(sf_offset(row, group, groups))
            places["lane"].append(where.lanes[0])
            places["column"].append(where.column + block * columns // K_BLOCKS)
            places["byte"].append(where.byte)
    return places | {
        "rows": rows,
        "groups": groups,
        "rows_in_all": min(rows, rows_in_all),
        "groups_in_all": in_all,
        "columns": columns,
        "nbytes": sf_nbytes(rows, groups),
    }


def scale_journey(rows: int = 128, k: int = 256) -> Player:
    """Return the scale journey alone: one scale byte in four places.

    Raises
    ------
    InputError
        A tile has 128 rows of scales and K is 256, as one mainloop stage holds.
    """
    for name, value, held in (("rows", rows, TILE_M), ("k", k, TILE_K)):
        if require_integer(value, name) != held:
            raise InputError(f"{name}: {value}; a stage holds {held}")
    places = scale_places(rows, k, rows_in_all=rows, k_in_all=k)
    header: Header = {"title": say("title.scales"), "scales": {"SFA": places}}

    def text(_: int, __: str) -> str:
        columns = say("text.scales.columns").split("|")
        names = ("gmem", "smem", "lane", "column", "byte")
        cells = [
            [
                row,
                group,
                *(places[name][row * places["groups"] + group] for name in names),
            ]
            for row in (0, 1, 31, 32, 127)
            for group in (0, 1, 4, 15)
        ]
        return table_text(say("text.scales", rows=rows, k=k), columns, cells)

    return Player(header, view="scales", text=text)


def swizzle(mode: str = "128B") -> Player:
    """Return the swizzle grid: where each 16-byte chunk of 8 rows goes.

    Raises
    ------
    InputError
        `mode` is not ``"none"``, ``"32B"``, ``"64B"`` or ``"128B"``.
    """
    named = {
        "none": SwizzleMode.NONE,
        "32B": SwizzleMode.B32,
        "64B": SwizzleMode.B64,
        "128B": SwizzleMode.B128,
    }
    require_choice(mode, "mode", tuple(named))
    modes = {}
    for name, found in named.items():
        span = found.span if found is not SwizzleMode.NONE else 128
        address = swizzled_offsets(found, 8, span)[:, ::16].tolist()
        modes[name] = {"span": span, "address": address}
    header: Header = {
        "title": say("title.swizzle"),
        "swizzle": {"mode": mode, "modes": modes},
    }

    def text(_: int, __: str) -> str:
        chosen = modes[mode]
        chunks = range(len(chosen["address"][0]))
        columns = [say("col.row"), *(say("swizzle.chunk", c=c) for c in chunks)]
        rows = [[i, *map(hex, row)] for i, row in enumerate(chosen["address"])]
        return table_text(say("text.swizzle", mode=mode), columns, rows)

    return Player(header, view="swizzle", text=text)


def quantiser(
    values: npt.ArrayLike | None = None,
    *,
    format: str = "nvfp4",
    global_scale: float = 1.0,
) -> Player:
    """Return the quantiser microscope: 16 values on the E2M1 line.

    Parameters
    ----------
    values
        16 numbers; a block with a tie and an outlier by default.
    format
        ``"nvfp4"`` (UE4M3 scales) or ``"ue8m0"`` (scales of example 72b's D).

    Raises
    ------
    InputError
        Not 16 finite numbers, another format, or a scale that is not positive.
    """
    formats = {"nvfp4": ScaleFormat.UE4M3, "ue8m0": ScaleFormat.UE8M0}
    require_choice(format, "format", tuple(formats))
    if values is None:
        values = np.linspace(-6, 6, 16).round(2)
        values[3], values[8] = 2.5, 0.25
    block = _floats("values", values)
    factor = require_number(global_scale, "global_scale")
    with np.errstate(over="ignore", under="ignore"):
        if not 0 < np.float32(factor) < np.inf:
            raise InputError(
                f"global_scale: {factor!r}; need a positive number that is finite in "
                "float32"
            )
    if block.size != SF_VEC_SIZE or not np.isfinite(block).all():
        raise InputError(
            f"values: {block.size} of them; a block is {SF_VEC_SIZE} finite numbers"
        )
    codes, scales = quantize_blocks(block, norm=factor, scale_format=formats[format])
    back = dequantize_blocks(codes, scales, scale_format=formats[format])
    header: Header = {
        "title": say("title.quantiser"),
        "quantiser": {
            "values": [float(v) for v in block],
            "norm": factor,
            "format": formats[format].name,
        },
    }

    def text(_: int, __: str) -> str:
        rows = [
            [i, f"{z:g}", f"{c:#x}", f"{decode_e2m1(c):g}", f"{b / factor:g}"]
            for i, (z, c, b) in enumerate(zip(block, codes, back, strict=True))
        ]
        return table_text(
            say(
                "text.quantiser",
                scale=f"{int(scales[0]):#04x}",
                format=formats[format].name,
                norm=f"{factor:g}",
            ),
            say("text.quantiser.columns").split("|"),
            rows,
        )

    return Player(header, view="quantiser", text=text)


def microscope(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sfa: npt.ArrayLike,
    sfb: npt.ArrayLike,
    c: float = 0.0,
) -> Player:
    """Return the MMA microscope of one output element of one instruction.

    Parameters
    ----------
    a, b : (64,)
        E2M1 codes.
    sfa, sfb : (4,)
        UE4M3 codes.
    c
        The accumulator before it, float32.

    Raises
    ------
    InputError
        A shape or a code is wrong.
    """
    parts = [_codes("a", a, 64), _codes("b", b, 64)]
    parts += [_codes("sfa", sfa, 4), _codes("sfb", sfb, 4)]
    start = _floats("c", require_number(c, "c")).reshape(1, 1)
    codes_a, codes_b, scales_a, scales_b = (v[None] for v in parts)
    d = mma_block_scaled(
        codes_a,
        codes_b,
        scales_a,
        scales_b,
        start,
        scale_format=ScaleFormat.UE4M3,
        vec_size=SF_VEC_SIZE,
    )
    header: Header = {
        "title": say("title.mma"),
        "microscope": {
            "a": parts[0].tolist(),
            "b": parts[1].tolist(),
            "sfa": parts[2].tolist(),
            "sfb": parts[3].tolist(),
            "c": int(start.view(np.uint32)[0, 0]),
        },
    }

    def text(_: int, __: str) -> str:
        x, y = (decode_e2m1(v).reshape(4, 16) for v in parts[:2])
        rows = [
            [
                g,
                f"{float((x[g] * y[g]).sum()):g}",
                f"{parts[2][g]:#04x}",
                f"{parts[3][g]:#04x}",
            ]
            for g in range(4)
        ]
        bits = int(d.view(np.uint32)[0, 0])
        return table_text(
            say(
                "text.mma",
                c=float(start[0, 0]),
                d=float(d[0, 0]),
                bits=f"{bits:#010x}",
            ),
            say("text.mma.columns").split("|"),
            rows,
        )

    return Player(header, view="mma", text=text)


def _floats(name: str, values: object) -> npt.NDArray[np.float32]:
    """Return float32 numbers, at least one."""
    array = require_array(values, name)
    if not array.size or array.dtype.kind == "c":
        raise InputError(f"{name}: {values!r:.60} is no list of numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float64).astype(np.float32).ravel()


def _codes(name: str, values: object, count: int) -> npt.NDArray[np.uint8]:
    """Return `count` codes of 0 to 255."""
    wide = _floats(name, values)
    if not ((wide >= 0) & (wide <= 255) & (wide == np.floor(wide))).all():
        raise InputError(f"{name}: codes are whole numbers of 0 to 255")
    if wide.size != count:
        raise InputError(f"{name}: {wide.size} codes; need {count}")
    return wide.astype(np.uint8)


def fault(error: HardwareFault) -> Player:
    """Return a picture of a fault: rule, remedy, wait-for graph, and the trace so far.

    Raises
    ------
    InputError
        `error` is no fault of the machine.
    """
    require_instance(error, "error", HardwareFault, "Pass what fp4ref.run raised")
    header: Header = {"title": ""}
    payload = b""
    steps = 0
    trace = error.trace
    if isinstance(trace, Trace) and trace.events:
        sms = {e.sm for e in trace}
        header, payload = trace_packet(trace, sms=[min(sms)])
        steps = len(trace)
    edges = error.edges if isinstance(error, DeadlockError) else []
    header |= {
        "title": "",
        "fault": {
            "type": type(error).__name__,
            **{
                k: getattr(error, k) for k in ("what", "who", "where", "rule", "remedy")
            },
            "edges": [list(edge) for edge in edges],
            "tmem": _tmem_place(error),
        },
    }
    return Player(
        header,
        payload,
        steps=steps,
        step=max(0, steps - 1),
        view="fault",
        views=available(header),
        text=lambda _, __: str(error),
    )


def _tmem_place(error: HardwareFault) -> Header | None:
    """Find the TMEM address that the fault names."""
    found = re.search(r"tmem\d+ lane (\d+) column (0x[0-9a-f]+)", error.where)
    if found:
        return {"lane": int(found[1]), "column": int(found[2], 16)}
    address = re.search(r"taddr (0x[0-9a-f]+)", error.where)
    if not address:
        return None
    lane, column = divmod(int(address[1], 16), 1 << 16)
    return {"lane": min(lane, 127), "column": min(column, 511)}
