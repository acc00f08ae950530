"""mma_unscaled: the tcgen05 MMAs without scale factors, of FP16, BF16 and FP8 elements.

Operands and order are those of the block-scaled MMA in `tcgen05`; what differs is the
instruction descriptor and the arithmetic. One instruction takes 32 bytes along K:
16 elements of 16 bits, or 32 of 8 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import NotModelled
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor, UnscaledKind
from fp4ref.hardware.mma_operands import Accumulator, Tile
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05_issue import (
    accumulator_facts,
    before_mma,
    check_cta_group,
    issue,
    observe,
)
from fp4ref.numerics import ElementFormat, matmul_unscaled
from fp4ref.trace import Bytes

ROW_NBYTES = 32
"""Bytes of one row that one instruction reads."""


def mma(
    warp: Warp,
    d_tmem: int,
    a_desc: int,
    b_desc: int,
    idesc: int,
    enable_input_d: bool,
    *,
    kind: UnscaledKind = "f16",
    disable_output_lanes: tuple[int, ...] = (),
    cta_group: int = 1,
) -> None:
    """``tcgen05.mma.cta_group::1.kind::{f16,f8f6f4}``.

    ``D = A * B + D``; without `enable_input_d`, D starts at +0. D is 128 lanes x N
    columns of float32. A and B are K-major tiles in shared memory.

    Parameters
    ----------
    disable_output_lanes
        Bit masks of lanes that are not written; only zeros are modelled.

    Raises
    ------
    DescriptorFault, NotModelled, TmemAllocationFault
    MissingProxyFence, UninitialisedRead
        At landing.
    """
    check_cta_group(warp, cta_group, "tcgen05.mma")
    _check_output_lanes(warp, disable_output_lanes)
    i = UnscaledInstrDescriptor.decode(idesc, kind)
    a_smem, b_smem = SmemDescriptor.decode(a_desc), SmemDescriptor.decode(b_desc)
    d = Accumulator.of(warp, d_tmem, i.n, enable_input_d)
    a = Tile.of(warp, a_smem, i.m, ROW_NBYTES)
    b = Tile.of(warp, b_smem, i.n, ROW_NBYTES)

    observe(
        warp,
        "tcgen05.mma",
        tiles=[a.addresses, b.addresses],
        reads=d.inputs,
        writes=d.where,
        facts=accumulator_facts(d_tmem, idesc),
    )

    def land() -> None:
        _accept_barriers(warp, a, b)
        codes_a, codes_b = _codes(a.read(), i.a_format), _codes(b.read(), i.b_format)
        d.write(
            matmul_unscaled(
                codes_a ^ i.a_format.element.sign if i.negate_a else codes_a,
                codes_b ^ i.b_format.element.sign if i.negate_b else codes_b,
                d.read(),
                a_format=i.a_format,
                b_format=i.b_format,
            )
        )

    operands: dict[str, Any] = {"d_tmem": d_tmem, "a_desc": a_desc, "b_desc": b_desc}
    operands |= {"idesc": idesc, "enable_input_d": enable_input_d, "kind": kind}
    issue(
        warp,
        "tcgen05.mma",
        operands,
        land,
        reads=[a.where, b.where, *d.inputs],
        writes=[d.where],
        after=before_mma(warp, d.where, d_tmem, idesc),
    )


def _check_output_lanes(warp: Warp, disabled: tuple[int, ...]) -> None:
    """Raise `NotModelled` for lanes of D that are not to be written."""
    if any(disabled):
        raise NotModelled(
            "tcgen05.mma with disable-output-lane",
            who=warp.who,
            rule="this machine writes all 128 lanes of D",
            remedy="pass a vector of zeros",
            gap="mma-disable-output-lane",
        )


def _accept_barriers(warp: Warp, *tiles: Tile) -> None:
    """Take a barrier for the missing proxy fence, and count that it was needed."""
    for tile in tiles:
        behind = warp.smem.is_behind_barrier(tile.where)
        if behind and warp.machine.allows(Advisory.BARRIER_FOR_PROXY_FENCE):
            warp.smem.accept_barriers(tile.where)


def _codes(rows: Bytes, format: ElementFormat) -> NDArray[np.integer]:
    """Elements of a tile: bytes, or little-endian pairs of them."""
    return np.ascontiguousarray(rows).view(format.element.code_dtype)
