"""Part 6. tcgen05: scale copies, the block-scaled MMA, and commit.

One thread issues. The unit reads its operands when an operation lands, only through
descriptors, idesc and TMEM addresses (`mma_operands`). What comes after what is in
`tcgen05_issue`. Source: PTX, tcgen05 memory model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.hardware.cluster import multicast_targets
from fp4ref.hardware.collector import Usage
from fp4ref.hardware.copy_shape import COPY_SHAPES, copied, copy_target
from fp4ref.hardware.cta_pair import participants, with_group
from fp4ref.hardware.data_path import DATA_PATHS
from fp4ref.hardware.instr_descriptor import MMA_M as MMA_M
from fp4ref.hardware.instr_descriptor import InstrDescriptor as InstrDescriptor
from fp4ref.hardware.mma_operands import (
    Accumulator,
    Share,
    Shares,
    Tile,
    find_scales,
    join_rows,
    read_scales,
)
from fp4ref.hardware.operand_cells import ROW_NBYTES, OperandCells
from fp4ref.hardware.sm import Cta, Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05_issue import (
    before_cp,
    check_apart,
    in_flight_of,
    issue,
    issue_mma,
    named_once,
    observe,
    pass_collector,
    with_modifiers,
)
from fp4ref.hardware.tensor_memory import TensorMemory, scale_lane_column
from fp4ref.numerics.elements import legal_scale_formats
from fp4ref.numerics.float32_step import PackedStep
from fp4ref.numerics.instruction import add_packed
from fp4ref.trace import Range

MMA_K = 64

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
    """``tcgen05.cp.SHAPE [taddr], s_desc``. Frame 6.6.4.

    Copies the rows of a K-major tile in shared memory to lanes of TMEM. With
    32x128b.warpx4, which is for scales, 32 rows of 16 bytes land in 4 columns, row r in
    lanes r, r + 32, r + 64 and r + 96; `copy_shape` has the others. For a pair each
    CTA's shared memory is copied to its own TMEM.

    Parameters
    ----------
    shape
        With its multicast, as in PTX.

    Raises
    ------
    DescriptorFault, NotModelled, TmemAllocationFault, MissingProxyFence, ClusterFault
    """
    ctas = participants(warp, cta_group, "tcgen05.cp")
    bits = "tcgen05.cp", taddr, s_desc, shape
    copies = named_once(ctas, bits, lambda: _copies(warp, ctas, taddr, s_desc, shape))
    targets = [each.target for each in copies]
    observe(
        warp,
        "tcgen05.cp",
        tiles=[each.source for each in copies],
        reads=[],
        writes=[(each.tmem, [each.target]) for each in copies],
    )

    def land() -> None:
        for source, tmem, target in copies:
            tmem.write(target, copied(shape, source.read()))

    nbytes = COPY_SHAPES[shape].nbytes
    operands = {"taddr": taddr, "s_desc": s_desc, "shape": shape, "nbytes": nbytes}
    issue(
        warp,
        "tcgen05.cp",
        with_group(operands, cta_group),
        land,
        reads=[each.source.where for each in copies],
        writes=targets,
        after=before_cp(warp, targets),
    )


class _Copy(NamedTuple):
    """What a copy does in one CTA."""

    source: Tile
    tmem: TensorMemory
    target: Range


def _copies(
    warp: Warp, ctas: Sequence[Cta], taddr: int, s_desc: int, shape: str
) -> list[_Copy]:
    """Name what ``tcgen05.cp`` reads and writes in each CTA."""
    desc = SmemDescriptor.decode(s_desc)
    if shape not in COPY_SHAPES:
        raise DescriptorFault(
            f"tcgen05.cp.{shape}",
            who=warp.who,
            rule=f"the shapes are {', '.join(COPY_SHAPES)} [PTX: tcgen05.cp]",
            remedy="use one of them",
        )
    form = COPY_SHAPES[shape]
    lane, column = scale_lane_column(taddr)
    if lane not in form.lane_choices:
        raise DescriptorFault(
            f"tcgen05.cp.{shape} to lane {lane}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="it writes a lane of each quarter, counted from the first quarter's"
            if len(form.lane_choices) > 1
            else "it writes all four lane quarters from lane 0",
            remedy="clear the lane field",
        )
    copies = []
    for cta in ctas:
        cta.tmem.check_allocated(column, form.columns, warp.who)
        source = Tile.of(warp, desc, form.rows, form.row_nbytes, cta.smem)
        target = copy_target(shape, cta.tmem, lane, column)
        copies.append(_Copy(source, cta.tmem, target))
    return copies


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
    a_in_tmem: bool = False,
    cta_group: int = 1,
    collector: Usage = "discard",
) -> None:
    """``tcgen05.mma.kind::mxf4nvf4.block_scale``. Frame 6.6.9.

    ``D = (A * SFA) * (B * SFB) + D``; without `enable_input_d`, D starts at +0. D is
    M x N of float32. For a pair each CTA has M / 2 rows of A with their scales and of
    D, N / 2 rows of B, and the scales of all N rows.

    Parameters
    ----------
    scale_vec
        ``"4X"`` / ``"block16"``, ``"2X"`` / ``"block32"``.
    a_in_tmem
        Whether `a_desc` is an address in TMEM; its bytes are those of the rows in
        shared memory, two elements each.
    collector
        What becomes of the collector buffer of A.

    Raises
    ------
    DescriptorFault
        Kind, scale vector, scale type or scale-factor id do not go together.
    ScaleFactorFault
        At landing: the four lane quarters hold different scales.
    CollectorFault
        At landing: the buffer does not hold this A.
    NotModelled, TmemAllocationFault, MissingProxyFence, UninitialisedRead
    ClusterFault
        There is no peer, or the kernel uses the other group too.
    """
    ctas = participants(warp, cta_group, "tcgen05.mma")
    operands: dict[str, Any] = {
        "d_tmem": d_tmem,
        "a_tmem" if a_in_tmem else "a_desc": a_desc,
        "b_desc": b_desc,
        "idesc": idesc,
        "sfa_tmem": sfa_tmem,
        "sfb_tmem": sfb_tmem,
        "enable_input_d": enable_input_d,
        "kind": kind,
        "scale_vec": scale_vec,
    }
    i, vec_size, shares = named_once(
        ctas,
        ("tcgen05.mma", cta_group, a_in_tmem, *operands.values()),
        lambda: _decode(warp, ctas, cta_group, operands),
    )
    issue_mma(
        warp,
        with_modifiers(operands, cta_group, collector),
        shares,
        partial(_multiply, warp.who, i, vec_size, shares.each, collector),
    )


def _decode(
    warp: Warp, ctas: Sequence[Cta], cta_group: int, operands: Mapping[str, Any]
) -> tuple[InstrDescriptor, int, Shares[Share]]:
    """Return the descriptor of an MMA, elements per scale, and what it names."""
    i = InstrDescriptor.decode(operands["idesc"], cta_group)
    vec_size = _check_scales(warp, i, operands["kind"], operands["scale_vec"])
    b_smem = SmemDescriptor.decode(operands["b_desc"])
    path = DATA_PATHS[i.m, cta_group]
    d_tmem, enable_input = operands["d_tmem"], operands["enable_input_d"]
    sfa_tmem, sfb_tmem = operands["sfa_tmem"], operands["sfb_tmem"]
    shares = []
    for cta in ctas:
        d = Accumulator.of(warp, d_tmem, i.n, enable_input, path, cta.tmem)
        sfa = find_scales(warp, sfa_tmem, path.rows, "SFA", cta.tmem)
        parts = path.column_parts
        sfb = find_scales(warp, sfb_tmem, i.n // parts, "SFB", cta.tmem, parts)
        check_apart(warp, d, sfa, sfb)
        a: Tile | OperandCells
        if "a_tmem" in operands:
            a = OperandCells.of(warp, operands["a_tmem"], d_tmem, path, cta.tmem)
        else:
            a_smem = SmemDescriptor.decode(operands["a_desc"])
            a = Tile.of(warp, a_smem, path.rows, ROW_NBYTES, cta.smem)
        b = Tile.of(warp, b_smem, i.n // len(ctas), ROW_NBYTES, cta.smem)
        shares.append(Share(a, b, d, (sfa, sfb)))
    return i, vec_size, Shares.of(shares)


def _multiply(
    who: str,
    i: InstrDescriptor,
    vec_size: int,
    shares: Sequence[Share],
    collector: Usage,
) -> None:
    """Land an MMA: read what it names, multiply, write D."""
    tiles = [(share.a.read(), share.b.read()) for share in shares]
    b = join_rows([rows for _, rows in tiles])
    negate = i.negate_a, i.negate_b
    pass_collector(shares, [a for a, _ in tiles], i.negate_a, collector, who)
    for share, (a, _) in zip(shares, tiles, strict=True):
        sfa, sfb = share.scales
        scales_a = read_scales(sfa, who, i.a_sf_id, MMA_K // vec_size)
        scales_b = read_scales(sfb, who, i.b_sf_id, MMA_K // vec_size)
        step = PackedStep(a, b, scales_a, scales_b, negate, i.scale_format, vec_size)
        share.d.update(partial(add_packed, step, clean=not share.d.enable_input))


def commit(
    warp: Warp, mbar: int, cta_mask: int | None = None, cta_group: int = 1
) -> None:
    """``tcgen05.commit...mbarrier::arrive::one.shared::cluster.b64``. Frames 6.7, 6.10.

    One arrival on `mbar` when all earlier cp and mma of this warp are complete, for a
    pair in both CTAs; with `cta_mask`, on the same offset in every CTA of the mask.
    """
    participants(warp, cta_group, "tcgen05.commit")
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

    operands = with_group({"mbar": mbar, "count": 1}, cta_group)
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
