"""triton_scaled_cases: ``tl.dot_scaled``, and attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import triton_attention
import triton_scaled
from triton_cases import (
    EVERY_BIT,
    POINTERS,
    Array,
    Case,
    Launch,
    bits,
    codes_of,
    product,
    rows_case,
    values_of,
    wide,
)

from fp4ref.numerics import (
    ScaleFormat,
    matmul_block_scaled,
    matmul_mxf8f6f4,
    pack_e2m1,
)
from fp4ref.numerics.elements import ElementFormat, element

_SCALE_TYPES = {16: ("e4m3", ScaleFormat.UE4M3), 32: ("u8", ScaleFormat.UE8M0)}


def _scale_codes(
    rng: np.random.Generator, rows: int, blocks: int, vec_size: int
) -> Array:
    if vec_size == 16:
        return rng.integers(0x20, 0x60, (rows, blocks)).astype(np.uint8)
    return rng.integers(119, 136, (rows, blocks)).astype(np.uint8)


def _small(rng: np.random.Generator, rows: int, k: int, kind: str) -> Array:
    if kind == "e2m1":
        return rng.integers(0, 16, (rows, k)).astype(np.uint8)
    return codes_of(wide(rng, rows, k), kind)


def _scaled(
    name: str,
    kinds: tuple[str, str],
    vec_size: int,
    tile: tuple[int, int, int],
    shape: tuple[int, int, int],
    **options: Any,
) -> Case:
    m, n, k = shape
    scale_type, scale_format = _SCALE_TYPES[vec_size]

    def launch(rng: np.random.Generator) -> Launch:
        a, b = (_small(rng, rows, k, x) for rows, x in zip((m, n), kinds, strict=True))
        sfa, sfb = (_scale_codes(rng, rows, k // vec_size, vec_size) for rows in (m, n))
        if kinds == ("e2m1", "e2m1"):
            d = matmul_block_scaled(
                a, b, sfa, sfb, scale_format=scale_format, vec_size=vec_size
            )
        else:
            of_a, of_b = map(ElementFormat, kinds)
            d = matmul_mxf8f6f4(a, b, sfa, sfb, a_format=of_a, b_format=of_b)
        stored = [
            pack_e2m1(x) if y == "e2m1" else x
            for x, y in zip((a, b), kinds, strict=True)
        ]
        return Launch(
            (m // tile[0], n // tile[1], 1),
            {"a": stored[0], "b": stored[1], "sfa": sfa, "sfb": sfb},
            ["a", "b", "d", "sfa", "sfb", m, n, k],
            {"d": bits(d)},
        )

    pack = [2 if kind == "e2m1" else 1 for kind in kinds]
    types = {
        f"{x}_ptr": POINTERS["u8" if y == "e2m1" else y]
        for x, y in zip("ab", kinds, strict=True)
    }
    types |= {"d_ptr": POINTERS["f32"], "sfa_ptr": POINTERS[scale_type]}
    types |= {"sfb_ptr": POINTERS[scale_type], **dict.fromkeys("MNK", "i32")}
    constants = {
        "A_FORMAT": kinds[0],
        "B_FORMAT": kinds[1],
        "A_PACK": pack[0],
        "B_PACK": pack[1],
        "BLOCK_M": tile[0],
        "BLOCK_N": tile[1],
        "BLOCK_K": tile[2],
        "SF_VEC_SIZE": vec_size,
    }
    what = f"{m}x{n}x{k}, tiles {'x'.join(map(str, tile))}"
    return Case(
        name,
        what,
        EVERY_BIT,
        triton_scaled.matmul_scaled,
        types,
        constants,
        launch,
        options,
    )


def _both_scaled() -> Iterator[Case]:
    four, eight = ("e2m1", "e2m1"), ("e4m3", "e4m3")
    yield _scaled(
        "NVFP4, 1 stage", four, 16, (128, 128, 256), (128, 128, 512), num_stages=1
    )
    yield _scaled(
        "NVFP4, 2 stages", four, 16, (128, 128, 128), (128, 128, 384), num_stages=2
    )
    yield _scaled(
        "NVFP4, 3 stages, 8 warps",
        four,
        16,
        (128, 256, 128),
        (128, 256, 512),
        num_stages=3,
        num_warps=8,
    )
    yield _scaled(
        "MXFP4, 4 stages", four, 32, (128, 64, 128), (128, 64, 768), num_stages=4
    )
    yield _scaled(
        "MXFP8 E4M3, 1 stage", eight, 32, (128, 128, 128), (128, 128, 256), num_stages=1
    )
    yield _scaled(
        "MXFP8 E4M3, 3 stages", eight, 32, (128, 64, 128), (128, 128, 384), num_stages=3
    )
    yield _scaled(
        "MXFP8 E5M2 x E4M3, 2 stages",
        ("e5m2", "e4m3"),
        32,
        (128, 64, 128),
        (128, 64, 384),
        num_stages=2,
    )
    yield _scaled(
        "MXFP8 x MXFP4, 2 stages",
        ("e4m3", "e2m1"),
        32,
        (128, 64, 128),
        (128, 64, 384),
        num_stages=2,
    )


def _widened() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        m, n, k = 128, 128, 192
        a = codes_of(wide(rng, m, k), "bf16")
        b = rng.integers(0, 16, (n, k)).astype(np.uint8)
        sfb = _scale_codes(rng, n, k // 32, 32)
        scales = np.repeat(element("ue8m0").decode(sfb), 32, axis=1)
        wide_b = codes_of(element("e2m1").decode(b) * scales, "bf16")
        d = product(a, wide_b, "bf16")
        return Launch(
            (1, 1, 1),
            {"a": a, "b": pack_e2m1(b), "sfb": sfb},
            ["a", "b", "d", "sfb", m, n, k],
            {"d": bits(d)},
        )

    return rows_case(
        "bf16 x MXFP4",
        "B widened to bf16 by Triton, A from TMEM or memory",
        triton_scaled.weights_scaled,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        {
            "a_ptr": "bf16",
            "b_ptr": "u8",
            "d_ptr": "f32",
            "sfb_ptr": "u8",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        launch,
        num_stages=2,
    )


def scaled() -> Iterator[Case]:
    """``tl.dot_scaled``."""
    yield from _both_scaled()
    yield _widened()


def _attention(kind: str, d: int, causal: bool, bound: float, **options: Any) -> Case:
    length, heads = 256, 1

    def launch(rng: np.random.Generator) -> Launch:
        q, k, v = (
            codes_of(rng.standard_normal((heads * length, d)), kind) for _ in range(3)
        )
        x, y, z = (values_of(c, kind).astype(np.float64) for c in (q, k, v))
        s = x @ y.T / np.sqrt(d)
        if causal:
            s = np.where(np.tril(np.ones_like(s)) > 0, s, -np.inf)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return Launch(
            (length // 128, heads, 1),
            {"q": q, "k": k, "v": v},
            ["q", "k", "v", "out", length, float(np.log2(np.e) / np.sqrt(d))],
            {"out": p @ z},
            {"out": p @ np.abs(z) * bound},
            {"out": "f32"},
        )

    stages, warps = options["num_stages"], options.get("num_warps", 4)
    name = f"attention {kind}, D = {d}{', causal' if causal else ''}, {stages} stages"
    types = {f"{x}_ptr": POINTERS[kind] for x in "qkv"} | {"out_ptr": POINTERS["f32"]}
    types |= {"length": "i32", "scale": "fp32"}
    constants = {"D": d, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": causal}
    return Case(
        name,
        f"{warps} warps, P from TMEM",
        f"{bound:.2g} of softmax(S) |V|: P in {kind}",
        triton_attention.attention,
        types,
        constants,
        launch,
        options,
    )


def attentions() -> Iterator[Case]:
    """Two products with a running softmax between them."""
    yield _attention("f16", 64, False, 2.0**-10, num_stages=1)
    yield _attention("f16", 64, True, 2.0**-10, num_stages=3)
    yield _attention("bf16", 128, True, 2.0**-7, num_stages=2, num_warps=8)
