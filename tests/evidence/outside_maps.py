"""outside_maps: tensor maps and tensor copies, as other emulators have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from on_machine import MBAR, TILE
from order_cases import ready
from outside_programs import Body, Program

from fp4ref.errors import TensorMapError
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware import tensormap_proxy as maps
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

COPIED = TILE + 0x400


def _padded(warp: Any) -> TensorMap:
    """Return a map of 4-bit elements, 16 of them in 16 bytes of shared memory."""
    address = warp.machine.gmem.upload("packed", np.arange(256, dtype=np.uint8))
    box, none = (128, 1), SwizzleMode.NONE
    kind = DataType.U4_ALIGN16B
    return TensorMap(kind, address, (256, 2), (128,), box, swizzle=none)


def padded_load(first: int) -> tuple[Body, ...]:
    """A box of padded elements is loaded from some first coordinate on."""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 64)
        tma.load(warp, _padded(warp), (first, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        data = smem.ld(warp, TILE, 8).ravel()
        warp.machine.said += (data - first // 2).tolist()

    return (body,)


def padded_store(kind: str) -> tuple[Body, ...]:
    """A box is stored; of what no unit stores the refusal alone is asked for."""

    def body(warp: Any) -> None:
        packed = kind == "U4_ALIGN16B"
        m = _padded(warp) if packed else warp.machine.tensor_map
        tma._check_store(warp, m, (0, 0), TILE)
        warp.machine.said.append("taken")

    return (body,)


def padding(_: str) -> tuple[Body, ...]:
    """Which of 16 bytes of shared memory does a padded load write?"""

    def body(warp: Any) -> Any:
        yield from ready(warp, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 64)
        tma.load(warp, _padded(warp), (0, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        first = TILE - warp.cta.smem.base
        written = warp.cta.smem.written[first : first + 128].reshape(8, 16)
        warp.machine.said += [int(each.sum()) for each in written]

    return (body,)


def interleaved(variant: tuple[str, int]) -> tuple[Body, ...]:
    """A map of three dimensions in an interleaved layout, or in none."""
    name, interleave = variant

    def body(warp: Any) -> None:
        kind = DataType[name]
        row = 128 if kind is DataType.U6_ALIGN16B else 32
        shape, strides = (row, 8, 8), (128, 1024)
        options = {"interleave": interleave, "swizzle": SwizzleMode.NONE}
        if interleave == 2:
            options["swizzle"] = SwizzleMode.B32
        try:
            TensorMap(kind, 0x10000, shape, strides, (row, 1, 1), **options)
            warp.machine.said.append("taken")
        except TensorMapError as error:
            refusal = "no interleaved layout" in str(error)
            warp.machine.said.append("interleave" if refusal else "otherwise")

    return (body,)


def other_map(released: str) -> tuple[Body, ...]:
    """A map is changed, another one copied with its fence; the first is used."""

    def body(warp: Any) -> Any:
        machine = warp.machine
        at, tensor = machine.map_at, machine.tensor_map.address
        data = np.frombuffer(machine.tensor_map.to_bytes(), np.uint8)
        second = machine.gmem.upload("second", data)
        smem.st(warp, COPIED, data)
        maps.replace(warp, "global", at, "global_address", tensor)
        if released == "by a fence":
            maps.fence_release(warp, "gpu")
        maps.cp_fenceproxy(warp, second, COPIED, "gpu")
        for each in (at, second):
            maps.fence_acquire(warp, each, "gpu")
        maps.use(warp, second, "cp.async.bulk.tensor.2d.load")
        if released != "the copy alone":
            maps.use(warp, at, "cp.async.bulk.tensor.2d.load")
        yield from ()

    return (body,)


def named_barrier_of(rank: int) -> tuple[Body, ...]:
    """A tile for both CTAs; the mbarrier named is that of the even or the odd one."""

    def body(warp: Any) -> Any:
        base, mine = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if mine == rank:
            mbarrier.arrive_expect_tx(warp, base, 256)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if mine == 0:
            at = cluster.mapa(warp, MBAR, rank)
            m = warp.machine.tensor_map
            tma.load(warp, m, (0, 0), TILE, at, 0b11, cta_group=2)
        if mine == rank:
            yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return (body,)


PANTHEON = "pantheonsim, tests/unit/test_blackwell.cpp, "
PROGRAMS = {
    "first coordinate of a padded load": Program(
        f"{PANTHEON}tma_packed_types_refuse_what_the_isa_rules_out",
        padded_load,
        {0: "0 1 2 3 4 5 6 7", 128: "0 1 2 3 4 5 6 7", 64: "error"},
    ),
    "padded store": Program(
        f"{PANTHEON}tma_packed_types_refuse_what_the_isa_rules_out",
        padded_store,
        {"U4_ALIGN16B": "error", "UINT8": "taken"},
    ),
    "padding of a padded load": Program(
        "Ventus, model of the TMA, DecodeAndPlan: 8 bytes in the mask of each 16",
        padding,
        {"U4_ALIGN16B": " ".join(["8"] * 8)},
    ),
    "interleaved map of 6 bits": Program(
        "Ventus, model of the TMA, Decode: sub-byte maps require none",
        interleaved,
        {
            ("U6_ALIGN16B", 0): "taken",
            ("U6_ALIGN16B", 1): "interleave",
            ("UINT8", 1): "taken",
        },
    ),
    "maps that a copy does not release": Program(
        "TIRx-Harness, numsim-core, tma: a changed map that no release published",
        other_map,
        {"the copy alone": "clean", "by a fence": "clean", "by none": "error"},
    ),
    "named mbarrier of a pair": Program(
        "TIRx-Harness, numsim-core, tma: the rank of the mbarrier picks the CTA",
        named_barrier_of,
        {0: "clean", 1: "clean"},
        {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2},
    ),
}
