"""Part 6. tcgen05: scale copies, the block-scaled MMA, and commit.

One thread issues. The unit reads its operands when an operation lands, only through
descriptors, idesc and TMEM addresses. Order that PTX promises within one thread: an MMA
comes after earlier copies and after earlier MMAs of the same shape and accumulator, a
commit after everything. Other MMAs run in order too, but relying on it is a fault. A
copy is *not* ordered after an earlier MMA; compiled kernels rely on it, so
``ordering="shipped"`` keeps all of a thread's work in order. Source: PTX, tcgen05
memory model.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import (
    DescriptorFault,
    NotModelled,
    ReadWhileInFlight,
    ScaleFactorFault,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.cluster import multicast_targets
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.instr_descriptor import MMA_M as MMA_M
from fp4ref.hardware.instr_descriptor import SHAPE_MASK
from fp4ref.hardware.instr_descriptor import InstrDescriptor as InstrDescriptor
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tmem import LANES, SF_ID_MASK, lane_column
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat, mma_block_scaled, unpack_e2m1
from fp4ref.trace import Bytes, Range

MMA_K = 64
ROW_NBYTES = MMA_K // 2
SF_ROWS = 32
"""Rows of a scale-factor column block: row r of a tile is in lane r % 32."""

CP_NBYTES = 512
"""Bytes that one ``32x128b.warpx4`` copies: 32 rows of 16."""

Kind = Literal["mxf4nvf4", "mxf4"]

_SCALE_VECTORS: dict[str, dict[str, int]] = {
    "mxf4nvf4": {"4X": 16, "block16": 16, "2X": 32, "block32": 32},
    "mxf4": {"2X": 32, "block32": 32, "": 32},
}
"""Elements per scale, for each legal kind and ``scale_vec`` / ``block`` modifier."""


def _in_flight(warp: Warp) -> list[AsyncOp]:
    """Return the warp's tcgen05 work that has not landed, oldest first."""
    queue = [op for op in warp.tcgen05_queue if not op.landed]
    warp.tcgen05_queue = queue
    return list(queue)


def _before_cp(warp: Warp, target: Range) -> list[AsyncOp]:
    """Return what a copy to `target` comes after."""
    if warp.machine.ordering == "ptx":
        return []
    earlier = _in_flight(warp)
    if any(r.overlaps(target) for op in earlier for r in op.reads):
        warp.machine.advise(Advisory.COPY_OVER_MMA)
    return earlier


def before_mma(warp: Warp, d: Range, d_tmem: int, idesc: int) -> list[AsyncOp]:
    """Return what an MMA into `d` comes after.

    Raises
    ------
    ReadWhileInFlight
        An MMA of another shape or start still uses columns of the accumulator.
    """
    earlier = _in_flight(warp)
    for op in earlier:
        if op.operation != "tcgen05.mma" or warp.machine.ordering == "shipped":
            continue
        same_shape = (op.operands["idesc"] ^ idesc) & SHAPE_MASK == 0
        same = op.operands["d_tmem"] == d_tmem and same_shape
        if not same and op.writes[0].overlaps(d):
            raise ReadWhileInFlight(
                "tcgen05.mma into columns that an MMA in flight of another shape or "
                "start writes",
                who=warp.who,
                where=warp.tmem.describe(max(d.start, op.writes[0].start)),
                rule="MMAs are ordered only with the same shape and accumulator [PTX: "
                "tcgen05 memory model]",
                remedy="wait for the commit of the earlier MMAs",
            )
    return earlier


def check_cta_group(warp: Warp, cta_group: int, what: str) -> None:
    """Raise `NotModelled` for a pair of CTAs."""
    if cta_group != 1:
        raise NotModelled(
            f"{what}.cta_group::{cta_group}",
            who=warp.who,
            remedy="use cta_group::1",
            gap="cta-pair",
        )


