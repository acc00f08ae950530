"""cta: the elected lane, thread counts of bar.sync, where shared memory starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fp4ref.device import Call, Pointer
from fp4ref.hardware import named_barrier, smem
from fp4ref.hardware.shared_memory import BASE
from fp4ref.hardware.sm import Body, Cta, Role, Warp, elect_sync
from fp4ref.trace import Range
from probes.probe import (
    Case,
    Outputs,
    Probe,
    blank,
    new_machine,
    pattern,
    results,
    words,
)

MASKS = [
    0xFFFFFFFF, 1, 0x80000000, 0x80000001, 0xFFFFFFFE, 0x00010000, 0xFFFF0000,
    0xAAAAAAAA, 0x55555554, 0x00FF0F00,
]  # fmt: skip
STATIC = (8, 1000, 1040)
ALIGNED = (4, 128, 1024)


def cases() -> Iterator[Case]:
    """Election by mask, two named barriers, and base addresses."""
    masks = MASKS + [int(m) & 0xFFFFFFFF or 1 for m in pattern(11, 22)]
    call = Call(
        "elect",
        {"masks": words(masks), "out": blank(128 * len(masks))},
        (Pointer("masks"), Pointer("out"), np.uint32(len(masks))),
    )
    yield Case("elect", call, ("out",))
    rounds = 20
    call = Call(
        "named_barriers",
        {"out": blank(256 * rounds)},
        (Pointer("out"), np.uint32(rounds)),
        block=(128, 1, 1),
        smem_nbytes=256,
    )
    yield Case("named barriers", call, ("out",))
    for nbytes in (16, 4096, 200_000):
        call = Call(
            "base_alone", {"out": blank(8)}, (Pointer("out"),), smem_nbytes=nbytes
        )
        yield Case(f"base, {nbytes} dynamic bytes", call, ("out",))
    for fixed in STATIC:
        call = Call(
            f"base_beside_{fixed}", {"out": blank(8)}, (Pointer("out"),), smem_nbytes=64
        )
        yield Case(f"base beside {fixed} static bytes", call, ("out",))
    for alignment in ALIGNED:
        call = Call(
            f"base_aligned_{alignment}",
            {"out": blank(8)},
            (Pointer("out"),),
            smem_nbytes=64,
        )
        yield Case(f"base aligned to {alignment}", call, ("out",))


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.hardware`."""
    call = case.call
    if call.entry.startswith("base_beside"):
        # Where a symbol lands is the compiler's and the loader's: the ptx backend's.
        fixed = int(call.entry.rsplit("_", 1)[1])
        return {"out": words([BASE + -(-fixed // 16) * 16, BASE])}
    if call.entry.startswith("base_aligned"):
        alignment = int(call.entry.rsplit("_", 1)[1])
        return {
            "out": words(
                [-(-(BASE + 8) // max(16, alignment)) * max(16, alignment), BASE]
            )
        }
    machine, addresses = new_machine(call)
    warps = call.block[0] // 32
    out = addresses["out"]

    def put(warp: Warp, offset: int, values: Sequence[int]) -> None:
        data = words(values)
        warp.machine.gmem.write(Range("gmem", out + offset, data.size), data[None])

    def base(warp: Warp) -> Body:
        put(warp, 0, [warp.cta.smem_base])
        yield from ()

    def elect(warp: Warp) -> Body:
        for i, mask in enumerate(call.buffers["masks"].view(np.uint32).tolist()):
            lane = elect_sync(warp, mask)
            told = [(each == lane) << 8 | lane for each in range(32)]
            absent = 0xFFFFFFFF
            shown = [t if mask >> e & 1 else absent for e, t in enumerate(told)]
            put(warp, 128 * i, shown)
        yield from ()

    def barriers(warp: Warp) -> Body:
        slots = warp.cta.smem_base
        for r in range(20):
            mine = np.arange(32) + 32 * (warp.index % 2)
            at = slots + 4 * int(mine[0])
            if warp.index < 2:
                smem.st(warp, at, words((r << 16 | mine).tolist()))
                named_barrier.arrive(warp, 1, 128)
                yield from named_barrier.sync(warp, 2, 128)
            else:
                yield from named_barrier.sync(warp, 1, 128)
                got = smem.ld(warp, at, 128).view(np.uint32)
                put(warp, 256 * r + 4 * int(mine[0]), got.tolist())
                named_barrier.arrive(warp, 2, 128)

    roles = {"elect": elect, "named_barriers": barriers, "base_alone": base}

    def kernel(cta: Cta) -> Sequence[Role]:
        return [roles[call.entry]] * warps

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return results(machine, addresses, case)


PROBE = Probe("cta", tuple(cases()), emulate)
