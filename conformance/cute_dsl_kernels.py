"""cute_dsl_kernels: CuTe DSL's kernels on the emulated SM, ours and its tutorials.

Ours are made by cute_dsl/texts.py. NVIDIA's are read from a checkout of CUTLASS that
the environment variable CUTLASS_CHECKOUT names. Both are compiled by the Python that
CUTE_DSL_PYTHON names, or this one: it needs the package nvidia-cutlass-dsl.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from cute_dsl_python import python
from numpy.typing import NDArray
from wide_operands import wide_pair

from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode, swizzle_scales
from fp4ref.numerics import ScaleFormat, matmul_block_scaled, pack_e2m1
from fp4ref.numerics.dot_unscaled import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat
from fp4ref.ptx import Program, launch, parse

FOLDER = Path(__file__).with_name("cute_dsl")
TUTORIALS = "examples/python/CuTeDSL/cute/blackwell/tutorial/tutorial_gemm"
ATOM = 256
"""Elements of 16 bits in an atom of scales, 128 rows by four blocks."""


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel and how its parameters are laid out.

    Attributes
    ----------
    tile_n
        Columns of a tile; it has 128 rows for each CTA.
    rank
        Of the tensor maps of A and B; those of the scales have one more.
    half
        Whether D is float16, else float32.
    """

    scaled: bool
    ctas: int
    tile_n: int
    rank: int
    half: bool

    @property
    def tile_k(self) -> int:
        """K elements of a stage: 128 bytes of a row."""
        return 256 if self.scaled else 64


OURS = {
    "fp16": Kernel(False, 1, 128, 2, False),
    "fp16-pair": Kernel(False, 2, 128, 2, False),
    "nvfp4": Kernel(True, 1, 128, 2, False),
    "nvfp4-pair": Kernel(True, 2, 128, 2, False),
}
THEIRS = {
    "fp16_gemm_0": Kernel(False, 1, 256, 2, True),
    "nvfp4_gemm_0": Kernel(True, 1, 256, 3, True),
    "nvfp4_gemm_1": Kernel(True, 2, 256, 3, True),
}
KERNELS = OURS | THEIRS


@cache
def program(name: str, size: tuple[int, int, int]) -> Program:
    """Compile a kernel and parse it."""
    script = "texts.py" if name in OURS else "tutorials.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        command = [python(), str(FOLDER / script), name, *map(str, size), str(path)]
        environment = os.environ | {"CUTE_DSL_DUMP_DIR": folder, "PYTHONPATH": ""}
        subprocess.run(
            command, check=True, env=environment, cwd=folder, capture_output=True
        )
        return Program.of(parse(path.read_text()))


