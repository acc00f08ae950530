"""edges: what a card refuses at the edge of a rule, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fp4ref.device import Call, MapOf, Pointer
from fp4ref.device.launch import Parameter
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Cta, Role
from fp4ref.trace import Bytes
from probes.edge_bodies import BODIES, IMAGE, MAP, MET
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


def _case(
    name: str,
    entry: str,
    buffers: dict[str, Bytes],
    *numbers: Parameter,
    outputs: tuple[str, ...] = ("out",),
    refusal: str = "",
    block: int = 32,
    size: int = 1,
    smem_nbytes: int = IMAGE,
) -> Case:
    """Return a case whose buffers are passed first, in their order."""
    maps = tuple(n for n in numbers if isinstance(n, MapOf))
    rest = tuple(n for n in numbers if not isinstance(n, MapOf))
    pointers = tuple(Pointer(each) for each in buffers if each != "tensor")
    # map_at has its offset between two buffers.
    first = 1 if entry == "map_at" else len(pointers)
    params = (*maps, *pointers[:first], *rest, *pointers[first:])
    call = Call(
        *(entry, buffers, params),
        grid=(size, 1, 1),
        block=(block, 1, 1),
        cluster=(size, 1, 1),
        smem_nbytes=smem_nbytes,
    )
    return Case(name, call, outputs, refusal)


def _refusals() -> Iterator[Case]:
    out = blank(128)
    for offset, refusal in ((0, ""), (1020, ""), (1536, "OutOfBounds")):
        yield _case(f"shared word {offset}", "shared_word", {"out": out},
                    np.uint32(offset), refusal=refusal)  # fmt: skip
    data = pattern_bytes(5, 512)
    for skip, target, nbytes in (
        *((0, 0, 128), (16, 32, 48)),
        *((0, 0, 24), (0, 0, 36), (8, 0, 32), (4, 0, 32), (0, 8, 32), (0, 4, 32)),
    ):
        yield _case(
            f"bulk {nbytes} from {skip} to {target}",
            "bulk_load",
            {"in": data, "out": blank(256)},
            *(np.uint32(skip), np.uint32(target), np.uint32(nbytes)),
            refusal="MisalignedAddress" if (skip | target | nbytes) % 16 else "",
            smem_nbytes=IMAGE + 256,
        )
    for offset in (0, 8, 4, 2):
        yield _case(f"mbarrier at {offset}", "barrier_at", {"out": out},
                    np.uint32(offset),
                    refusal="MisalignedAddress" if offset % 8 else "")  # fmt: skip
    for offset in (0, 64, 32, 16):
        yield _case(
            f"map at {offset}",
            "map_at",
            {"tensor": pattern_bytes(7, 1024), "room": blank(256), "out": blank(1024)},
            *(MAP, np.uint32(offset)),
            refusal="MisalignedAddress" if offset % 64 else "",
            smem_nbytes=2 * IMAGE,
        )


def _peers() -> Iterator[Case]:
    for which, name in enumerate(("test_wait", "init", "inval")):
        yield _case(f"remote {name}", "remote", {"out": blank(128)}, np.uint32(which),
                    refusal="ClusterFault", size=2)  # fmt: skip
    tensor = {"tensor": pattern_bytes(7, 1024), "out": blank(128)}
    yield _case("tile elsewhere", "tile_elsewhere", tensor, MAP,
                refusal="ClusterFault", size=2, smem_nbytes=2 * IMAGE)  # fmt: skip
    flag = {"out": blank(128), "flag": words([0])}
    yield _case("exited peer", "exited_peer", flag, refusal="ClusterFault", size=2)
    for which, name in enumerate(("arrival", "store", "tile")):
        buffers = {**tensor, "flag": words([0])}
        yield _case(f"exited peer, {name}", "gone", buffers, MAP, np.uint32(which),
                    refusal="ClusterFault", size=2, smem_nbytes=2 * IMAGE)  # fmt: skip
    yield _case("sixteen in a cluster", "no_grid_before", {"out": blank(128)},
                refusal="LaunchFault", size=16)  # fmt: skip


def _barriers() -> Iterator[Case]:
    for first, second in (
        *((0, 0), (1, 0), (2, 2), (3, 3), (4, 4)),
        *((2, 0), (0, 2), (3, 0), (2, 1), (1, 2), (4, 1)),
        *((2, 3), (3, 2), (2, 4), (3, 4), (4, 3)),
    ):
        names = MET[first], MET[second]
        yield _case(
            f"{names[0]}, then {names[1]}",
            "met",
            {"out": blank(256)},
            *(np.uint32(first), np.uint32(second)),
            refusal="" if first == second or max(first, second) < 2
            else "NamedBarrierFault",
            block=64,
        )  # fmt: skip


def _waits() -> Iterator[Case]:
    out, flag = blank(512), words([0])
    yield _case("exited warp", "exited_warp", {"out": out}, block=128)
    yield _case("counted", "counted", {"out": out, "flag": flag}, block=128)
    yield _case(
        "exited in cluster", "exited_in_cluster", {"out": out}, block=64, size=2
    )
    yield _case("no grid before", "no_grid_before", {"out": out})
    yield _case("readings", "readings", {"out": out}, np.uint32(20_000))
    data = pattern_bytes(9, 512)
    yield _case("short sources", "short_sources", {"in": data, "out": out})
    yield _case("copies arrive", "copies_arrive", {"in": data, "out": out})
    values = pattern(12, 16).view(np.uint8)
    maxima = {"values": values, "words": words([1, 2**31, 2**32 - 1, 0])}
    yield _case("maxima", "maxima", maxima, outputs=("words",))
    passed = {"out": out, "word": words([0]), "flag": flag}
    yield _case("passed", "passed", passed, block=64)
    two = {name: blank(1024) for name in ("first", "second", "out")}
    yield _case("older group", "older_group", two, outputs=("out", "first", "second"))


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.hardware`; what is in flight lands late."""
    call = case.call
    machine = Machine(call.cluster[0], make_schedule("late"))
    at = {n: machine.gmem.upload(n, d) for n, d in call.buffers.items()}
    numbers = [int(n) for n in call.params if isinstance(n, np.uint32)]

    def kernel(cta: Cta) -> Sequence[Role]:
        role = BODIES[call.entry]
        return [lambda warp: role(warp, at, numbers)] * (call.block[0] // 32)

    machine.launch(
        kernel, call.grid, cluster=call.cluster, smem_nbytes=call.smem_nbytes
    )
    return results(machine, at, case)


PROBE = Probe("edges", (*_refusals(), *_peers(), *_barriers(), *_waits()), emulate)
