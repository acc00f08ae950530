"""bulk_copies: bulk copies and reductions between CTAs and into global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fp4ref.device import Call, Pointer
from fp4ref.hardware import (
    bulk_copy,
    bulk_reduction,
    cluster,
    cp_async,
    mbarrier,
    named_barrier,
    smem,
    tma,
)
from fp4ref.hardware.bulk_reduction import Elements, Reduction
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from fp4ref.trace import Bytes, Range
from probes.probe import (
    Case,
    Outputs,
    Probe,
    blank,
    pattern,
    pattern_bytes,
    results,
    words,
)

IMAGE = 1024
NBYTES = 512
POISON = 0xA5
PAIR = (2, 1, 1)
CTAS = 16
ROUNDS = 32
SEEDS = 8

INTO_SHARED = (
    *("copy", "add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32"),
    *("max.s32", "inc.u32", "dec.u32", "and.b32", "or.b32", "xor.b32"),
)
INTO_GLOBAL = (
    *("copy", "add.u32", "add.s32", "add.u64", "add.f32", "add.f64", "add.f16"),
    *("add.bf16", "min.u32", "min.s32", "min.u64", "min.s64", "min.f16", "min.bf16"),
    *("max.u32", "max.s32", "max.u64", "max.s64", "max.f16", "max.bf16", "inc.u32"),
    *("dec.u32", "and.b32", "and.b64", "or.b32", "or.b64", "xor.b32", "xor.b64"),
)
"""What the kernels choose from, in their order."""

OWN_CTA = "the card ends a bulk copy to the own CTA with an illegal instruction"
YOUNGER = ("cp.async", "bulk load", "bulk copy")
FROM_PEER = ("copy to shared", "add to shared", "copy to global", "add to global")

COMBINE: dict[str, Callable[[Elements, Elements], Elements]] = {
    "add": lambda old, new: old + new,
    "min": np.minimum,
    "max": np.maximum,
    "inc": lambda old, new: np.where(old >= new, 0, old + 1),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - 1),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _numbers(seed: int, kind: str) -> Bytes:
    """Return 512 bytes of a type: any integers, small ones among them, or floats."""
    drawn = pattern(seed, NBYTES // 8)
    if kind[0] in "us" or kind == "b32" or kind == "b64":
        drawn[::2] %= np.uint64(16)
        return drawn.view(np.uint8)
    floats = (pattern(seed, NBYTES // 2) % np.uint64(4001)).astype(np.float32)
    floats = (floats - 2000) * np.float32(2.0**-6)
    if kind == "bf16":
        return _narrowed(floats).view(np.uint8)[:NBYTES]
    to = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    return floats.astype(to).view(np.uint8)[:NBYTES].copy()


def _narrowed(floats: Elements) -> Elements:
    """Round float32 to the nearest bfloat16, of which the pattern is returned."""
    bits = np.asarray(floats, np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def _reduction(name: str) -> Reduction:
    """Return the same reduction in NumPy."""
    what, kind = name.split(".")
    combine = COMBINE[what]
    if kind == "bf16":
        return Reduction(
            name,
            np.dtype("<u2"),
            lambda *pair: _narrowed(
                combine(*((x.astype(np.uint32) << 16).view(np.float32) for x in pair))
            ),
        )
    code = kind[0] if kind[0] == "f" else {"s": "i"}.get(kind[0], "u")
    return Reduction(name, np.dtype(f"<{code}{int(kind[1:]) // 8}"), combine)


def _case(
    name: str,
    entry: str,
    buffers: dict[str, Bytes],
    *numbers: int,
    outputs: tuple[str, ...] = ("out",),
    refusal: str = "",
    on_ptx: str = "",
    unlike: str = "",
    **shape: Any,
) -> Case:
    params = (*map(Pointer, buffers), *map(np.uint32, numbers))
    call = Call(entry, buffers, params, **shape)
    return Case(name, call, outputs, refusal, on_ptx, unlike)


def cases() -> Iterator[Case]:
    """Every form; sources elsewhere; sums by many; which of two operations is first."""
    pair: dict[str, Any] = {
        "grid": PAIR,
        "cluster": PAIR,
        "smem_nbytes": IMAGE + NBYTES,
    }
    for which, name in enumerate(INTO_SHARED):
        kind = name.rpartition(".")[2] if which else "u32"
        buffers = {"source": _numbers(which, kind), "old": _numbers(which + 50, kind)}
        buffers |= {"out": blank(2 * NBYTES), "status": blank(32)}
        yield _case(f"{name} to peer", "to_peer", buffers, which,
                    outputs=("out", "status"), **pair)  # fmt: skip
    for which, name in enumerate(INTO_GLOBAL):
        kind = name.rpartition(".")[2] if which else "u32"
        buffers = {"source": _numbers(which + 100, kind)}
        buffers |= {"out": _numbers(which + 150, kind)}
        yield _case(
            f"{name} to global", "to_global", buffers, which, smem_nbytes=NBYTES
        )
    for which, name in enumerate(FROM_PEER):
        buffers = {"source": _numbers(200, "u32"), "old": _numbers(201, "u32")}
        buffers |= {"out": blank(NBYTES)}
        yield _case(f"{name} from peer", "from_peer", buffers, which,
                    refusal="ClusterFault", **pair)  # fmt: skip
    yield _case("sums of many", "sums", {"out": words(range(NBYTES // 4))}, ROUNDS,
                grid=(CTAS, 1, 1), smem_nbytes=NBYTES)  # fmt: skip
    size = 1 << 16
    for which, name in enumerate(YOUNGER):
        buffers = {"in": pattern_bytes(7, size), "out": words([0])}
        yield _case(
            f"{name} before an older load",
            "younger_first",
            buffers,
            *(which, ROUNDS, size),
            on_ptx="one schedule has one order",
            unlike=OWN_CTA if name == "bulk copy" else "",
            block=(64, 1, 1),
            smem_nbytes=IMAGE + size + 32,
        )


# -- the same by fp4ref.hardware


def _put(warp: Warp, at: int, data: Bytes) -> None:
    warp.machine.gmem.write(Range("gmem", at, data.size), data.reshape(1, -1))


def _fill(warp: Warp, image: int, data: Bytes) -> None:
    smem.st(warp, image, data)
    smem.fence_proxy_async(warp)


def _barrier(warp: Warp, at: int) -> None:
    mbarrier.init(warp, at, 1)
    mbarrier.fence_mbarrier_init(warp)


def _sync(warp: Warp) -> Body:
    yield from cluster.wait(warp, cluster.arrive(warp))


def _into_shared(warp: Warp, name: str, dst: int, src: int, mbar: int) -> None:
    if name == "copy":
        bulk_copy.copy(warp, dst, src, NBYTES, mbar)
    else:
        bulk_reduction.reduce_shared(warp, _reduction(name), dst, src, NBYTES, mbar)


def _into_global(warp: Warp, name: str, dst: int, src: int) -> Body:
    if name == "copy":
        bulk_copy.store(warp, dst, src, NBYTES)
    else:
        bulk_reduction.reduce_global(warp, _reduction(name), dst, src, NBYTES)
    tma.commit_group(warp)
    yield from tma.wait_group(warp, 0)


def _to_peer(warp: Warp, call: Call, at: dict[str, int], n: list[int]) -> Body:
    rank, mbar = warp.cta.rank, warp.cta.smem_base
    image = mbar + IMAGE
    _fill(warp, image, call.buffers["old" if rank else "source"])
    _barrier(warp, mbar)
    if rank:
        mbarrier.arrive_expect_tx(warp, mbar, NBYTES)
    yield from _sync(warp)
    if rank:
        yield from mbarrier.try_wait(warp, mbar, 0)
    else:
        there = (cluster.mapa(warp, each, 1) for each in (image, mbar))
        dst, signalled = there
        _into_shared(warp, INTO_SHARED[n[0]], dst, image, signalled)
    yield from _sync(warp)
    _put(warp, at["out"] + rank * NBYTES, smem.ld(warp, image, NBYTES))
    said = np.concatenate([words([rank, rank]), smem.ld(warp, mbar, 8).reshape(-1)])
    _put(warp, at["status"] + 16 * rank, said)


def _to_global(warp: Warp, call: Call, at: dict[str, int], n: list[int]) -> Body:
    image = warp.cta.smem_base
    _fill(warp, image, call.buffers["source"])
    yield from _into_global(warp, INTO_GLOBAL[n[0]], at["out"], image)


def _from_peer(warp: Warp, call: Call, at: dict[str, int], n: list[int]) -> Body:
    rank, mbar = warp.cta.rank, warp.cta.smem_base
    image, (which,) = mbar + IMAGE, n
    _fill(warp, image, call.buffers["source" if rank else "old"])
    _barrier(warp, mbar)
    mbarrier.arrive_expect_tx(warp, mbar, 0 if rank or which > 1 else NBYTES)
    yield from _sync(warp)
    if rank == 0:
        there = cluster.mapa(warp, image, 1)
        if which < 2:
            _into_shared(warp, INTO_SHARED[which], image, there, mbar)
        else:
            yield from _into_global(warp, INTO_GLOBAL[which - 2], at["out"], there)
    yield from mbarrier.try_wait(warp, mbar, 0)
    yield from _sync(warp)
    if rank == 0 and which < 2:
        _put(warp, at["out"], smem.ld(warp, image, NBYTES))


def _sums(warp: Warp, call: Call, at: dict[str, int], n: list[int]) -> Body:
    image = warp.cta.smem_base
    _fill(warp, image, words([warp.cta.ctaid[0] + i for i in range(NBYTES // 4)]))
    for _ in range(n[0]):
        yield from _into_global(warp, "add.u32", at["out"], image)


ROLES: dict[str, Callable[[Warp, Call, dict[str, int], list[int]], Body]] = {
    "to_peer": _to_peer,
    "to_global": _to_global,
    "from_peer": _from_peer,
    "sums": _sums,
}


def _race(call: Call, which: int, nbytes: int, seed: int) -> bool:
    """Whether the younger operation lands first under a seed."""
    machine = Machine(1, make_schedule(seed))
    source = machine.gmem.upload("in", call.buffers["in"])
    seen: list[str] = []

    def waiting(warp: Warp) -> Body:
        older = warp.cta.smem_base
        younger, image = older + 8, older + IMAGE
        last = image + nbytes
        if warp.index == 0:
            _fill(warp, last + 16, np.full(16, POISON, np.uint8))
            _barrier(warp, older)
            _barrier(warp, younger)
        yield from named_barrier.sync(warp, 0)
        if warp.index == 0:
            mbarrier.arrive_expect_tx(warp, older, nbytes)
            bulk_copy.load(warp, source, image, nbytes, older)
            if which:
                mbarrier.arrive_expect_tx(warp, younger, 16)
            if which == 0:
                cp_async.copy(warp, [last], [source], 16)
                cp_async.mbarrier_arrive_noinc(warp, younger, 1)
            elif which == 1:
                bulk_copy.load(warp, source, last, 16, younger)
            else:
                bulk_copy.copy(warp, last, last + 16, 16, younger)
        yield from mbarrier.try_wait(warp, younger if warp.index else older, 0)
        seen.append("younger" if warp.index else "older")

    def kernel(cta: Cta) -> Sequence[Role]:
        return [waiting] * 2

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return seen[0] == "younger"


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.hardware`; many sums at once with the search for races."""
    call = case.call
    numbers = [int(each) for each in call.params if isinstance(each, np.uint32)]
    if call.entry == "younger_first":
        which, _, nbytes = numbers
        first = any(_race(call, which, nbytes, seed) for seed in range(SEEDS))
        return {"out": words([first])}
    races = "raise" if call.entry == "sums" else "off"
    machine = Machine(call.grid[0], make_schedule("late"), races=races)
    at = {n: machine.gmem.upload(n, d) for n, d in call.buffers.items()}

    def kernel(cta: Cta) -> Sequence[Role]:
        return [lambda warp: ROLES[call.entry](warp, call, at, numbers)]

    machine.launch(
        kernel, call.grid, cluster=call.cluster, smem_nbytes=call.smem_nbytes
    )
    return results(machine, at, case)


PROBE = Probe("bulk_copies", tuple(cases()), emulate)
