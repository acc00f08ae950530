"""Part 6. tcgen05: scale copies, the block-scaled MMA, and commit.

One thread issues. The unit reads its operands when an operation lands, only through
descriptors, idesc and TMEM addresses (`mma_operands`). What comes after what is in
`tcgen05_issue`. Source: PTX, tcgen05 memory model.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from fp4ref.errors import DescriptorFault, NotModelled, ScaleFactorFault
from fp4ref.hardware.cluster import multicast_targets
from fp4ref.hardware.instr_descriptor import MMA_M as MMA_M
from fp4ref.hardware.instr_descriptor import InstrDescriptor as InstrDescriptor
from fp4ref.hardware.mma_operands import (
    SF_ROWS,
    Accumulator,
    Tile,
    read_scales,
    scale_range,
)
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05_issue import (
    accumulator_facts,
    before_cp,
    before_mma,
    check_cta_group,
    in_flight_of,
    issue,
    observe,
)
from fp4ref.hardware.tensor_memory import LANES, SF_ID_MASK, lane_column
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import mma_block_scaled, unpack_e2m1
from fp4ref.numerics.elements import legal_scale_formats
from fp4ref.trace import Range

MMA_K = 64
ROW_NBYTES = MMA_K // 2

CP_NBYTES = 512
"""Bytes that one ``32x128b.warpx4`` copies: 32 rows of 16."""

Kind = Literal["mxf4nvf4", "mxf4"]

_SCALE_VECTORS: dict[str, dict[str, int]] = {
    "mxf4nvf4": {"4X": 16, "block16": 16, "2X": 32, "block32": 32},
    "mxf4": {"2X": 32, "block32": 32, "": 32},
}
"""Elements per scale, for each legal kind and ``scale_vec`` / ``block`` modifier."""


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
    source = Tile.of(warp, desc, SF_ROWS, 16)
    target = warp.tmem.rectangle(0, LANES, column, 4)

    observe(warp, "tcgen05.cp", tiles=[source.addresses], reads=[], writes=target)

    def land() -> None:
        rows = source.read()
        warp.tmem.write(target, np.tile(rows, (4, 1)))

    issue(
        warp,
        "tcgen05.cp",
        {"taddr": taddr, "s_desc": s_desc, "shape": shape, "nbytes": CP_NBYTES},
        land,
        reads=[source.where],
        writes=[target],
        after=before_cp(warp, target),
    )


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
    a_smem, b_smem = SmemDescriptor.decode(a_desc), SmemDescriptor.decode(b_desc)
    d = Accumulator.of(warp, d_tmem, i.n, enable_input_d)
    sfa = scale_range(warp, sfa_tmem, i.m, "SFA")
    sfb = scale_range(warp, sfb_tmem, i.n, "SFB")
    _check_apart(warp, d.where, sfa, sfb, i.n)
    a = Tile.of(warp, a_smem, i.m, ROW_NBYTES)
    b = Tile.of(warp, b_smem, i.n, ROW_NBYTES)
    observe(
        warp,
        "tcgen05.mma",
        tiles=[a.addresses, b.addresses],
        reads=[sfa, sfb, *d.inputs],
        writes=d.where,
        facts=accumulator_facts(d_tmem, idesc),
    )
    operands: dict[str, Any] = {"d_tmem": d_tmem, "a_desc": a_desc, "b_desc": b_desc}
    operands |= {"idesc": idesc, "sfa_tmem": sfa_tmem, "sfb_tmem": sfb_tmem}
    operands |= {"enable_input_d": enable_input_d, "kind": kind, "scale_vec": scale_vec}
    issue(
        warp,
        "tcgen05.mma",
        operands,
        partial(_multiply, i, vec_size, a, b, sfa, sfb, d),
        reads=[a.where, b.where, sfa, sfb, *d.inputs],
        writes=[d.where],
        after=before_mma(warp, d.where, d_tmem, idesc),
    )


def _multiply(
    i: InstrDescriptor,
    vec_size: int,
    a: Tile,
    b: Tile,
    sfa: Range,
    sfb: Range,
    d: Accumulator,
) -> None:
    """Land an MMA: read what it names, multiply, write D."""
    codes_a, codes_b = unpack_e2m1(a.read()), unpack_e2m1(b.read())
    scales_a = read_scales(d.warp, sfa, i.m, i.a_sf_id, MMA_K // vec_size)
    scales_b = read_scales(d.warp, sfb, i.n, i.b_sf_id, MMA_K // vec_size)
    d.write(
        mma_block_scaled(
            codes_a ^ 8 if i.negate_a else codes_a,
            codes_b ^ 8 if i.negate_b else codes_b,
            scales_a,
            scales_b,
            d.read(),
            scale_format=i.scale_format,
            vec_size=vec_size,
        )
    )


def _check_apart(warp: Warp, d: Range, sfa: Range, sfb: Range, n: int) -> None:
    """Raise `ScaleFactorFault` for scales in the columns of the accumulator."""
    for scales, name in ((sfa, "SFA"), (sfb, "SFB")):
        if d.overlaps(scales):
            raise ScaleFactorFault(
                f"{name} lies in the columns of the accumulator",
                who=warp.who,
                where=warp.tmem.describe(max(d.start, scales.start)),
                rule="an MMA may not overwrite the scales it reads",
                remedy=f"keep {n} columns for D, and the scales outside them",
            )


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

    access = warp.machine.order.commit(warp.actor)
    for target in targets:
        access.signals(target.smem, offset)

    def land() -> None:
        for target in targets:
            phase = target.mbarriers.completed.get(offset, 0)
            access.complete(target.smem, offset, phase)
            unit = target.mbarriers
            unit.update(offset, arrivals=1, who="tcgen05.commit", issuer=warp.who)

    operands = {"mbar": mbar, "count": 1}
    if cta_mask is not None:
        operands["cta_mask"] = cta_mask
    issue(warp, "tcgen05.commit", operands, land, after=in_flight_of(warp))


def fence_before_thread_sync(warp: Warp) -> None:
    """``tcgen05.fence::before_thread_sync``: no instruction; an ordering mark."""
    warp.machine.order.fence_tensor(warp.actor, before=True)
    warp.record("tcgen05.fence::before_thread_sync", {})


def fence_after_thread_sync(warp: Warp) -> None:
    """``tcgen05.fence::after_thread_sync``: no instruction; an ordering mark."""
    warp.machine.order.fence_tensor(warp.actor, before=False)
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
    if i.scale_format not in legal_scale_formats(vec_size):
        raise DescriptorFault(
            f"{i.scale_format.name} scales with {vec_size} elements per scale",
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
