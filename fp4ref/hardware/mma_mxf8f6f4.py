"""mma_mxf8f6f4: the tcgen05 MMA of 8-, 6- and 4-bit elements with UE8M0 scales.

One instruction takes 32 elements along K, which share a scale in each row of A and of
B: the byte of the row's word that the scale-factor id names. Order and scales are those
of the MMA in `tcgen05`, operands those of `mma_elements`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fp4ref.errors import DescriptorFault
from fp4ref.hardware.collector import Usage
from fp4ref.hardware.cta_pair import participants
from fp4ref.hardware.data_path import DATA_PATHS
from fp4ref.hardware.mma_elements import (
    ElementCells,
    ElementShare,
    ElementTile,
    read_codes,
)
from fp4ref.hardware.mma_operands import (
    Accumulator,
    Shares,
    find_scales,
    read_scales,
)
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05_issue import (
    check_apart,
    issue_mma,
    pass_collector,
    with_modifiers,
)
from fp4ref.numerics.instruction import mma_mxf8f6f4

KIND = "mxf8f6f4"

_SCALE_VECTORS = ("1X", "block32", "")


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
    scale_vec: str = "1X",
    a_in_tmem: bool = False,
    cta_group: int = 1,
    collector: Usage = "discard",
) -> None:
    """``tcgen05.mma.kind::mxf8f6f4.block_scale``.

    ``D = (A * SFA) * (B * SFB) + D``; without `enable_input_d`, D starts at +0. D is
    M x N of float32. For a pair each CTA has M / 2 rows of A with their scales and of
    D, N / 2 rows of B, and the scales of all N rows.

    Parameters
    ----------
    scale_vec
        ``"1X"``, ``"block32"`` or nothing, which are the same.
    a_in_tmem
        Whether `a_desc` is an address in TMEM.
    collector
        What becomes of the collector buffer of A.

    Raises
    ------
    DescriptorFault, NotModelled, TmemAllocationFault, ClusterFault
    ScaleFactorFault, MissingProxyFence, UninitialisedRead, CollectorFault
        At landing.
    """
    ctas = participants(warp, cta_group, "tcgen05.mma")
    _check_scale_vector(warp, scale_vec)
    i = Mxf8f6f4InstrDescriptor.decode(idesc, cta_group)
    b_smem = SmemDescriptor.decode(b_desc)
    path = DATA_PATHS[i.m, cta_group]
    shares, tile = [], ElementTile.of_elements
    for cta in ctas:
        d = Accumulator.of(warp, d_tmem, i.n, enable_input_d, path, cta.tmem)
        sfa = find_scales(warp, sfa_tmem, path.rows, "SFA", cta.tmem)
        parts = path.column_parts
        sfb = find_scales(warp, sfb_tmem, i.n // parts, "SFB", cta.tmem, parts)
        check_apart(warp, d, sfa, sfb)
        a: ElementTile | ElementCells
        if a_in_tmem:
            a = ElementCells.of_elements(
                warp, a_desc, d_tmem, path, cta.tmem, i.a_format
            )
        else:
            a_smem = SmemDescriptor.decode(a_desc)
            a = tile(warp, a_smem, path.rows, i.a_format, i.a_mn_major, cta.smem)
        rows = i.n // len(ctas)
        b = tile(warp, b_smem, rows, i.b_format, i.b_mn_major, cta.smem)
        shares.append(ElementShare(a, b, d, (sfa, sfb)))
    a_name = "a_tmem" if a_in_tmem else "a_desc"
    operands: dict[str, Any] = {"d_tmem": d_tmem, a_name: a_desc, "b_desc": b_desc}
    operands |= {"idesc": idesc, "sfa_tmem": sfa_tmem, "sfb_tmem": sfb_tmem}
    operands |= {"enable_input_d": enable_input_d, "kind": KIND, "scale_vec": scale_vec}
    issue_mma(
        warp,
        with_modifiers(operands, cta_group, collector),
        Shares.of(shares),
        partial(_multiply, warp.who, i, shares, collector),
    )


def _multiply(
    who: str,
    i: Mxf8f6f4InstrDescriptor,
    shares: Sequence[ElementShare],
    collector: Usage,
) -> None:
    """Land an MMA: read what it names, multiply, write D."""
    all_a, b = read_codes(shares, i.negate_a, i.negate_b)
    pass_collector(shares, all_a, i.negate_a, collector, who)
    for share, a in zip(shares, all_a, strict=True):
        sfa, sfb = share.scales
        share.d.write(
            mma_mxf8f6f4(
                a,
                b,
                read_scales(sfa, who, i.a_sf_id, 1),
                read_scales(sfb, who, i.b_sf_id, 1),
                share.d.read(),
                a_format=i.a_format,
                b_format=i.b_format,
            )
        )


def _check_scale_vector(warp: Warp, scale_vec: str) -> None:
    """Raise `DescriptorFault` for a modifier of other kinds."""
    if scale_vec not in _SCALE_VECTORS:
        raise DescriptorFault(
            f"kind::{KIND} with scale_vec {scale_vec}",
            who=warp.who,
            rule=f"kind::{KIND} takes 1X or block32",
            remedy="change the kind or the modifier",
        )
