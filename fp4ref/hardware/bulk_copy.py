"""bulk_copy: asynchronous copies of bytes in a row, without a tensor map.

A load credits its bytes to an mbarrier (complete_tx), in every CTA that receives it; so
does a copy to the shared memory of a CTA of the cluster. A store belongs to a bulk
group of its warp; like a tensor store it lands in two steps, first reading shared
memory, then writing global memory. Sizes and addresses are multiples of 16 bytes. What
reduces is in `bulk_reduction`. Source: PTX, cp.async.bulk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fp4ref.errors import ClusterFault, MisalignedAddress
from fp4ref.hardware.sm import Cta, Warp
from fp4ref.hardware.tma import receivers
from fp4ref.trace import Bytes, Range

ALIGNMENT = 16


def check_alignment(warp: Warp, what: str, **numbers: int) -> None:
    """Raise `MisalignedAddress` unless size and addresses are multiples of 16."""
    for name, number in numbers.items():
        if number % ALIGNMENT:
            raise MisalignedAddress(
                f"{what} with {name} {number:#x}",
                who=warp.who,
                rule="size and both addresses are multiples of 16 bytes [PTX: "
                "cp.async.bulk]",
                remedy="pad the data to 16 bytes",
            )


def load(
    warp: Warp,
    src: int,
    dst: int,
    nbytes: int,
    mbar: int,
    cta_mask: int | None = None,
) -> None:
    """``cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes``.

    Parameters
    ----------
    src
        Global address.
    dst, mbar
        Shared addresses of the bytes and of the barrier that is credited.
    cta_mask
        Multicast: same offsets in every CTA of the mask.

    Raises
    ------
    MisalignedAddress, ClusterFault
    """
    name = "cp.async.bulk.load"
    check_alignment(warp, name, size=nbytes, source=src, destination=dst)
    offset, bar_offset = (warp.cta.resolve_shared(each)[1] for each in (dst, mbar))
    source = Range(warp.machine.gmem.space, src, nbytes)
    operands = {"src": src, "smem": dst, "nbytes": nbytes, "mbar": mbar}
    if cta_mask is not None:
        operands["cta_mask"] = cta_mask
    first = None
    for cta, _ in receivers(warp, dst, mbar, cta_mask, 1):
        where = Range(cta.smem.space, offset, nbytes)
        land = _landing(warp, source, cta, where, bar_offset)
        op = warp.issue(
            name,
            operands,
            land,
            unit="tma",
            reads=[source],
            writes=[where],
            part_of=first,
        )
        first = first or op


def _landing(
    warp: Warp, source: Range, cta: Cta, where: Range, at: int
) -> Callable[[], None]:
    """Issue what one CTA receives; returns what lands it."""
    access = warp.machine.order.issue(warp.actor, "cp.async.bulk.load")
    access.reads(warp.machine.gmem, source)
    access.writes(cta.smem, where)
    access.signals(cta.smem, at)

    def land() -> None:
        cta.smem.write_async(where, warp.machine.gmem.read(source))
        credit(warp, cta, at, access, where.nbytes)

    return land


def own_source(warp: Warp, name: str, src: int, nbytes: int) -> Range:
    """Return the source bytes, which are in the CTA of the warp.

    Raises
    ------
    ClusterFault
        They are in another CTA.
    """
    cta, offset = warp.cta.resolve_shared(src)
    if cta is not warp.cta:
        raise ClusterFault(
            f"{name} from the shared memory of cta {cta.ctaid}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="the source is .shared::cta [PTX: cp.async.bulk]",
            remedy="copy from the CTA that holds the bytes",
        )
    return Range(cta.smem.space, offset, nbytes)


def copy(warp: Warp, dst: int, src: int, nbytes: int, mbar: int) -> None:
    """``cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes``.

    Parameters
    ----------
    dst, mbar
        Shared addresses in one CTA of the cluster, whose mbarrier is credited.
    src
        Shared address in the CTA of the warp.

    Raises
    ------
    MisalignedAddress
    ClusterFault
        The source is in another CTA, or the mbarrier is not where the bytes go.
    """
    name = "cp.async.bulk.copy"
    check_alignment(warp, name, size=nbytes, source=src, destination=dst)
    source = own_source(warp, name, src, nbytes)
    ((cta, _),) = receivers(warp, dst, mbar, None, 1)
    offset, at = (warp.cta.resolve_shared(each)[1] for each in (dst, mbar))
    target = Range(cta.smem.space, offset, nbytes)
    access = warp.machine.order.issue(warp.actor, name)
    access.reads(warp.cta.smem, source)
    access.writes(cta.smem, target)
    access.signals(cta.smem, at)

    def land() -> None:
        cta.smem.write_async(target, warp.cta.smem.read_async(source))
        credit(warp, cta, at, access, nbytes)

    operands = {"dst": dst, "smem": src, "nbytes": nbytes, "mbar": mbar}
    warp.issue(name, operands, land, unit="tma", reads=[source], writes=[target])


def credit(warp: Warp, cta: Cta, at: int, access: Any, nbytes: int) -> None:
    """Take bytes off the tx-count of an mbarrier; its phase carries the access."""
    access.complete(cta.smem, at, cta.mbarriers.completed.get(at, 0))
    cta.mbarriers.update(at, tx_bytes=-nbytes, who="tma", issuer=warp.who)


def store(
    warp: Warp, dst: int, src: int, nbytes: int, byte_mask: int | None = None
) -> None:
    """``cp.async.bulk.global.shared::cta.bulk_group{.cp_mask}``.

    Parameters
    ----------
    byte_mask
        Bit i says whether byte i of every 16 is copied; None copies all.

    Raises
    ------
    MisalignedAddress
    ClusterFault
        The source is in another CTA.
    """
    name = "cp.async.bulk.store"
    check_alignment(warp, name, size=nbytes, source=src, destination=dst)
    cta, gmem = warp.cta, warp.machine.gmem
    where = own_source(warp, name, src, nbytes)
    targets = [Range(gmem.space, dst, nbytes)]
    if byte_mask is not None:
        targets = _masked(targets[0], byte_mask)
    data: Bytes = np.empty((0, 0), np.uint8)
    order = warp.machine.order
    read_access, write_access = (
        order.issue(warp.actor, name, whole_warp=True) for _ in range(2)
    )
    read_access.reads(cta.smem, where)
    write_access.writes(gmem, *targets)

    def land_read() -> None:
        nonlocal data
        data = cta.smem.read_async(where)

    def land_write() -> None:
        for target in targets:
            first = target.start - dst
            gmem.write(target, data[:, first : first + target.nbytes])

    operands = {"dst": dst, "smem": src, "nbytes": nbytes}
    if byte_mask is not None:
        operands["byte_mask"] = byte_mask
    read = warp.issue(
        name, operands, land_read, unit="tma.read", reads=[where], survives_exit=True
    )
    write = warp.issue(
        name,
        operands,
        land_write,
        unit="tma",
        writes=targets,
        after=[read],
        survives_exit=True,
        part_of=read,
    )
    order.bulk_store(read_access, write_access)
    warp.bulk_open += [read, write]


def _masked(target: Range, byte_mask: int) -> list[Range]:
    """Return the runs of bytes that are written: all of them bit by bit of each 16."""
    kept = [byte_mask >> i & 1 for i in range(ALIGNMENT)]
    edges = np.diff(np.array([0, *kept * (target.nbytes // ALIGNMENT), 0]))
    starts, ends = (np.flatnonzero(edges == step).tolist() for step in (1, -1))
    return [
        Range(target.space, target.start + start, end - start)
        for start, end in zip(starts, ends, strict=True)
    ]
