"""triton_matmul_cases: ``tl.dot`` with plain loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import triton_matmul
from triton_cases import (
    EVERY_BIT,
    POINTERS,
    Case,
    Launch,
    bits,
    codes_of,
    operands,
    product,
    rows_case,
    wide,
)

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


def _matmul(
    kind: str,
    out: str,
    tile: tuple[int, int, int],
    shape: tuple[int, int, int],
    precision: str = "tf32",
    **options: Any,
) -> Case:
    m, n, k = shape

    def launch(rng: np.random.Generator) -> Launch:
        a, b = operands(rng, m, n, k, kind)
        d = product(a, b, kind)
        found = Launch(
            (-(-m // tile[0]), -(-n // tile[1]), 1),
            {"a": a, "b": b},
            ["a", "b", "d", m, n, k],
            {"d": codes_of(d, out)},
            kind={"d": out},
        )
        if precision == "tf32x3":
            x, y = (z.view(np.float32).astype(np.float64) for z in (a, b))
            found.want["d"] = x @ y.T
            found.bound["d"] = np.abs(x) @ np.abs(y).T * 2.0**-19
        return found

    types = {f"{x}_ptr": POINTERS[kind] for x in "ab"} | {"d_ptr": POINTERS[out]}
    types |= dict.fromkeys("MNK", "i32")
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile, strict=True))
    stages, warps = options.get("num_stages", 3), options.get("num_warps", 4)
    label = precision if precision == "tf32x3" else "tf32" if kind == "f32" else kind
    name = f"matmul {label}, {'x'.join(map(str, tile))}, {stages} stages, {warps} warps"
    compared = EVERY_BIT
    if precision == "tf32x3":
        compared = "2^-19 of |A| |B|: three products of split operands"
    return Case(
        name,
        f"D in {out}, K contiguous, ragged {m}x{n}x{k}",
        compared,
        triton_matmul.matmul,
        types,
        constants | {"PRECISION": precision},
        launch,
        {"num_stages": 3} | options,
    )


def _k_major() -> Iterator[Case]:
    big = (128, 128, 64)
    yield _matmul("f16", "f32", big, (160, 144, 208), num_stages=1)
    yield _matmul("f16", "f32", big, (128, 144, 208), num_stages=2)
    yield _matmul("f16", "f16", big, (160, 128, 208), num_stages=3)
    yield _matmul(
        "f16", "f16", (256, 128, 64), (256, 128, 336), num_stages=4, num_warps=8
    )
    yield _matmul(
        "bf16", "bf16", (128, 256, 64), (144, 256, 272), num_stages=3, num_warps=8
    )
    yield _matmul("bf16", "f32", (128, 64, 32), (128, 112, 144), num_stages=4)
    yield _matmul("e4m3", "f32", (128, 128, 128), (128, 144, 416), num_stages=3)
    yield _matmul("e5m2", "f32", (128, 128, 128), (144, 128, 272), num_stages=2)
    yield _matmul("f32", "f32", (128, 128, 32), (128, 144, 80), num_stages=1)
    yield _matmul("f32", "f32", (128, 64, 32), (128, 64, 144), num_stages=3)
    yield _matmul("f32", "f32", (128, 64, 32), (128, 64, 80), "tf32x3", num_stages=1)
    yield _matmul("f16", "f32", (32, 32, 32), (48, 32, 112), num_stages=3)
    yield _matmul("bf16", "f32", (16, 16, 64), (32, 48, 144), num_stages=2)


def _n_major() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        m, n, k = 128, 128, 192
        a, b = operands(rng, m, n, k, "bf16")
        bias = wide(rng, n)
        d = np.maximum(product(a, b, "bf16") + bias, np.float32(0))
        return Launch(
            (1, 1, 1),
            {"a": a, "b": np.ascontiguousarray(b.T), "bias": bits(bias)},
            ["a", "b", "bias", "d", m, n, k],
            {"d": codes_of(d, "bf16")},
        )

    return rows_case(
        "matmul bf16, N-major B, bias, ReLU",
        "3 stages",
        triton_matmul.matmul_n_major,
        TILE,
        {
            "a_ptr": "bf16",
            "b_ptr": "bf16",
            "bias_ptr": "f32",
            "d_ptr": "bf16",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        launch,
        num_stages=3,
    )


def _split_k() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        m, n, k, parts = 128, 64, 512, 4
        a, b = operands(rng, m, n, k, "f16")
        steps = (np.arange(k) // 64) % parts
        sums = [
            product(a[:, steps == p], b[:, steps == p], "f16") for p in range(parts)
        ]
        exact = np.sum(sums, axis=0, dtype=np.float64)
        size = np.sum(np.abs(sums), axis=0, dtype=np.float64)
        return Launch(
            (1, 1, parts),
            {"a": a, "b": b, "d": np.zeros((m, n), np.uint32)},
            ["a", "b", "d", m, n, k],
            {"d": exact},
            {"d": size * 4 * 2.0**-24},
            {"d": "f32"},
        )

    return rows_case(
        "matmul f16, split-K",
        "4 parts of the model's bits by atomics",
        triton_matmul.split_k,
        TILE | {"PARTS": 4, "BLOCK_N": 64},
        {
            "a_ptr": "f16",
            "b_ptr": "f16",
            "d_ptr": "f32",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        launch,
        "4 roundings of the parts' magnitudes: the order is free",
        num_stages=2,
    )


def _batched() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        n, k, count = 64, 192, 2
        pairs = [operands(rng, 128, n, k, "f16") for _ in range(count)]
        d = [codes_of(product(a, b, "f16"), "f16") for a, b in pairs]
        return Launch(
            (1, count, 1),
            {
                "a": np.concatenate([a for a, _ in pairs]),
                "b": np.concatenate([b for _, b in pairs]),
            },
            ["a", "b", "d", n, k],
            {"d": np.concatenate(d)},
        )

    return rows_case(
        "matmul f16, batched",
        "2 batches, 3 stages",
        triton_matmul.batched,
        TILE | {"BLOCK_N": 64},
        {"a_ptr": "f16", "b_ptr": "f16", "d_ptr": "f16", "N": "i32", "K": "i32"},
        launch,
        num_stages=3,
    )


def matmuls() -> Iterator[Case]:
    """``tl.dot`` with plain loads, by tcgen05 and by mma.sync."""
    yield from _k_major()
    yield _n_major()
    yield _split_k()
    yield _batched()
