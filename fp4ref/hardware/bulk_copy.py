"""bulk_copy: asynchronous copies of bytes in a row, without a tensor map.

A load credits its bytes to an mbarrier (complete_tx), in every CTA that receives it. A
store belongs to a bulk group of its warp; like a tensor store it lands in two steps,
first reading shared memory, then writing global memory. Sizes and addresses are
multiples of 16 bytes. Source: PTX, cp.async.bulk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.errors import ClusterFault, MisalignedAddress
from fp4ref.hardware.sm import Cta, Warp
from fp4ref.hardware.tma import receivers
from fp4ref.trace import Bytes, Range

ALIGNMENT = 16


def _check(warp: Warp, what: str, **numbers: int) -> None:
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
    _check(warp, name, size=nbytes, source=src, destination=dst)
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
        access.complete(cta.smem, at, cta.mbarriers.completed.get(at, 0))
        cta.mbarriers.update(at, tx_bytes=-where.nbytes, who="tma", issuer=warp.who)

    return land


def store(warp: Warp, dst: int, src: int, nbytes: int) -> None:
    """``cp.async.bulk.global.shared::cta.bulk_group``.

    Raises
    ------
    MisalignedAddress
    ClusterFault
        The source is in another CTA.
    """
    name = "cp.async.bulk.store"
    _check(warp, name, size=nbytes, source=src, destination=dst)
    cta, offset = warp.cta.resolve_shared(src)
    if cta is not warp.cta:
        raise ClusterFault(
            f"{name} from the shared memory of cta {cta.ctaid}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="the source is .shared::cta [PTX: cp.async.bulk]",
            remedy="store from the CTA that holds the bytes",
        )
    gmem = warp.machine.gmem
    where, target = (
        Range(cta.smem.space, offset, nbytes),
        Range(gmem.space, dst, nbytes),
    )
    data: Bytes = np.empty((0, 0), np.uint8)
    order = warp.machine.order
    read_access, write_access = (
        order.issue(warp.actor, name, whole_warp=True) for _ in range(2)
    )
    read_access.reads(cta.smem, where)
    write_access.writes(gmem, target)

    def land_read() -> None:
        nonlocal data
        data = cta.smem.read_async(where)

    operands = {"dst": dst, "smem": src, "nbytes": nbytes}
    read = warp.issue(
        name, operands, land_read, unit="tma.read", reads=[where], survives_exit=True
    )
    write = warp.issue(
        name,
        operands,
        lambda: gmem.write(target, data),
        unit="tma",
        writes=[target],
        after=[read],
        survives_exit=True,
        part_of=read,
    )
    order.bulk_store(read_access, write_access)
    warp.bulk_open += [read, write]