def cp(
    warp: Warp,
    taddr: int,
    s_desc: int,
    shape: str = "32x128b.warpx4",
    cta_group: int = 1,
) -> None:
    """``tcgen05.cp.cta_group::1.32x128b.warpx4 [taddr], s_desc``. Frame 6.6.4.

    Copies 32 rows of 16 bytes from shared memory into 4 columns. Row r lands in lanes
    r, r + 32, r + 64 and r + 96.

    Raises
    ------
    DescriptorFault, NotModelled, TmemAllocationFault, MissingProxyFence
    """
    check_cta_group(warp, cta_group, "tcgen05.cp")
    desc = SmemDescriptor.decode(s_desc)
    if shape != "32x128b.warpx4" or desc.swizzle is not SwizzleMode.NONE:
        raise NotModelled(
            f"tcgen05.cp.{shape} with the {desc.swizzle.name} layout",
            who=warp.who,
            remedy="copy scale factors with 32x128b.warpx4 from unswizzled rows",
            gap="tcgen05-cp-shapes",
        )
    lane, column = lane_column(taddr & ~SF_ID_MASK)
    if lane:
        raise DescriptorFault(
            f"tcgen05.cp to lane {lane}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="warpx4 writes all four lane quarters from lane 0",
            remedy="clear the lane field",
        )
    warp.tmem.check_allocated(column, 4, warp.who)
    source = tile_range(warp, desc, SF_ROWS, 16)
    target = warp.tmem.rectangle(0, LANES, column, 4)

    def land() -> None:
        rows = read_tile(warp, desc, source, SF_ROWS, 16)
        warp.tmem.write(target, np.tile(rows, (4, 1)))

    op = warp.issue(
        "tcgen05.cp",
        {"taddr": taddr, "s_desc": s_desc, "shape": shape, "nbytes": CP_NBYTES},
        land,
        unit="tcgen05",
        reads=[source],
        writes=[target],
        after=_before_cp(warp, target),
    )
    warp.tcgen05_queue.append(op)


