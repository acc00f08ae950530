"""exhaustive: functions of one float32 for all 2^32 inputs.

A conversion to a small format is constant over long runs of patterns, so the places
where it changes hold all of it. An approximation changes everywhere: one sum per block
of 2^20 patterns stands for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, Pointer
from fp4ref.device.launch import Module
from probes.probe import probes

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
PER_THREAD = 4096
THREADS = 256
BLOCKS = 1 << 12
ROOM = 1 << 21

CHANGES = {"convert": ("e4m3", "bf16", "f16"),
           "header_formats": ("e2m1", "ue8m0_rp", "ue8m0_rz")}  # fmt: skip
CHECKSUMS = ("e4m3", "rcp", "ex2", "tanh_approx")


def changes(module: Module, name: str, blocks: int = BLOCKS) -> tuple[int, U32]:
    """Return how often the function changes, and (pattern, value) in order."""
    what = Call(
        f"changes_{name}",
        {"count": np.zeros(4, np.uint8), "out": np.zeros(8 * ROOM, np.uint8)},
        (
            Pointer("count"),
            Pointer("out"),
            np.uint32(ROOM),
            np.uint32(0),
            np.uint32(PER_THREAD),
        ),
        grid=(blocks, 1, 1),
        block=(THREADS, 1, 1),
    )
    found = module.run(what)
    count = int(found["count"].view(np.uint32)[0])
    pairs = found["out"].view(np.uint32).reshape(-1, 2)[: min(count, ROOM)]
    return count, pairs[np.argsort(pairs[:, 0])]


def pack_changes(pairs: U32) -> U32:
    """Return (distance from the last change, new value), shape (2, changes)."""
    steps = np.diff(pairs[:, 0], prepend=np.uint32(0))
    return np.stack([steps, pairs[:, 1]]).astype(np.uint32)


def runs(packed: U32) -> tuple[U32, U32, U32]:
    """Return first pattern, last pattern and value of every run of equal results."""
    first = np.cumsum(packed[0], dtype=np.uint32)
    values = packed[1]
    if first[0] != 0:
        first = np.concatenate([np.zeros(1, np.uint32), first])
        values = np.concatenate([np.zeros(1, np.uint32), values])
    last = np.append(first[1:] - np.uint32(1), np.uint32(0xFFFFFFFF))
    return first, last, values


def sources() -> dict[str, str]:
    """Digest of the sources of each probe that has such kernels."""
    return {name: probes()[name].sources_digest() for name in CHANGES}


def checksums(module: Module, name: str, blocks: int = BLOCKS) -> U64:
    """Return one sum per block of 2^20 patterns."""
    what = Call(
        f"checksum_{name}",
        {"sums": np.zeros(8 * blocks, np.uint8)},
        (Pointer("sums"), np.uint32(0)),
        grid=(blocks, 1, 1),
        block=(THREADS, 1, 1),
    )
    return module.run(what)["sums"].view(np.uint64)


def checksum(values: U32) -> int:
    """Return the same sum of 2^20 results on the host."""
    place = np.arange(values.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        return int((values.astype(np.uint64) * place).sum(dtype=np.uint64))


def table(module: Module, name: str, first: int, count: int = 1 << 23) -> U32:
    """Return the function of `count` consecutive patterns."""
    what = Call(
        f"table_{name}",
        {"out": np.zeros(4 * count, np.uint8)},
        (Pointer("out"), np.uint32(first)),
        grid=(count // THREADS, 1, 1),
        block=(THREADS, 1, 1),
    )
    return module.run(what)["out"].view(np.uint32)
