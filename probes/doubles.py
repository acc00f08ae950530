"""doubles: record the approximations of float64 on a card.

``python -m probes.doubles OUT.npz`` asks the card: for ``rcp.approx.ftz.f64`` and
``rsqrt.approx.ftz.f64`` the table of upper words, one sum for each 2^20 of all 2^32
upper words, and how many results depend on the lower word; for ``rsqrt.approx.f64``,
which ptxas makes of several instructions, sums over random patterns. It says whether
the table explains one sum of `STRIDE` (`upper_words`); ``make soak`` asks for all. PTX:
with ``.ftz`` the lower words of operand and result are ignored and 0.
"""

from __future__ import annotations

import datetime
import json
import lzma
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, Pointer, compile_cuda, find_gpu
from fp4ref.device.launch import Module
from fp4ref.ptx.instructions.double_reciprocals import (
    FRACTION,
    ONE,
    exact,
    upper_words,
)
from probes.exhaustive import checksum
from probes.probe import ARCH, FOLDER

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
SOURCE = FOLDER / "doubles.cu"
FILES = ("doubles.cu", "probe.cuh")
BINADES = {"rcp": 1, "rsqrt_ftz": 2}
"""How many binades from 1 on a function's table has."""
BLOCKS = 1 << 12
STRIDE = 64
THREADS = 256

SAMPLES: U64 = np.array(
    [0, 1 << 63, 1, 1 << 63 | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000]
    + [0x3FF0000000000000, 0x3FF00000FFFFFFFF, 0x4000000000000000, 0x7FEFFFFFFFFFFFFF]
    + [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0xFFF0000000000001]
    + [0x7FF8000000000000, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF, 0xBFF0000000000000],
    np.uint64,
)
"""Zeros, subnormals, ones, the largest, infinities and NaN."""


def pack(name: str, table: U32) -> NDArray[np.uint8]:
    """Compress a table by its distance from the rounded results.

    Raises
    ------
    ValueError
        A result is further away than a byte can say.
    """
    first = np.arange(ONE, ONE + table.size, dtype=np.int64)
    offsets = table.astype(np.int64) - exact(name, first)
    if np.abs(offsets).max() > 127:
        raise ValueError(f"{name}: off by {int(np.abs(offsets).max())} units")
    packed = lzma.compress(offsets.astype(np.int8).tobytes(), preset=9)
    return np.frombuffer(packed, np.uint8)


def unexplained(name: str, table: U32, sums: U64, blocks: range) -> list[int]:
    """Return the blocks of 2^20 upper words whose sum the table does not give."""
    block = np.arange(1 << 20, dtype=np.uint32)
    return [
        i
        for i in blocks
        if checksum(upper_words(name, table, block + np.uint32(i << 20)))
        != int(sums[i])
    ]


def record(module: Module) -> dict[str, NDArray[np.generic]]:
    """Run every kernel; return the arrays of the record."""
    arrays: dict[str, NDArray[np.generic]] = {"samples": SAMPLES}
    for name, binades in BINADES.items():
        count = binades << FRACTION
        call = Call(
            f"table_{name}",
            {"out": np.zeros(4 * count, np.uint8)},
            (Pointer("out"), np.uint32(ONE)),
            grid=(count // THREADS, 1, 1),
            block=(THREADS, 1, 1),
        )
        arrays[f"table/{name}"] = module.run(call)["out"].view(np.uint32)
        sizes = {"sums": 8, "low": 4, "changed": 4}
        buffers = {k: np.zeros(n * BLOCKS, np.uint8) for k, n in sizes.items()}
        pointers = tuple(Pointer(k) for k in sizes)
        found = module.run(_sums(name, buffers, pointers))
        for key, nbytes in sizes.items():
            arrays[f"{key}/{name}"] = found[key].view(f"u{nbytes}")
    buffers = {"sums": np.zeros(8 * BLOCKS, np.uint8)}
    found = module.run(_sums("rsqrt_all", buffers, (Pointer("sums"),)))
    arrays["sums/rsqrt_all"] = found["sums"].view(np.uint64)
    for name in (*BINADES, "rsqrt_all"):
        buffers = {
            "in": SAMPLES.view(np.uint8),
            "out": np.zeros(SAMPLES.nbytes, np.uint8),
        }
        params = (Pointer("in"), Pointer("out"), np.uint32(SAMPLES.size))
        call = Call(f"samples_{name}", buffers, params, block=(32, 1, 1))
        arrays[f"samples/{name}"] = module.run(call)["out"].view(np.uint64)
    return arrays


def _sums(
    name: str, buffers: dict[str, NDArray[np.uint8]], pointers: tuple[Pointer, ...]
) -> Call:
    return Call(
        f"sums_{name}",
        buffers,
        (*pointers, np.uint32(0)),
        grid=(BLOCKS, 1, 1),
        block=(THREADS, 1, 1),
    )


def main(arguments: list[str]) -> int:
    """Record, pack and say what the tables explain."""
    (out,) = arguments
    gpu = find_gpu()
    if not gpu:
        print(gpu.missing)
        return 1
    made = compile_cuda(SOURCE.read_text(), ARCH, name=SOURCE.name, include=[FOLDER])
    arrays = record(Module(made.cubin))
    for name in BINADES:
        table, sums = arrays[f"table/{name}"], arrays[f"sums/{name}"]
        try:
            arrays[f"table/{name}"] = pack(name, table.astype(np.uint32))
        except ValueError as error:
            print(f"{error}; the table is kept as it is")
        some = range(0, BLOCKS, STRIDE)
        wrong = unexplained(name, table.astype(np.uint32), sums.astype(np.uint64), some)
        print(f"{name}: the table gives {len(some) - len(wrong)} of {len(some)} sums")
        if wrong:
            print(f"  not in blocks {wrong[:8]}")
        for key in ("low", "changed"):
            print(f"  {key}: {int(arrays[f'{key}/{name}'].astype(np.int64).sum()):,}")
    digest = sha256(b"".join((FOLDER / name).read_bytes() for name in FILES))
    major, minor = gpu.capability
    meta = {
        "card": gpu.card,
        "capability": f"{major}.{minor}",
        "driver": gpu.driver,
        "nvrtc": made.nvrtc,
        "date": datetime.date.today().isoformat(),
        "sources": digest.hexdigest(),
    }
    np.savez_compressed(out, meta=np.array(json.dumps(meta)), **arrays)
    print(f"written: {out}, {Path(out).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
