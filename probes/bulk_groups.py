"""bulk_groups: buffers that are reused as soon as their store has read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fp4ref.device import Call, MapOf
from fp4ref.hardware import smem, tma
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from probes.probe import Case, Outputs, Probe, blank, new_machine, results, tensor_map

IMAGE = 1024
NBYTES = 1024
FACTOR = 2654435761


def cases() -> Iterator[Case]:
    """Eight and thirty-two tiles, swizzled and not."""
    for tiles in (8, 32):
        for swizzle in (0, 3):
            m = MapOf("tensor", 0, (128, 8 * tiles), (144,), (128, 8), swizzle=swizzle)
            call = Call(
                "stores",
                {"tensor": blank(144 * 8 * tiles)},
                (m, np.uint32(tiles), np.uint32(NBYTES)),
                smem_nbytes=IMAGE + 2 * NBYTES,
            )
            yield Case(f"{tiles} tiles, swizzle {swizzle}", call, ("tensor",))


def emulate(case: Case) -> Outputs:
    """The same stores by `fp4ref.hardware.tma`."""
    call = case.call
    machine, addresses = new_machine(call)
    what = call.params[0]
    assert isinstance(what, MapOf)
    m = tensor_map(what, addresses["tensor"])
    tiles = m.dims[1] // 8
    byte = np.arange(0, NBYTES, 4, dtype=np.uint64)

    def role(warp: Warp) -> Body:
        for tile in range(tiles):
            buffer = warp.cta.smem_base + IMAGE + tile % 2 * NBYTES
            yield from tma.wait_group(warp, 1, read=True)
            hashed = (byte * np.uint64(FACTOR) & np.uint64(0xFFFFFFFF)) >> np.uint64(8)
            filled = (np.uint64(tile << 24) | hashed).astype(np.uint32)
            smem.st(warp, buffer, filled.view(np.uint8))
            smem.fence_proxy_async(warp)
            tma.store(warp, m, (0, 8 * tile), buffer)
            tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    def kernel(cta: Cta) -> Sequence[Role]:
        return [role]

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return results(machine, addresses, case)


PROBE = Probe("bulk_groups", tuple(cases()), emulate)
