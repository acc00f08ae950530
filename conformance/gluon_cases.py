"""gluon_cases: each Gluon kernel, its launch, inputs, and meaning in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gluon_kernels
import numpy as np
from triton_cases import (
    EVERY_BIT,
    Case,
    Launch,
    bits,
    codes_of,
    operands,
    product,
    wide,
)

from fp4ref.numerics import ScaleFormat, matmul_block_scaled, pack_e2m1


def described(dtype: str, block: tuple[int, int], swizzle: int, width: int) -> str:
    """Triton's name of a tensor that the host describes, with its layout."""
    layout = (
        f"NVMMASharedLayout(swizzle_byte_width={swizzle}, element_bitwidth={width}, "
    )
    layout += "rank=2, transposed=False, fp4_padded=False, cga_layout=[])"
    return f"tensordesc<{dtype}[{block[0]}, {block[1]}],{layout}>"


def _add() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x, y = wide(rng, 4000), wide(rng, 4000)
        buffers = {"x": bits(x), "y": bits(y)}
        return Launch((8, 1, 1), buffers, ["x", "y", "out", 4000], {"out": bits(x + y)})

    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    return Case(
        "vadd f32",
        "x + y",
        EVERY_BIT,
        gluon_kernels.add,
        types,
        {"BLOCK": 512},
        launch,
        gluon=True,
    )


def _transpose() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = bits(wide(rng, 64, 96))
        want = {"out": np.ascontiguousarray(x.T)}
        return Launch((2, 3, 1), {"x": x}, ["x", "out", 64, 96], want)

    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "rows": "i32", "columns": "i32"}
    return Case(
        "transpose f32",
        "through a swizzled tile",
        EVERY_BIT,
        gluon_kernels.transpose,
        types,
        {"BLOCK": 32},
        launch,
        gluon=True,
    )


def _row_sums() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 64, 256)
        size = np.abs(x).sum(axis=1, dtype=np.float64)
        exact = x.sum(axis=1, dtype=np.float64)
        return Launch(
            (2, 1, 1),
            {"x": bits(x)},
            ["x", "out", 256],
            {"out": exact},
            {"out": size * 16 * 2.0**-24},
        )

    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "columns": "i32"}
    return Case(
        "row sums f32, cp.async",
        "3 stages of 32 x 32",
        "16 roundings of the sum of magnitudes: the order is the compiler's",
        gluon_kernels.row_sums,
        types,
        {"BLOCK": 32, "STAGES": 3},
        launch,
        gluon=True,
    )


def rows() -> Iterator[Case]:
    """Kernels without an MMA."""
    yield _add()
    yield _transpose()
    yield _row_sums()


def _matmuls() -> Iterator[Case]:
    def matmul(m: int, n: int, k: int) -> Any:
        def launch(rng: np.random.Generator) -> Launch:
            a, b = operands(rng, m, n, k, "f16")
            tensors = [("a", (m, k)), ("b", (n, k)), ("d", (m, n)), k]
            d = codes_of(product(a, b, "f16"), "f16")
            return Launch((m // 128, n // 128, 1), {"a": a, "b": b}, tensors, {"d": d})

        return launch

    tiles = {"a_desc": (128, 64), "b_desc": (128, 64), "d_desc": (128, 128)}
    types = {name: described("fp16", tile, 128, 16) for name, tile in tiles.items()}
    types["K"] = "i32"
    yield Case(
        "matmul f16",
        "ring of 3 TMA stages, 256x128x320",
        EVERY_BIT,
        gluon_kernels.matmul,
        types,
        {"STAGES": 3},
        matmul(256, 128, 320),
        gluon=True,
    )
    yield Case(
        "matmul f16, warps specialised",
        "loads, MMAs and epilogue, 128x128x448",
        EVERY_BIT,
        gluon_kernels.specialized,
        types,
        {"STAGES": 3},
        matmul(128, 128, 448),
        gluon=True,
    )


def _scaled() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        m, n, k = 128, 256, 512
        a, b = (rng.integers(0, 16, (x, k)).astype(np.uint8) for x in (m, n))
        sfa, sfb = (
            rng.integers(0x20, 0x60, (x, k // 16)).astype(np.uint8) for x in (m, n)
        )
        d = matmul_block_scaled(
            a, b, sfa, sfb, scale_format=ScaleFormat.UE4M3, vec_size=16
        )
        buffers = {"a": pack_e2m1(a), "b": pack_e2m1(b), "sfa": sfa, "sfb": sfb}
        tensors = [("a", (m, k // 2)), ("b", (n, k // 2)), "d", "sfa", "sfb", n, k]
        return Launch((2, 1, 1), buffers, tensors, {"d": bits(d)})

    types = {
        "a_desc": described("u8", (128, 128), 128, 8),
        "b_desc": described("u8", (128, 128), 128, 8),
        "d_ptr": "*fp32",
        "sfa_ptr": "*fp8e4nv",
        "sfb_ptr": "*fp8e4nv",
        "N": "i32",
        "K": "i32",
    }
    return Case(
        "NVFP4, TMA and tcgen05.mma",
        "128x256x512",
        EVERY_BIT,
        gluon_kernels.matmul_scaled,
        types,
        {"FORMAT": "e2m1", "VEC": 16},
        launch,
        gluon=True,
    )


def products() -> Iterator[Case]:
    """Kernels with an MMA."""
    yield from _matmuls()
    yield _scaled()
