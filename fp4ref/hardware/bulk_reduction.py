"""bulk_reduction: asynchronous reductions of bytes in a row into memory.

Each element is a relaxed read-modify-write of ``.gpu`` scope on its own, so reductions
of elements of one size into the same bytes are no race; their order is open. Into
global memory a reduction belongs to a bulk group, into the shared memory of a CTA of
the cluster it credits an mbarrier. Sizes and addresses are multiples of 16 bytes.
Source: PTX, cp.reduce.async.bulk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.bulk_copy import check_alignment, credit, own_source
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tma import receivers
from fp4ref.trace import Bytes, Range

Elements = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What becomes of each element.

    Attributes
    ----------
    name
        ``add.u32`` and the like.
    dtype
        NumPy type of an element; of a 16-bit float that of its pattern.
    combine
        New elements from the old ones and those of the source.
    """

    name: str
    dtype: np.dtype[Any]
    combine: Callable[[Elements, Elements], Elements]

    def apply(self, old: Bytes, source: Bytes) -> Bytes:
        """Return the new bytes, shape (1, nbytes), from the old ones."""
        elements = (np.ascontiguousarray(x).view(self.dtype)[0] for x in (old, source))
        new = self.combine(*elements).astype(self.dtype)
        return new.view(np.uint8).reshape(1, -1)


def reduce_global(
    warp: Warp, reduction: Reduction, dst: int, src: int, nbytes: int
) -> None:
    """``cp.reduce.async.bulk.global.shared::cta.bulk_group``.

    Raises
    ------
    MisalignedAddress
    ClusterFault
        The source is in another CTA.
    """
    name = f"cp.reduce.async.bulk.{reduction.name}"
    check_alignment(warp, name, size=nbytes, source=src, destination=dst)
    gmem, smem = warp.machine.gmem, warp.cta.smem
    source, target = own_source(warp, name, src, nbytes), Range(gmem.space, dst, nbytes)
    data: Bytes = np.empty((0, 0), np.uint8)
    order = warp.machine.order
    read_access, write_access = (
        order.issue(warp.actor, name, whole_warp=True) for _ in range(2)
    )
    read_access.reads(smem, source)
    write_access.reduces(gmem, target, reduction.dtype.itemsize)

    def land_read() -> None:
        nonlocal data
        data = smem.read_async(source)

    operands = {"dst": dst, "smem": src, "nbytes": nbytes}
    read = warp.issue(
        name, operands, land_read, unit="tma.read", reads=[source], survives_exit=True
    )
    write = warp.issue(
        name,
        operands,
        lambda: gmem.write(target, reduction.apply(gmem.read(target), data)),
        unit="tma",
        writes=[target],
        after=[read],
        survives_exit=True,
        part_of=read,
        reduces=reduction.dtype.itemsize,
    )
    order.bulk_store(read_access, write_access)
    warp.bulk_open += [read, write]


def reduce_shared(
    warp: Warp, reduction: Reduction, dst: int, src: int, nbytes: int, mbar: int
) -> None:
    """``cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes``.

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
        The source is in another CTA, or the mbarrier is not where the elements are.
    """
    name = f"cp.reduce.async.bulk.{reduction.name}"
    check_alignment(warp, name, size=nbytes, source=src, destination=dst)
    smem, source = warp.cta.smem, own_source(warp, name, src, nbytes)
    ((cta, _),) = receivers(warp, dst, mbar, None, 1)
    offset, at = (warp.cta.resolve_shared(each)[1] for each in (dst, mbar))
    target = Range(cta.smem.space, offset, nbytes)
    access = warp.machine.order.issue(warp.actor, name)
    access.reads(smem, source)
    access.reduces(cta.smem, target, reduction.dtype.itemsize)
    access.signals(cta.smem, at)

    def land() -> None:
        old = cta.smem.read_async(target)
        cta.smem.write_async(target, reduction.apply(old, smem.read_async(source)))
        credit(warp, cta, at, access, nbytes)

    warp.issue(
        name,
        {"dst": dst, "smem": src, "nbytes": nbytes, "mbar": mbar},
        land,
        unit="tma",
        reads=[source],
        writes=[target],
        reduces=reduction.dtype.itemsize,
    )