def mma(
    warp: Warp,
    d_tmem: int,
    a_desc: int,
    b_desc: int,
    idesc: int,
    sfa_tmem: int,
    sfb_tmem: int,
    enable_input_d: bool,
    *,
    kind: Kind = "mxf4nvf4",
    scale_vec: str = "4X",
    cta_group: int = 1,
) -> None:
    """``tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale``. Frame 6.6.9.

    ``D = (A * SFA) * (B * SFB) + D``; without `enable_input_d`, D starts at +0. D is
    128 lanes x N columns of float32.

    Parameters
    ----------
    scale_vec
        ``"4X"`` / ``"block16"``, ``"2X"`` / ``"block32"``.

    Raises
    ------
    DescriptorFault
        Kind, scale vector, scale type or scale-factor id do not go together.
    ScaleFactorFault
        At landing: the four lane quarters hold different scales.
    NotModelled, TmemAllocationFault, MissingProxyFence, UninitialisedRead
    """
    check_cta_group(warp, cta_group, "tcgen05.mma")
    i = InstrDescriptor.decode(idesc)
    vec_size = _check_scales(warp, i, kind, scale_vec)
    a, b = SmemDescriptor.decode(a_desc), SmemDescriptor.decode(b_desc)
    d = accumulator(warp, d_tmem, i.n)
    sfa = _scale_range(warp, sfa_tmem, i.m, "SFA")
    sfb = _scale_range(warp, sfb_tmem, i.n, "SFB")
    for scales, name in ((sfa, "SFA"), (sfb, "SFB")):
        if d.overlaps(scales):
            raise ScaleFactorFault(
                f"{name} lies in the columns of the accumulator",
                who=warp.who,
                where=warp.tmem.describe(max(d.start, scales.start)),
                rule="an MMA may not overwrite the scales it reads",
                remedy=f"keep {i.n} columns for D, and the scales outside them",
            )
    a_tile = tile_range(warp, a, i.m, ROW_NBYTES)
    b_tile = tile_range(warp, b, i.n, ROW_NBYTES)

    def land() -> None:
        codes_a = unpack_e2m1(read_tile(warp, a, a_tile, i.m, ROW_NBYTES))
        codes_b = unpack_e2m1(read_tile(warp, b, b_tile, i.n, ROW_NBYTES))
        scales_a = _read_scales(warp, sfa, i.m, i.a_sf_id, MMA_K // vec_size)
        scales_b = _read_scales(warp, sfb, i.n, i.b_sf_id, MMA_K // vec_size)
        c = warp.tmem.read(d).view(np.float32) if enable_input_d else None
        result = mma_block_scaled(
            codes_a ^ 8 if i.negate_a else codes_a,
            codes_b ^ 8 if i.negate_b else codes_b,
            scales_a,
            scales_b,
            c,
            scale_format=i.scale_format,
            vec_size=vec_size,
        )
        warp.tmem.write(d, result.view(np.uint8))

    op = warp.issue(
        "tcgen05.mma",
        {
            "d_tmem": d_tmem,
            "a_desc": a_desc,
            "b_desc": b_desc,
            "idesc": idesc,
            "sfa_tmem": sfa_tmem,
            "sfb_tmem": sfb_tmem,
            "enable_input_d": enable_input_d,
            "kind": kind,
            "scale_vec": scale_vec,
        },
        land,
        unit="tcgen05",
        reads=[a_tile, b_tile, sfa, sfb, *([d] if enable_input_d else [])],
        writes=[d],
        after=before_mma(warp, d, d_tmem, idesc),
    )
    warp.tcgen05_queue.append(op)


def commit(
    warp: Warp, mbar: int, cta_mask: int | None = None, cta_group: int = 1
) -> None:
    """``tcgen05.commit...mbarrier::arrive::one.shared::cluster.b64``. Frames 6.7, 6.10.

    One arrival on `mbar` when all earlier cp and mma of this warp are complete; with
    `cta_mask`, on the same offset in every CTA of the mask.
    """
    check_cta_group(warp, cta_group, "tcgen05.commit")
    cta, offset = warp.cta.resolve_shared(mbar)
    targets = [cta] if cta_mask is None else multicast_targets(warp, cta_mask)

    def land() -> None:
        for target in targets:
            target.mbarriers.update(offset, arrivals=1, who="tcgen05.commit")

    operands = {"mbar": mbar, "count": 1}
    if cta_mask is not None:
        operands["cta_mask"] = cta_mask
    op = warp.issue(
        "tcgen05.commit", operands, land, unit="tcgen05", after=_in_flight(warp)
    )
    warp.tcgen05_queue.append(op)


def fence_before_thread_sync(warp: Warp) -> None:
    """``tcgen05.fence::before_thread_sync``: no instruction; an ordering mark."""
    warp.record("tcgen05.fence::before_thread_sync", {})


def fence_after_thread_sync(warp: Warp) -> None:
    """``tcgen05.fence::after_thread_sync``: no instruction; an ordering mark."""
    warp.record("tcgen05.fence::after_thread_sync", {})


def _check_scales(warp: Warp, i: InstrDescriptor, kind: str, scale_vec: str) -> int:
    """Return elements per scale; raise if the modifiers do not go together."""
    legal = _SCALE_VECTORS.get(kind)
    if legal is None:
        raise NotModelled(
            f"tcgen05.mma.kind::{kind}.block_scale",
            who=warp.who,
            remedy="use mxf4nvf4 or mxf4",
            gap="mma-kinds",
        )
    if scale_vec not in legal:
        raise DescriptorFault(
            f"kind::{kind} with scale_vec {scale_vec or '(none)'}",
            who=warp.who,
            rule=f"kind::{kind} takes {', '.join(v for v in legal if v)}",
            remedy="change the kind or the modifier",
        )
    vec_size = legal[scale_vec]
    ids = {0} if vec_size == 16 else {0, 2}
    if vec_size == 32 and i.scale_format is not ScaleFormat.UE8M0:
        raise DescriptorFault(
            "UE4M3 scales with 32 elements per scale",
            who=warp.who,
            rule="2X / block32 takes UE8M0 scales [PTX: scale types]",
            remedy="set bit 23 of idesc",
        )
    if i.a_sf_id not in ids or i.b_sf_id not in ids:
        raise DescriptorFault(
            f"scale-factor ids {i.a_sf_id} and {i.b_sf_id}",
            who=warp.who,
            rule=f"with {vec_size} elements per scale the id is one of {sorted(ids)}",
            remedy="4X uses all four bytes of a word, 2X one half of it",
        )
    return vec_size


def accumulator(warp: Warp, d_tmem: int, n: int) -> Range:
    """Cells of an accumulator: 128 lanes x `n` columns of float32.

    Raises
    ------
    DescriptorFault, TmemAllocationFault
    """
    lane, column = lane_column(d_tmem)
    if lane:
        raise DescriptorFault(
            f"accumulator at lane {lane}",
            who=warp.who,
            where=f"taddr {d_tmem:#010x}",
            rule="an accumulator with M=128 starts at lane 0",
            remedy="clear the lane field",
        )
    warp.tmem.check_allocated(column, n, warp.who)
    return warp.tmem.rectangle(0, LANES, column, n)


def tile_range(warp: Warp, desc: SmemDescriptor, rows: int, row_nbytes: int) -> Range:
    """Bounding range of a K-major tile, for conflicts, bounds and the trace."""
    start = desc.start
    if desc.swizzle is SwizzleMode.NONE:
        pitch, row = 16, (row_nbytes // 16 - 1) * desc.leading_nbytes + 16
    else:
        pitch = row = desc.swizzle.span
        into_row = start % row
        what = f"a {desc.swizzle.name} tile of {row_nbytes}-byte rows at {start:#x}"
        if into_row + row_nbytes > row:
            raise DescriptorFault(
                what,
                who=warp.who,
                where=warp.smem.describe(start),
                rule=f"a row stays inside its {row} bytes",
                remedy="align the stage; advance along K inside the row only",
            )
        if at := start % desc.swizzle.alignment // row:
            raise NotModelled(
                f"{what} starts at row {at} of the swizzle pattern",
                who=warp.who,
                where=warp.smem.describe(start),
                rule=f"the pattern starts on {desc.swizzle.alignment} bytes; a tile "
                "that means to start there and does not is read wrong",
                remedy=f"align the stage to {desc.swizzle.alignment} bytes",
                gap="descriptor-row-start",
            )
        start -= into_row
    last_group, last_row = divmod(rows - 1, 8)
    nbytes = last_group * desc.stride_nbytes + last_row * pitch + row
    where = Range(warp.smem.space, start, nbytes)
    warp.smem.check_bounds(where)
    return where


def read_tile(
    warp: Warp, desc: SmemDescriptor, where: Range, rows: int, row_nbytes: int
) -> Bytes:
    """Gather a K-major tile, shape (rows, row_nbytes)."""
    return warp.smem.gather_async(desc.offsets(rows, row_nbytes), where)


def _scale_range(warp: Warp, taddr: int, rows: int, name: str) -> Range:
    """Cells that hold the scales of `rows` rows, one 32-bit word for each row.

    An odd column counts as an advisory: PTX does not forbid it.
    """
    lane, column = lane_column(taddr & ~SF_ID_MASK)
    if lane:
        raise DescriptorFault(
            f"{name} at lane {lane}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="scales are in all four lane quarters, addressed from lane 0",
            remedy="clear the lane field",
        )
    columns = -(-rows // SF_ROWS)
    warp.tmem.check_allocated(column, columns, warp.who)
    if column % 2:
        warp.machine.advise(Advisory.ODD_SCALE_COLUMN)
    return warp.tmem.rectangle(0, LANES, column, columns)


def _read_scales(
    warp: Warp, where: Range, rows: int, sf_id: int, count: int
) -> NDArray[np.uint8]:
    """Scale codes of each row, shape (rows, count); lane r % 32, column r // 32."""
    columns = where.nbytes // 4
    cells = warp.tmem.read(where).reshape(4, SF_ROWS, columns, 4)
    if (cells != cells[:1]).any():
        quarter, lane, column, byte = np.argwhere(cells != cells[:1])[0]
        raise ScaleFactorFault(
            f"scale byte {byte} of row {column * SF_ROWS + lane} is "
            f"{cells[0, lane, column, byte]:#04x} in lane {lane} and "
            f"{cells[quarter, lane, column, byte]:#04x} in lane "
            f"{lane + SF_ROWS * quarter}",
            who=warp.who,
            where=warp.tmem.describe(where.start),
            rule="scales are the same in all four lane quarters [PTX: scale factors]",
            remedy="copy with 32x128b.warpx4",
        )
    by_row = cells[0].transpose(1, 0, 2).reshape(columns * SF_ROWS, 4)
    return np.ascontiguousarray(by_row[:rows, sf_id : sf_id + count])
