"""mma_unscaled: the tcgen05 MMAs without scale factors, of 16-bit to 4-bit elements.

And of the 32-bit elements of ``kind::tf32``, which our own kernel does not use. Order
is that of the block-scaled MMA in `tcgen05`; what differs is the instruction
descriptor, the arithmetic, and the operands (`mma_elements`). One instruction takes 32
bytes along K: 8 elements of 32 bits, 16 of 16, or 32 of 8, 6 and 4 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.collector import Usage
from fp4ref.hardware.cta_pair import participants
from fp4ref.hardware.data_path import DATA_PATHS
from fp4ref.hardware.disabled_lanes import PartialAccumulator, enabled_lanes
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor, UnscaledKind
from fp4ref.hardware.mma_elements import (
    ElementCells,
    ElementShare,
    ElementTile,
    read_codes,
)
from fp4ref.hardware.mma_operands import Accumulator, Shares, Tile
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05_issue import issue_mma, pass_collector, with_modifiers
from fp4ref.numerics import ElementFormat
from fp4ref.numerics.dot_unscaled_f16 import matmul_unscaled_f16
from fp4ref.numerics.formats import F32
from fp4ref.numerics.instruction import mma_unscaled


def mma(
    warp: Warp,
    d_tmem: int,
    a_desc: int,
    b_desc: int,
    idesc: int,
    enable_input_d: bool,
    *,
    kind: UnscaledKind = "f16",
    a_in_tmem: bool = False,
    disable_output_lanes: tuple[int, ...] = (),
    scale_input_d: int = 0,
    cta_group: int = 1,
    collector: Usage = "discard",
) -> None:
    """``tcgen05.mma.kind::{tf32,f16,f8f6f4}``.

    ``D = A * B + D / 2^scale_input_d``; without `enable_input_d`, D starts at +0. D is
    M x N of float32, or of float16 in low halves of cells.
    B is a tile in shared memory, A too or in TMEM. For a pair each CTA has M / 2 rows
    of A and D, and N / 2 rows of B.

    Parameters
    ----------
    a_in_tmem
        Whether `a_desc` is an address in TMEM.
    disable_output_lanes
        Bit masks of lanes that keep what they hold; none, or 32 lanes in each word.
    scale_input_d
        0 to 15, for the kinds tf32 and f16.
    collector
        What becomes of the collector buffer of A.

    Raises
    ------
    DescriptorFault, NotModelled, TmemAllocationFault
    MissingProxyFence, UninitialisedRead, CollectorFault
        At landing.
    """
    ctas = participants(warp, cta_group, "tcgen05.mma")
    _check_scale(warp, kind, scale_input_d)
    enabled = enabled_lanes(warp, disable_output_lanes, cta_group)
    i = UnscaledInstrDescriptor.decode(idesc, kind, cta_group)
    b_smem = SmemDescriptor.decode(b_desc)
    path = DATA_PATHS[i.m, cta_group]
    shares, tile = [], ElementTile.of_elements
    for cta in ctas:
        halves = i.d_format is ElementFormat.F16
        d = Accumulator.of(warp, d_tmem, i.n, enable_input_d, path, cta.tmem, halves)
        if enabled is not None:
            d = PartialAccumulator.without(d, enabled)
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
        shares.append(ElementShare(a, b, d))

    a_name = "a_tmem" if a_in_tmem else "a_desc"
    operands: dict[str, Any] = {"d_tmem": d_tmem, a_name: a_desc, "b_desc": b_desc}
    operands |= {"idesc": idesc, "enable_input_d": enable_input_d, "kind": kind}
    if scale_input_d:
        operands["scale_input_d"] = scale_input_d
    issue_mma(
        warp,
        with_modifiers(operands, cta_group, collector),
        Shares.of(shares),
        partial(_multiply, warp, i, shares, scale_input_d, collector),
    )


def _multiply(
    warp: Warp,
    i: UnscaledInstrDescriptor,
    shares: Sequence[ElementShare],
    scale_input_d: int,
    collector: Usage,
) -> None:
    """Land an MMA: read what it names, multiply, write D."""
    _accept_barriers(warp, *(tile for share in shares for tile in share.tiles))
    all_a, b = read_codes(shares, i.negate_a, i.negate_b)
    pass_collector(shares, all_a, i.negate_a, collector, warp.who)
    formats = {"a_format": i.a_format, "b_format": i.b_format}
    for share, a in zip(shares, all_a, strict=True):
        c: Any = _divided(warp, share.d, scale_input_d)
        multiply: Any = matmul_unscaled_f16 if share.d.halves else mma_unscaled
        share.d.write(multiply(a, b, c, **formats))


def _check_scale(warp: Warp, kind: str, scale_input_d: int) -> None:
    """Raise `DescriptorFault` for a scale that the kind does not take."""
    if scale_input_d and kind not in ("tf32", "f16"):
        raise DescriptorFault(
            f"tcgen05.mma.kind::{kind} with scale-input-d",
            who=warp.who,
            rule="scale-input-d is valid for .kind::tf32 and .kind::f16 [PTX: "
            "tcgen05.mma]",
            remedy="multiply D in the epilogue",
        )
    if not 0 <= scale_input_d <= 15:
        raise DescriptorFault(
            f"scale-input-d of {scale_input_d}",
            who=warp.who,
            rule="scale-input-d is 0 to 15 [PTX: tcgen05.mma]",
            remedy="divide in two steps",
        )


def _divided(warp: Warp, d: Accumulator, scale: int) -> F32 | None:
    """Return what D holds, divided by ``2^scale``.

    Raises
    ------
    NotModelled
        A quotient is not of D's type: how it enters the sum then, no text says.
    """
    c = d.read()
    if c is None or not scale:
        return c
    with np.errstate(under="ignore"):
        found: F32 = np.ldexp(c, -scale)
        back = np.ldexp(found, scale)
    if not np.array_equal(back, c, equal_nan=True):
        raise NotModelled(
            f"D divided by 2^{scale} where the quotient is no {c.dtype}",
            who=warp.who,
            where=d.place,
            rule="the quotient enters the sum as a number of D's type here",
            remedy="keep D large enough, above 2^-110 in float32",
            gap="mma-scale-input-d",
        )
    return found


def _accept_barriers(warp: Warp, *tiles: Tile) -> None:
    """Take a barrier for the missing proxy fence, and count that it was needed."""
    for tile in tiles:
        behind = tile.smem.is_behind_barrier(tile.where)
        if behind and warp.machine.allows(Advisory.BARRIER_FOR_PROXY_FENCE):
            tile.smem.accept_barriers(tile.where)
