"""cluster: multicast, remote arrivals and stores, mapa, and the cluster barrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fp4ref.device import Call, MapOf, Pointer
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from fp4ref.trace import Bytes, Range
from probes.probe import (
    Case,
    Outputs,
    Probe,
    blank,
    new_machine,
    pattern_bytes,
    results,
    tensor_map,
)

POISON = 0xA5
IMAGE = 1024
SHAPES = ((2, 1, 1), (4, 1, 1), (2, 2, 1), (1, 2, 2), (8, 1, 1))


def _size(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


def _multicast(shape: tuple[int, int, int], issuer: int, mask: int) -> Case:
    size = _size(shape)
    m = MapOf("tensor", 0, (128, 16), (144,), (128, 8), swizzle=3)
    image_nbytes = 1024 + 256
    call = Call(
        "multicast_load",
        {
            "tensor": pattern_bytes(issuer * 99 + mask, 144 * 16),
            "images": blank(size * image_nbytes),
            "status": blank(size * 16),
        },
        (
            m,
            Pointer("images"),
            Pointer("status"),
            np.uint32(issuer),
            np.uint32(mask),
            np.uint32(1024),
            np.uint32(image_nbytes),
        ),
        grid=shape,
        cluster=shape,
        smem_nbytes=IMAGE + image_nbytes,
    )
    name = f"multicast from {issuer} to {mask:#x} of {'x'.join(map(str, shape))}"
    return Case(name, call, ("images", "status"))


def cases() -> Iterator[Case]:
    """Masks of two and of four CTAs; every cluster shape."""
    for issuer in (0, 1):
        for mask in (1, 2, 3):
            yield _multicast((2, 1, 1), issuer, mask)
    for mask in (0b1010, 0b1111, 0b0110):
        yield _multicast((2, 2, 1), 2, mask)
    for shape in SHAPES:
        size = _size(shape)
        name = "x".join(map(str, shape))
        for entry, nbytes in (("remote_arrive", 64), ("remote_store", 32)):
            call = Call(
                entry,
                {"out": blank(size * nbytes)},
                (Pointer("out"), np.uint32(size)),
                grid=shape,
                cluster=shape,
                smem_nbytes=64,
            )
            yield Case(f"{entry} {name}", call, ("out",))


def _write(gmem: GlobalMemory, address: int, data: Bytes) -> None:
    gmem.write(Range("gmem", address, data.size), data[None])


def _u32(*values: int) -> Bytes:
    return np.array(values, np.uint32).view(np.uint8)


def _sync(warp: Warp) -> Body:
    yield from cluster.wait(warp, cluster.arrive(warp))


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.hardware`."""
    call = case.call
    machine, addresses = new_machine(call)
    numbers = [int(p) for p in call.params if isinstance(p, np.uint32)]
    roles: dict[str, Any] = {
        "multicast_load": _multicast_role,
        "remote_arrive": _arrive_role,
        "remote_store": _store_role,
    }

    def kernel(cta: Cta) -> Sequence[Role]:
        return [lambda warp: roles[call.entry](warp, call, addresses, numbers)]

    machine.launch(
        kernel, call.grid, cluster=call.cluster, smem_nbytes=call.smem_nbytes
    )
    return results(machine, addresses, case)


def _multicast_role(
    warp: Warp, call: Call, addresses: dict[str, int], numbers: list[int]
) -> Body:
    issuer, mask, nbytes, image_nbytes = numbers
    what = call.params[0]
    assert isinstance(what, MapOf)
    m = tensor_map(what, addresses["tensor"])
    rank, mbar = warp.cta.rank, warp.cta.smem_base
    image = mbar + IMAGE
    smem.st(warp, image, np.full(image_nbytes, POISON, np.uint8))
    smem.fence_proxy_async(warp)
    mbarrier.init(warp, mbar, 1)
    mbarrier.fence_mbarrier_init(warp)
    yield from _sync(warp)
    if rank == issuer:
        tma.load(warp, m, (0, 0), image, mbar, mask)
    mbarrier.arrive_expect_tx(warp, mbar, nbytes if mask >> rank & 1 else 0)
    yield from mbarrier.try_wait(warp, mbar, 0)
    yield from _sync(warp)
    gmem = warp.machine.gmem
    shown = smem.ld(warp, image, image_nbytes)
    _write(gmem, addresses["images"] + rank * image_nbytes, shown)
    status = np.concatenate([_u32(1, rank), smem.ld(warp, mbar, 8)])
    _write(gmem, addresses["status"] + 16 * rank, status)


def _arrive_role(
    warp: Warp, call: Call, addresses: dict[str, int], numbers: list[int]
) -> Body:
    (size,) = numbers
    rank, mbar = warp.cta.rank, warp.cta.smem_base
    mine = addresses["out"] + 64 * rank
    mbarrier.init(warp, mbar, size)
    mbarrier.fence_mbarrier_init(warp)
    yield from _sync(warp)
    mapped = [cluster.mapa(warp, mbar, to) for to in range(size)]
    for remote in mapped:
        mbarrier.arrive(warp, remote)
    yield from mbarrier.try_wait(warp, mbar, 0)
    yield from _sync(warp)
    gmem = warp.machine.gmem
    _write(gmem, mine, np.concatenate([_u32(1, rank), smem.ld(warp, mbar, 8)]))
    _write(gmem, mine + 16, _u32(*mapped))
    _write(gmem, mine + 48, _u32(*warp.cta.ctaid, mbar))


def _store_role(
    warp: Warp, call: Call, addresses: dict[str, int], numbers: list[int]
) -> Body:
    (size,) = numbers
    rank, slots = warp.cta.rank, warp.cta.smem_base
    yield from _sync(warp)
    for to in range(size):
        at = cluster.mapa(warp, slots, to) + 4 * rank
        smem.st(warp, at, _u32(0x100 + rank))
    yield from _sync(warp)
    shown = smem.ld(warp, slots, 4 * size)
    _write(warp.machine.gmem, addresses["out"] + 32 * rank, shown)


PROBE = Probe("cluster", tuple(cases()), emulate)