def _map(
    kind: DataType, address: int, dims: Sequence[int], box: Sequence[int], rank: int
) -> TensorMap:
    """Return a dense map of `rank` dimensions; what is missing has extent 1."""
    dims = (*dims, *(1,) * (rank - len(dims)))
    box = (*box, *(1,) * (rank - len(box)))
    strides, pitch = [], kind.bits
    for extent in dims[:-1]:
        pitch *= extent
        strides.append(pitch // 8)
    is_scale = kind is DataType.UINT16
    swizzle = SwizzleMode.NONE if is_scale else SwizzleMode.B128
    return TensorMap(kind, address, dims, tuple(strides), tuple(box), swizzle=swizzle)


def _params(
    on: Machine, kernel: Kernel, size: tuple[int, int, int], data: dict[str, bytes]
) -> tuple[list[bytes], int]:
    """Return the maps' bytes, A, B, SFA and SFB, and D's address."""
    m, n, k = size
    at = {
        name: on.gmem.upload(name, np.frombuffer(content, np.uint8))
        for name, content in data.items()
    }
    kind = DataType.U4_ALIGN8B if kernel.scaled else DataType.FLOAT16
    of_cta = {"A": 128, "B": kernel.tile_n // kernel.ctas}
    maps = [
        _map(kind, at[x], (k, rows), (kernel.tile_k, of_cta[x]), kernel.rank)
        for x, rows in (("A", m), ("B", n))
    ]
    if kernel.scaled:
        atoms = k // 64
        # Each CTA of a pair loads half of the scales of B, and multicasts it: a block
        # of 128 columns, or where there is one only, half of its atoms along K.
        blocks = kernel.tile_n // 128
        half = (4, blocks // 2) if blocks > 1 else (2, 1)
        parts = {"SFA": (4, 1), "SFB": half if kernel.ctas == 2 else (4, blocks)}
        for x, rows in (("SFA", m), ("SFB", n)):
            dims, box = (ATOM, atoms, rows // 128), (ATOM, *parts[x])
            maps.append(_map(DataType.UINT16, at[x], dims, box, kernel.rank + 1))
    d = on.gmem.allocate("D", m * n * (2 if kernel.half else 4))
    return [each.to_bytes() for each in maps], d


def _pack(
    found: Program, maps: list[bytes], d: int, size: tuple[int, int, int], rank: int
) -> bytes:
    """Lay the parameters out: flags of the MMAs, a map and its extents each, D."""
    m, n, k = size
    extents = [(rows, k, 1)[:rank] for rows in (m, n)] + [()] * 2
    filled = bytearray(found.param_nbytes)
    places = found.param_offsets
    waiting = iter(zip(maps, extents, strict=False))
    extent: tuple[int, ...] = ()
    last = found.entry.params[-1]
    for parameter in found.entry.params:
        at = places[parameter.name]
        content = b""
        if parameter is last:
            whole = (m, n) if rank == 2 else (m, n, 1)
            content = struct.pack(f"<Q{len(whole) + 2}i", d, *whole, n, m * n)
        elif parameter.nbytes == 128:
            content, extent = next(waiting)
        elif extent:
            content = struct.pack(f"<{len(extent)}i", *extent)
            extent = ()
        filled[at : at + len(content)] = content[: parameter.nbytes]
    return bytes(filled)


def _operands(
    kernel: Kernel, size: tuple[int, int, int]
) -> tuple[dict[str, bytes], NDArray[np.float32]]:
    """Return the matrices as bytes, and the accumulators by the MMA model."""
    m, n, k = size
    if kernel.scaled:
        a, b = wide_pair(m + n + k, m, n, k)
        data = {
            "A": pack_e2m1(a.codes).tobytes(),
            "B": pack_e2m1(b.codes).tobytes(),
            "SFA": swizzle_scales(a.scales).tobytes(),
            "SFB": swizzle_scales(b.scales).tobytes(),
        }
        model = matmul_block_scaled(
            *(a.codes, b.codes, a.scales, b.scales),
            scale_format=ScaleFormat.UE4M3,
            vec_size=16,
        )
        return data, model
    rng = np.random.default_rng([m, n, k])
    # Exponents far apart: sums are cut off at the bits of the largest term.
    halves = [
        (rng.standard_normal((rows, k)) * 2.0 ** rng.integers(-8, 9, (rows, k))).astype(
            np.float16
        )
        for rows in (m, n)
    ]
    codes = [x.view(np.uint16) for x in halves]
    model = matmul_unscaled(
        *codes, a_format=ElementFormat.F16, b_format=ElementFormat.F16
    )
    return {name: x.tobytes() for name, x in zip("AB", halves, strict=True)}, model


def run(
    name: str, size: tuple[int, int, int], schedule: str | int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the bits of D from the kernel, and those of the model."""
    kernel = KERNELS[name]
    m, n, _ = size
    data, model = _operands(kernel, size)
    on = Machine(2, make_schedule(schedule), "shipped")
    maps, d = _params(on, kernel, size, data)
    found = program(name, size)
    launch(
        on,
        found,
        (m // 128, n // kernel.tile_n, 1),
        (128, 1, 1),
        _pack(found, maps, d, size, kernel.rank),
        cluster=(kernel.ctas, 1, 1),
        smem_nbytes=227 << 10,
    )
    nbytes = m * n * (2 if kernel.half else 4)
    bits = np.uint16 if kernel.half else np.uint32
    got = on.gmem.contents(d, nbytes).view(bits).reshape(m, n)
    if kernel.half:
        with np.errstate(over="ignore"):
            narrow = model.astype(np.float16)
        narrow[np.isnan(model)] = np.uint16(0x7FFF).view(np.float16)
        return got.astype(np.uint32), narrow.view(np.uint16).astype(np.uint32)
    return got, model.view(np.uint32)


def check(
    name: str, sizes: Sequence[tuple[int, int, int]], schedules: Sequence[str | int]
) -> None:
    """Compare every bit of D with the MMA model.

    Raises
    ------
    AssertionError
        A bit differs.
    ModuleNotFoundError
        CuTe DSL, or the checkout that is to be read, is not there.
    """
    if name in THEIRS and "CUTLASS_CHECKOUT" not in os.environ:
        raise ModuleNotFoundError("no checkout", name="CUTLASS_CHECKOUT")
    for size in sizes:
        for schedule in schedules:
            got, want = run(name, size, schedule)
            wrong = int((got != want).sum())
            assert wrong == 0, f"{size}, {schedule}: {wrong} of {want.size} differ"


_TOLD = {
    "fp16": "kind::f16 MMA of K-major FP16, tiles 128 bytes into a pattern",
    "nvfp4": "scales by TMA and UTCCP, tiles 128 bytes into a pattern",
}


def rows(
    schedules: Sequence[str | int],
) -> Iterator[tuple[str, str, str, str, Callable[[], None]]]:
    """Return name, source, what is exercised, cases and check of every kernel."""
    sizes = [(256, 256, 512)]
    for name, kernel in KERNELS.items():
        author = "text of ours" if name in OURS else "tutorial_gemm of NVIDIA/cutlass"
        told = _TOLD["nvfp4" if kernel.scaled else "fp16"]
        yield (
            f"CuTe DSL {name}",
            f"{author}, compiled by PyPI nvidia-cutlass-dsl",
            told + (", pairs of CTAs, multicast" if kernel.ctas == 2 else ""),
            f"1 shape, {len(schedules)} schedules, against the MMA model",
            partial(check, name, sizes, schedules),
        )


if __name__ == "__main__":
    for each in sys.argv[1:]:
        check(each, [(256, 256, 512)], ("eager", "late", 1))
        print(each, "passed")
