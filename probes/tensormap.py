"""tensormap: every field replaced in random bytes, and copies by a changed map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as with_changes

import numpy as np

from fp4ref.device import Call, MapOf, Pointer
from fp4ref.hardware import mbarrier, smem, tensormap_proxy, tma
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from fp4ref.hardware.tensor_map import NBYTES, DataType
from fp4ref.trace import Range
from probes.probe import (
    Case,
    Outputs,
    Probe,
    blank,
    new_machine,
    pattern,
    pattern_bytes,
    results,
    tensor_map,
)

LANES = 32
IMAGE = 1024
POISON = 0xA5
MAP_OFFSET = 128

FIELDS: tuple[tuple[str, int, int | None], ...] = (
    ("global_address", 0, None),
    ("rank", 0, None),
    *(("box_dim", i, None) for i in range(5)),
    *(("global_dim", i, None) for i in range(5)),
    *(("element_stride", i, None) for i in range(5)),
    *(("global_stride", i, None) for i in range(4)),
    *(("elemtype", 0, i) for i in range(13)),
    *(("interleave_layout", 0, i) for i in range(3)),
    *(("swizzle_mode", 0, i) for i in range(4)),
    *(("fill_mode", 0, i) for i in range(2)),
)
"""Field, ordinal, and the code where it is an immediate: the cases of the kernel."""


def _replace(which: int, space: str) -> Case:
    field, ordinal, code = FIELDS[which]
    values = pattern(1000 + which, LANES)
    # Half of them small, as extents are; all-ones maps show bits that are cleared.
    values[::2] %= np.uint64(512)
    values[1] = 0
    maps = pattern_bytes(which, LANES * NBYTES)
    maps[:NBYTES], maps[NBYTES : 2 * NBYTES] = 0xFF, 0
    call = Call(
        f"replace_{space}",
        {"maps": maps, "values": values.view(np.uint8)},
        (Pointer("maps"), Pointer("values"), np.int32(which)),
        smem_nbytes=LANES * NBYTES,
    )
    name = f"{field} {ordinal if code is None else code} in {space}"
    return Case(name, call, ("maps",))


def _edit(
    name: str, m: MapOf, dims: tuple[int, int], pitch: int, coords: tuple[int, int]
) -> Case:
    """Use a map over one tensor for two others of another shape."""
    nbytes = m.box[0] * DataType(m.data_type).bits // 8 * m.box[1]
    size = -(-dims[1] * pitch // 16) * 16
    call = Call(
        "edit_and_load",
        {
            "tensor": pattern_bytes(1, m.strides[0] * m.dims[1]),
            "one": pattern_bytes(len(name), size),
            "two": pattern_bytes(len(name) + 99, size),
            "edited": blank(NBYTES),
            "image": blank(2 * nbytes),
        },
        (
            m,
            Pointer("edited"),
            Pointer("image"),
            Pointer("one"),
            Pointer("two"),
            np.uint32(dims[0]),
            np.uint32(dims[1]),
            np.uint64(pitch),
            np.int32(coords[0]),
            np.int32(coords[1]),
            np.uint32(nbytes),
        ),
        smem_nbytes=IMAGE + 2 * nbytes,
    )
    return Case(f"edit {name}", call, ("image",))


def cases() -> Iterator[Case]:
    """Every field in both state spaces, then maps that are changed and used."""
    for space in ("shared", "global"):
        for which in range(len(FIELDS)):
            yield _replace(which, space)
    for dtype, swizzle in ((0, 3), (1, 2), (9, 3), (7, 1), (1, 0)):
        bits = DataType(dtype).bits
        row = (128, 32, 64, 128)[swizzle] * 8 // bits
        placeholder = MapOf("tensor", dtype, (row, 8), (row * bits // 8,), (row, 8))
        m = with_changes(placeholder, swizzle=swizzle)
        wide = 4 * row
        kind = f"{DataType(dtype).name} swizzle {swizzle}"
        yield _edit(f"{kind}, inside", m, (wide, 32), wide * bits // 8, (row, 8))
        yield _edit(f"{kind}, past the end", m, (wide - 8, 13), wide * bits // 8,
                    (3 * row, 8))  # fmt: skip
        yield _edit(f"{kind}, pitch", m, (row, 9), 3 * row * bits // 8 + 16, (0, 4))


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.hardware`."""
    call = case.call
    if call.entry != "edit_and_load":
        field, ordinal, code = FIELDS[int(call.params[2])]  # type: ignore[arg-type]
        values = call.buffers["values"].view(np.uint64).tolist()
        maps = call.buffers["maps"].reshape(LANES, NBYTES)
        new = [
            tensormap_proxy.replaced(
                each.tobytes(), field, value if code is None else code, ordinal
            )
            for each, value in zip(maps, values, strict=True)
        ]
        return {"maps": np.frombuffer(b"".join(new), np.uint8)}
    return _edited(case)


def _edited(case: Case) -> Outputs:
    call = case.call
    machine, at = new_machine(call)
    placeholder = call.params[0]
    assert isinstance(placeholder, MapOf)
    data = tensor_map(placeholder, at["tensor"]).to_bytes()
    columns, rows, pitch, c0, c1, nbytes = (int(each) for each in call.params[5:])  # type: ignore[arg-type]
    fields = [("global_address", at["one"], 0), ("global_dim", columns, 0),
              ("global_dim", rows, 1), ("global_stride", pitch, 0)]  # fmt: skip

    def body(warp: Warp) -> Body:
        mbar = warp.cta.smem_base
        image = mbar + IMAGE
        smem.st(warp, image, blank(2 * nbytes, POISON))
        smem.fence_proxy_async(warp)
        mbarrier.init(warp, mbar, 1)
        mbarrier.fence_mbarrier_init(warp)
        smem.st(warp, mbar + MAP_OFFSET, np.frombuffer(data, np.uint8))
        for field, value, ordinal in fields:
            where = mbar + MAP_OFFSET
            tensormap_proxy.replace(warp, "shared::cta", where, field, value, ordinal)
        tensormap_proxy.cp_fenceproxy(warp, at["edited"], mbar + MAP_OFFSET, "gpu")
        yield from copy(warp, image, 0)
        tensormap_proxy.replace(
            warp, "global", at["edited"], "global_address", at["two"]
        )
        tensormap_proxy.fence_release(warp, "gpu")
        yield from copy(warp, image + nbytes, 1)
        got = smem.ld(warp, image, 2 * nbytes)
        machine.gmem.write(Range("gmem", at["image"], got.size), got.reshape(1, -1))

    def copy(warp: Warp, to: int, parity: int) -> Body:
        mbar = warp.cta.smem_base
        tensormap_proxy.fence_acquire(warp, at["edited"], "gpu")
        mbarrier.arrive_expect_tx(warp, mbar, nbytes)
        m = tensormap_proxy.use(warp, at["edited"], "cp.async.bulk.tensor")
        tma.load(warp, m, (c0, c1), to, mbar)
        yield from mbarrier.try_wait(warp, mbar, parity)

    def kernel(cta: Cta) -> Sequence[Role]:
        return [body]

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return results(machine, at, case)


PROBE = Probe("tensormap", tuple(cases()), emulate)
