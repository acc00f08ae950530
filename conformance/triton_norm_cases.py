"""triton_norm_cases: kernels with reductions and approximate instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import triton_rows
from triton_cases import (
    Array,
    Case,
    Launch,
    bits,
    codes_of,
    rows_case,
    values_of,
    wide,
)


def _softmaxes() -> Iterator[Case]:
    def softmax(columns: int, kind: str) -> Callable[[np.random.Generator], Launch]:
        def launch(rng: np.random.Generator) -> Launch:
            x = codes_of(wide(rng, 3, columns, spread=3), kind)
            z = values_of(x, kind).astype(np.float64)
            z -= z.max(axis=1, keepdims=True)
            want = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
            bound = want * (2.0**-20 + np.abs(z) * 2.0**-22) + 2.0**-126
            return Launch(
                (3, 1, 1),
                {"x": x},
                ["x", "out", columns],
                {"out": want},
                {"out": bound},
                {"out": "f32"},
            )

        return launch

    text = "2^-20 + |x - max| 2^-22 of the value: ex2.approx, div.full"
    for kind, columns, block, warps in (("f32", 1008, 1024, 4), ("f16", 2032, 2048, 8)):
        yield rows_case(
            f"softmax {kind}, {warps} warps",
            "of a row",
            triton_rows.softmax,
            {"BLOCK": block},
            {"x_ptr": kind, "out_ptr": "f32", "columns": "i32"},
            softmax(columns, kind),
            text,
            num_warps=warps,
        )


def _layer_norm() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = codes_of(wide(rng, 3, 1024), "f16")
        w, b = wide(rng, 1024), wide(rng, 1024)
        z = values_of(x, "f16").astype(np.float64)
        z -= z.mean(axis=1, keepdims=True)
        scaled = z / np.sqrt((z * z).mean(axis=1, keepdims=True) + 1e-5)
        want = scaled * w + b
        size = (np.abs(scaled) + 1) * np.abs(w) + np.abs(b)
        return Launch(
            (3, 1, 1),
            {"x": x, "w": bits(w), "b": bits(b)},
            ["x", "w", "b", "out", 1e-5],
            {"out": want},
            {"out": size * 2.0**-19},
            {"out": "f32"},
        )

    return rows_case(
        "layer norm f16",
        "with weight and bias",
        triton_rows.layer_norm,
        {"BLOCK": 1024},
        {
            "x_ptr": "f16",
            "w_ptr": "f32",
            "b_ptr": "f32",
            "out_ptr": "f32",
            "eps": "fp32",
        },
        launch,
        "2^-19 of (|x| / s + 1) |w| + |b|",
    )


def _rms_norm() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = codes_of(wide(rng, 3, 1024), "bf16")
        w = wide(rng, 1024)
        z = values_of(x, "bf16").astype(np.float64)
        want = z / np.sqrt((z * z).mean(axis=1, keepdims=True) + 1e-5) * w
        return Launch(
            (3, 1, 1),
            {"x": x, "w": bits(w)},
            ["x", "w", "out", 1e-5],
            {"out": want},
            {"out": np.abs(want) * 2.0**-20 + 2.0**-126},
            {"out": "f32"},
        )

    return rows_case(
        "RMS norm bf16",
        "with weight",
        triton_rows.rms_norm,
        {"BLOCK": 1024},
        {"x_ptr": "bf16", "w_ptr": "f32", "out_ptr": "f32", "eps": "fp32"},
        launch,
        "2^-20 of the value: rsqrt.approx",
    )


def _dropout() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x, seed = wide(rng, 2048), 1234567
        uniform = _uniform(seed, np.arange(2048, dtype=np.uint32))
        kept = x * np.float32(4.0 / 3.0)
        want = np.where(uniform > np.float32(0.25), kept, np.float32(0))
        return Launch(
            (2, 1, 1), {"x": bits(x)}, ["x", "out", seed], {"out": bits(want)}
        )

    return rows_case(
        "dropout f32",
        "by Philox numbers",
        triton_rows.dropout,
        {"BLOCK": 1024},
        {"x_ptr": "f32", "out_ptr": "f32", "seed": "i32"},
        launch,
    )


def _quantize() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 3, 512, spread=5)
        scale = np.abs(x).max(axis=1) / np.float32(448)
        codes = codes_of(x / scale[:, None], "e4m3")
        return Launch(
            (3, 1, 1),
            {"x": bits(x)},
            ["x", "out", "scale"],
            {"out": codes, "scale": bits(scale)},
        )

    return rows_case(
        "quantise to E4M3",
        "rows by max |x| / 448",
        triton_rows.quantize_rows,
        {"BLOCK": 512},
        {"x_ptr": "f32", "out_ptr": "e4m3", "scale_ptr": "f32"},
        launch,
    )


def _cross_entropy() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 3, 1024)
        label = rng.integers(0, 1024, 3).astype(np.int32)
        z = x.astype(np.float64)
        largest = z.max(axis=1)
        total = np.log(np.exp(z - largest[:, None]).sum(axis=1)) + largest
        want = total - z[np.arange(3), label]
        bound = (np.abs(total) + np.abs(z).max(axis=1) + 1) * 2.0**-20
        return Launch(
            (3, 1, 1),
            {"x": bits(x), "label": label},
            ["x", "label", "out"],
            {"out": want},
            {"out": bound},
            {"out": "f32"},
        )

    return rows_case(
        "cross entropy f32",
        "of a row and its label",
        triton_rows.cross_entropy,
        {"BLOCK": 1024},
        {"x_ptr": "f32", "label_ptr": "i32", "out_ptr": "f32"},
        launch,
        "2^-20 of |log sum| + max |x| + 1",
    )


def normalisations() -> Iterator[Case]:
    """Kernels with reductions and approximate instructions."""
    yield from _softmaxes()
    yield _layer_norm()
    yield _rms_norm()
    yield _dropout()
    yield _quantize()
    yield _cross_entropy()


def _uniform(seed: int, counter: Array) -> Array:
    """Return `tl.rand`: word 0 of Philox 4x32-10, and its upper 31 bits as a float."""
    c = [counter.astype(np.uint64)] + [np.zeros(counter.size, np.uint64)] * 3
    key = [np.uint64(seed), np.uint64(0)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a = np.uint64(0xD2511F53) * c[0]
        b = np.uint64(0xCD9E8D57) * c[2]
        c = [
            b >> np.uint64(32) ^ c[1] ^ key[0],
            b & low,
            a >> np.uint64(32) ^ c[3] ^ key[1],
            a & low,
        ]
        key = [
            key[0] + np.uint64(0x9E3779B9) & low,
            key[1] + np.uint64(0xBB67AE85) & low,
        ]
    word = c[0].astype(np.uint32).view(np.int32)
    positive = np.where(word < 0, -word - 1, word)
    return positive.astype(np.float32) * np.float32(4.6566127342e-10)
