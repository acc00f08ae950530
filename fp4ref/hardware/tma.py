"""Part 3. tma: asynchronous copies of boxes between global and shared memory.

A load credits the bytes of its full box to an mbarrier (complete_tx); it never arrives.
Elements outside the tensor are filled with zero and their bytes are credited all the
same. With ``.cta_group::2`` that mbarrier is in the pair of the CTA that receives the
box: in its leader, if the named one is in a leader. A store has no barrier: it belongs
to a bulk group of its warp, and lands in two steps, first reading shared memory, then
writing global memory. It ends a row not at the tensor's last element but at the end of
that element's 16-byte chunk. All but ``.cta_group::2`` was measured on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from fp4ref.errors import ClusterFault, HardwareFault, MisalignedAddress, NotModelled
from fp4ref.hardware.cluster import multicast_targets, of_pair
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.shared_memory import RANK_SHIFT, SharedMemory
from fp4ref.hardware.sm import Blocked, Cta, Warp
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.timing import Timed
from fp4ref.hardware.tma_box import (
    CHUNK,
    Piece,
    box_of,
    gather,
    inside,
    shared_block,
)
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

SMEM_ALIGNMENT = 128

PADDED_ROW = 128
"""Elements of a box row of a padded type, and what its first coordinate steps by."""


class TmaFault(HardwareFault):
    """A tensor copy does not fit its tensor map."""


def _check(warp: Warp, m: TensorMap, coords: Sequence[int], smem: int) -> None:
    """Raise a fault for a copy that the instruction forbids or we do not model."""
    if not m.is_dense:
        raise NotModelled(
            f"tensor copy with interleave {m.interleave}, element strides "
            f"{m.element_strides}",
            who=warp.who,
            remedy="use a dense tile with element strides of 1",
            gap="tma-element-layout",
        )
    if m.swizzle is not SwizzleMode.NONE and m.box_row_nbytes != m.swizzle.span:
        raise NotModelled(
            f"box rows of {m.box_row_nbytes} bytes with the {m.swizzle.span}-byte "
            "swizzle",
            who=warp.who,
            remedy="make a box row as long as the swizzle span",
            gap="tma-short-rows",
        )
    if len(coords) != m.rank:
        raise TmaFault(
            f"{len(coords)} coordinates for a tensor of rank {m.rank}",
            who=warp.who,
            rule="one coordinate for each dimension, fastest first [PTX: "
            "cp.async.bulk.tensor]",
            remedy="use the .Nd form of the map's rank",
        )
    if min(coords) < -(1 << 31) or max(coords) >= 1 << 31:
        raise TmaFault(
            f"coordinates {tuple(coords)}",
            who=warp.who,
            rule="coordinates are signed 32-bit element offsets",
            remedy="give element offsets, not tile indices",
        )
    padded = m.data_type.is_padded
    bits, aligned = m.data_type.bits, 8 * CHUNK
    if coords[0] % PADDED_ROW if padded else coords[0] * bits % aligned:
        raise TmaFault(
            f"coordinates {tuple(coords)}: the first is {m.data_type.bits}-bit element "
            f"{coords[0]}",
            who=warp.who,
            where=f"tensor map of {m.data_type.name}, dimensions {tuple(m.dims)}",
            rule="the first coordinate of a padded type is a multiple of 128 [PTX: "
            "restriction on tensor copy instructions]"
            if padded
            else f"a box row starts on a multiple of {CHUNK} bytes; an H200 ends "
            "anything else with an illegal instruction (measured with types of 8 bits "
            "and more, carried over to 4)",
            remedy="step by multiples of "
            f"{PADDED_ROW if padded else aligned // bits} elements",
        )
    if smem % SMEM_ALIGNMENT:
        raise MisalignedAddress(
            f"tensor copy at shared address {smem:#x}",
            who=warp.who,
            where=warp.smem.describe(smem & 0xFFFFFF),
            rule=f"the shared address is a multiple of {SMEM_ALIGNMENT} bytes [PTX: "
            "cp.async.bulk.tensor]",
            remedy="align the stage",
        )


def load(
    warp: Warp,
    tensor_map: TensorMap,
    coords: Sequence[int],
    dst: int,
    mbar: int,
    cta_mask: int | None = None,
    cta_group: int = 1,
) -> None:
    """``cp.async.bulk.tensor.Nd.shared::cluster.global...complete_tx::bytes``.

    Frames 5.4.4 to 5.4.7.

    Parameters
    ----------
    coords
        Element offsets, fastest dimension first; may be outside the tensor.
    dst, mbar
        Shared addresses of the tile and of the barrier that is credited.
    cta_mask
        Multicast: same offsets in every CTA of the mask.
    cta_group
        2: the mbarrier credited for a CTA is that one of its pair's whose rank has the
        parity of the rank in `mbar`.

    Raises
    ------
    MisalignedAddress, TmaFault, ClusterFault, NotModelled
    """
    _check(warp, tensor_map, coords, dst)
    targets = receivers(warp, dst, mbar, cta_mask, cta_group)
    offset, bar_offset = (each & ((1 << RANK_SHIFT) - 1) for each in (dst, mbar))
    parts = inside(tensor_map, coords)
    sources = [where for _, _, where in parts]
    operands = _operands(warp, tensor_map, coords, dst, mbar=mbar)
    if cta_mask is not None:
        operands["cta_mask"] = cta_mask
    if cta_group != 1:
        operands["cta_group"] = cta_group
    first: AsyncOp | None = None
    for cta, signalled in targets:
        where = Range(cta.smem.space, offset, tensor_map.box_smem_nbytes)
        land = _landing(
            warp, tensor_map, parts, (cta.smem, where), (signalled, bar_offset)
        )
        op = warp.issue(
            _name(tensor_map, "load"),
            operands,
            land,
            unit="tma",
            reads=sources,
            writes=[where],
            part_of=first,
        )
        first = first or op


def _landing(
    warp: Warp,
    tensor_map: TensorMap,
    parts: Sequence[Piece],
    tile: tuple[SharedMemory, Range],
    barrier: tuple[Cta, int],
) -> Callable[[], None]:
    """Issue what one CTA receives of a load; returns what lands it."""
    (smem, where), (cta, at) = tile, barrier
    access = warp.machine.order.issue(warp.actor, _name(tensor_map, "load"))
    access.reads(warp.machine.gmem, *(source for _, _, source in parts))
    access.writes(smem, where)
    access.signals(cta.smem, at)

    def land() -> None:
        rows = gather(warp.machine.gmem, tensor_map, parts)
        block, padding = shared_block(tensor_map, where.start, rows)
        smem.write_async(where, block)
        if padding is not None:
            smem.leave_undefined(where, padding)
        access.complete(cta.smem, at, cta.mbarriers.completed.get(at, 0))
        nbytes = tensor_map.box_nbytes
        cta.mbarriers.update(at, tx_bytes=-nbytes, who="tma", issuer=warp.who)

    return land


def receivers(
    warp: Warp, dst: int, mbar: int, cta_mask: int | None, cta_group: int
) -> list[tuple[Cta, Cta]]:
    """CTAs that a load writes, each with the CTA whose mbarrier is credited."""
    cta, _ = warp.cta.resolve_shared(dst)
    bar_cta, bar_offset = warp.cta.resolve_shared(mbar)
    if cta_group == 1 and cta is not bar_cta:
        raise ClusterFault(
            f"tensor copy to cta {cta.ctaid} that credits an mbarrier of cta "
            f"{bar_cta.ctaid}",
            who=warp.who,
            where=bar_cta.smem.describe(bar_offset),
            rule="tile and mbarrier are in the same CTA [PTX: cp.async.bulk.tensor, "
            "which only .cta_group::2 changes]",
            remedy="map both addresses to the same rank, or load with .cta_group::2",
        )
    if cta_group == 2 and bar_cta.rank | 1 != cta.rank | 1:
        raise ClusterFault(
            f"tensor copy to rank {cta.rank} that credits an mbarrier of rank "
            f"{bar_cta.rank}",
            who=warp.who,
            where=bar_cta.smem.describe(bar_offset),
            rule="with .cta_group::2 the mbarrier is in the CTA of the tile or in its "
            "peer [PTX: cp.async.bulk.tensor]",
            remedy="clear bit 24 of the own barrier's address: that is the leader's",
        )
    ctas = [cta] if cta_mask is None else multicast_targets(warp, cta_mask)
    if cta_group == 1:
        return [(each, each) for each in ctas]
    return [(each, of_pair(each, bar_cta.rank & 1)) for each in ctas]


def _name(tensor_map: TensorMap, what: str) -> str:
    return f"cp.async.bulk.tensor.{tensor_map.rank}d.{what}"


def store(warp: Warp, tensor_map: TensorMap, coords: Sequence[int], src: int) -> None:
    """``cp.async.bulk.tensor.Nd.global.shared::cta.bulk_group``. Frame 7.9.

    Parts outside the tensor are not written, except to the end of the 16-byte chunk in
    which a row ends.

    Raises
    ------
    MisalignedAddress, TmaFault, ClusterFault, NotModelled
    """
    _check(warp, tensor_map, coords, src)
    _check_store(warp, tensor_map, coords, src)
    cta, offset = warp.cta.resolve_shared(src)
    where_smem = Range(cta.smem.space, offset, tensor_map.box_nbytes)
    parts = inside(tensor_map, coords, CHUNK)
    targets = [where for _, _, where in parts]
    tile: Bytes = np.empty((0, 0), np.uint8)
    name = _name(tensor_map, "store")
    order = warp.machine.order
    source, target = (order.issue(warp.actor, name, whole_warp=True) for _ in range(2))
    source.reads(cta.smem, where_smem)
    target.writes(warp.machine.gmem, *targets)

    def land_read() -> None:
        nonlocal tile
        block = cta.smem.read_async(where_smem)[0]
        tile = box_of(tensor_map, offset, block)

    def land_write() -> None:
        for rows, row_bytes, where in parts:
            warp.machine.gmem.write(where, tile[rows, row_bytes])

    operands = _operands(warp, tensor_map, coords, src)
    read = warp.issue(
        name,
        operands,
        land_read,
        unit="tma.read",
        reads=[where_smem],
        survives_exit=True,
    )
    write = warp.issue(
        read.operation,
        operands,
        land_write,
        unit="tma",
        writes=targets,
        after=[read],
        survives_exit=True,
        part_of=read,
    )
    order.bulk_store(source, target)
    warp.bulk_open += [read, write]


def _check_store(warp: Warp, m: TensorMap, coords: Sequence[int], src: int) -> None:
    """Raise a fault for a store that starts outside, or from another CTA."""
    if m.data_type is DataType.U4_ALIGN16B:
        raise TmaFault(
            "store of U4_ALIGN16B",
            who=warp.who,
            rule="this type is loaded only [PTX: restriction on tensor copy "
            "instructions]",
            remedy="store packed elements as U4_ALIGN8B",
        )
    if m.data_type is DataType.U6_ALIGN16B:
        raise NotModelled(
            "store of U6_ALIGN16B",
            who=warp.who,
            remedy="store bytes",
            gap="tma-element-layout",
        )
    if any(c < 0 for c in coords):
        raise TmaFault(
            f"store to coordinates {tuple(coords)}",
            who=warp.who,
            rule="the first corner of a store is not negative; an H200 ends one with "
            "an illegal instruction [CUDA guide, tensor memory access]",
            remedy="start the box inside; only its far ends may be outside",
        )
    cta, offset = warp.cta.resolve_shared(src)
    if cta is not warp.cta:
        raise ClusterFault(
            f"tensor store from the shared memory of cta {cta.ctaid}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="the source is .shared::cta [PTX: cp.async.bulk.tensor]",
            remedy="store from the CTA that holds the tile",
        )


def _operands(
    warp: Warp, m: TensorMap, coords: Sequence[int], smem: int, **others: int
) -> dict[str, object]:
    """Return what a trace says of a copy; nothing without one."""
    if warp.machine.recorder is None:
        return {}
    named = warp.machine.gmem.find(m.address)
    return {
        "tensor": named.name if named else hex(m.address),
        "coords": list(coords),
        "smem": smem,
        "box": list(m.box),
        "bits": m.data_type.bits,
        "swizzle": int(m.swizzle),
        "tx_bytes": m.box_nbytes,
        **others,
    }


def commit_group(warp: Warp) -> None:
    """``cp.async.bulk.commit_group``: close the group of the stores issued so far."""
    groups = warp.bulk_groups
    # The oldest groups that are done need not be remembered; later ones still count.
    while groups and all(op.landed for op in groups[0]):
        groups.pop(0)
    groups.append(warp.bulk_open)
    warp.bulk_open = []
    warp.machine.order.commit_group(warp.actor)
    warp.record("cp.async.bulk.commit_group", {"group": warp.bulk_count})
    warp.bulk_count += 1


@dataclass(frozen=True, slots=True)
class BulkWait:
    """A warp waits for bulk groups."""

    ops: tuple[AsyncOp, ...]

    def ready(self) -> bool:
        """Whether all have landed."""
        return all(op.landed for op in self.ops)

    def visible_at(self, clock: Timed) -> float:
        """When the last of them is done."""
        return max((op.lands for op in self.ops), default=0.0)

    def describe(self) -> str:
        """How many operations are left."""
        return f"bulk groups: {sum(not op.landed for op in self.ops)} in flight"

    def released_by(self) -> str:
        """The TMA unit."""
        return "tma"


def wait_group(
    warp: Warp, pending: int, read: bool = False
) -> Generator[Blocked, None, None]:
    """``cp.async.bulk.wait_group{.read} pending``.

    Blocks until at most the newest `pending` groups are unfinished; with `read`, until
    their *sources* have been read, so that the shared memory may be reused.
    """
    groups = warp.bulk_groups[: max(0, len(warp.bulk_groups) - pending)]
    ops = tuple(
        op for group in groups for op in group if not read or op.unit == "tma.read"
    )
    since = yield from warp.wait(BulkWait(ops))
    warp.machine.order.wait_group(warp.actor, pending, read)
    suffix = ".read" if read else ""
    warp.record(f"cp.async.bulk.wait_group{suffix}", {"pending": pending}, since=since)


def prefetch_tensormap(warp: Warp, tensor_map: TensorMap | None) -> None:
    """``prefetch.tensormap``: no effect on any value; None for a map of zeros."""
    named = tensor_map and warp.machine.gmem.find(tensor_map.address)
    warp.record("prefetch.tensormap", {"tensor": named.name if named else ""})
