"""on_lanes: wrap a few PTX instructions into a kernel and run it on arrays of lanes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.machine import Machine, Races
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch, parse
from fp4ref.trace import Recorder

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
SCRATCH = """
    .reg .b8 %b<8>;
    .reg .b16 %h<16>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    .reg .b128 %q<4>;
    .reg .pred %p<8>;
"""
"""Registers that every body may use."""

Array = NDArray[Any]


def kernel(body: str, *, params: str = "", module: str = "") -> str:
    """A module with one entry; `body` is its instructions."""
    return (
        f"{HEADER}{module}\n.visible .entry k({params})\n{{{SCRATCH}{body}\n"
        "    ret;\n}\n"
    )


def machine(
    schedule: str | int = "eager",
    ordering: Ordering = "ptx",
    *,
    sms: int = 1,
    trace: bool = False,
    races: Races | None = None,
) -> Machine:
    recorder = Recorder() if trace else None
    return Machine(sms, make_schedule(schedule), ordering, recorder, races)


def run(
    body: str,
    *,
    threads: int = 32,
    params: str = "",
    values: bytes = b"",
    on: Machine | None = None,
    module: str = "",
    smem_nbytes: int = 0,
    grid: tuple[int, int, int] = (1, 1, 1),
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> list[str]:
    """Run a body that needs no arrays; returns what it printed."""
    program = Program.of(parse(kernel(body, params=params, module=module)))
    return launch(
        on or machine(),
        program,
        grid,
        (threads, 1, 1),
        values,
        cluster=cluster,
        smem_nbytes=smem_nbytes,
    )


def lanes(
    body: str,
    result: str,
    *,
    on: Machine | None = None,
    module: str = "",
    smem_nbytes: int = 0,
    **inputs: Array,
) -> Array:
    """Run `body` in one thread for each element; it turns %a, %b, ... into %d.

    `result` is the NumPy type of %d. Thread t gets element t of every input in the
    register of its name, and its number in %tid32.
    """
    on = on or machine()
    count = len(next(iter(inputs.values()))) if inputs else 32
    text = [".reg .b32 %tid32; .reg .b64 %tid64, %at;", "mov.u32 %tid32, %tid.x;"]
    text.append("cvt.u64.u32 %tid64, %tid32;")
    values = b""
    params = []
    for name, array in inputs.items():
        bits = 8 * array.itemsize
        values += struct.pack("<Q", on.gmem.upload(name, array))
        params.append(f".param .u64 k_{name}")
        text.append(
            f".reg .b{max(bits, 16)} %{name};"
            f"ld.param.u64 %at, [k_{name}];"
            f"mad.lo.u64 %at, %tid64, {array.itemsize}, %at;"
            f"ld.global.b{bits} %{name}, [%at];"
        )
    dtype = np.dtype(result)
    bits = 8 * dtype.itemsize
    out = on.gmem.allocate("out", count * dtype.itemsize)
    values += struct.pack("<Q", out)
    params.append(".param .u64 k_out")
    text.append(f".reg .b{max(bits, 16)} %d;")
    text.append(body)
    text.append(
        "ld.param.u64 %at, [k_out];"
        f"mad.lo.u64 %at, %tid64, {dtype.itemsize}, %at;"
        f"st.global.b{bits} [%at], %d;"
    )
    run(
        "\n    ".join(text),
        threads=count,
        params=", ".join(params),
        values=values,
        on=on,
        module=module,
        smem_nbytes=smem_nbytes,
    )
    return on.gmem.contents(out, count * dtype.itemsize).view(dtype)


def bits32(seed: int = 0, count: int = 1024) -> NDArray[np.uint32]:
    """Random patterns and the corners of 32-bit integers."""
    found = np.random.default_rng(seed).integers(0, 1 << 32, count).astype(np.uint32)
    corners = [0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF]
    corners += [0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]
    places = np.random.default_rng(seed + 1000).permutation(count)[: count // 4]
    found[places] = np.resize(np.array(corners, np.uint32), places.size)
    return found


def bits64(seed: int = 0, count: int = 1024) -> NDArray[np.uint64]:
    high = bits32(2 * seed + 7, count).astype(np.uint64)
    return high << np.uint64(32) | bits32(2 * seed + 8, count)


SPECIAL_FLOATS = np.array(
    [
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000,
        0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF,
        0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF,
        0x40490FDB, 0x4B800000, 0x7E800000, 0x01000000, 0x33800000, 0x34000000,
    ],
    np.uint32,
)  # fmt: skip


def floats(seed: int = 0, count: int = 1024) -> NDArray[np.float32]:
    """Random bit patterns, among them every special value several times."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 1 << 32, count).astype(np.uint32)
    places = rng.permutation(count)[: count // 2]
    found[places] = SPECIAL_FLOATS[rng.integers(0, SPECIAL_FLOATS.size, count // 2)]
    return found.view(np.float32)
