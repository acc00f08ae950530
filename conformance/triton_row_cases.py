"""triton_row_cases: kernels of one number each, and those that move and count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton_rows
from triton_cases import (
    EVERY_BIT,
    POINTERS,
    Array,
    Case,
    Launch,
    bits,
    codes_of,
    rows_case,
    values_of,
    wide,
)

from fp4ref.numerics import (
    fma_f32,
)


def _elementwise(
    name: str,
    what: str,
    kernel: Any,
    kind: str,
    meaning: Callable[..., Array],
    bound: Callable[..., Array] | None = None,
    compared: str = EVERY_BIT,
    out: str = "",
) -> Case:
    out = out or kind
    count, block = 5 * 1024 - 16, 1024

    def launch(rng: np.random.Generator) -> Launch:
        x, y = (codes_of(wide(rng, count, spread=6), kind) for _ in range(2))
        a, b = values_of(x, kind), values_of(y, kind)
        want = meaning(a, b)
        found = Launch(
            (-(-count // block), 1, 1),
            {"x": x, "y": y},
            ["x", "y", "out", count],
            {"out": codes_of(want, out) if bound is None else want},
            kind={"out": out},
        )
        if bound is not None:
            found.bound["out"] = bound(a, b)
        return found

    types = {"x_ptr": POINTERS[kind], "y_ptr": POINTERS[kind]}
    types |= {"out_ptr": POINTERS[out], "n": "i32"}
    return Case(name, what, compared, kernel, types, {"BLOCK": block}, launch)


def _fma(a: Array, b: Array, c: Array) -> Array:
    return fma_f32(a, b, c)


def _half_steps(kind: str) -> Callable[[Array, Array], Array]:
    def meaning(x: Array, y: Array) -> Array:
        def rounded(z: Array) -> Array:
            return values_of(codes_of(z, kind), kind)

        # Triton makes one operation of a product and a difference.
        total = rounded((x.astype(np.float64) + y).astype(np.float32))
        product = total.astype(np.float64) * y - x
        if kind == "f16":
            step = product.astype(np.float16).astype(np.float32)
        else:
            step = rounded(_fma(total, y, -x))
        return np.maximum(step, y)

    return meaning


def elementwise() -> Iterator[Case]:
    """One number of each input for one of the output."""
    yield _elementwise("vadd f32", "x + y", triton_rows.add, "f32", np.add)
    yield _elementwise("vadd f16", "x + y", triton_rows.add, "f16", np.add)
    for kind in ("f16", "bf16"):
        yield _elementwise(
            f"multiply-add {kind}",
            "x * y + x in float32, rounded once",
            triton_rows.multiply_add,
            kind,
            lambda x, y: _fma(x, y, x),
        )
    yield _elementwise(
        "arithmetic f16",
        "max((x + y) * y - x, y) in f16",
        triton_rows.half_arithmetic,
        "f16",
        _half_steps("f16"),
    )

    def silu(x: Array, y: Array) -> Array:
        x, y = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(over="ignore"):
            return x / (1 + np.exp(-x)) * y

    yield _elementwise(
        "SiLU f32",
        "x * sigmoid(x) * y",
        triton_rows.silu_and_multiply,
        "f32",
        silu,
        lambda x, y: np.abs(silu(x, y)) * (2.0**-19 + np.abs(x) * 2.0**-23) + 2.0**-120,
        "2^-19 + |x| 2^-23 of the value: ex2.approx, div.full",
    )


def _transpose() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = bits(wide(rng, 80, 112))
        return Launch(
            (3, 4, 1),
            {"x": x},
            ["x", "out", 80, 112],
            {"out": np.ascontiguousarray(x.T)},
        )

    return rows_case(
        "transpose f32",
        "through shared memory",
        triton_rows.transpose,
        {"BLOCK": 32},
        {"x_ptr": "f32", "out_ptr": "f32", "rows": "i32", "columns": "i32"},
        launch,
    )


def _prefix() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = rng.integers(-(1 << 31), 1 << 31, (3, 1024)).astype(np.int32)
        return Launch(
            (3, 1, 1),
            {"x": x},
            ["x", "out"],
            {"out": np.cumsum(x, axis=1, dtype=np.int32)},
        )

    return rows_case(
        "prefix sum i32",
        "running sum of a row",
        triton_rows.prefix_sum,
        {"BLOCK": 1024},
        {"x_ptr": "i32", "out_ptr": "i32"},
        launch,
    )


def _prefix_f32() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 3, 1024)
        exact = np.cumsum(x, axis=1, dtype=np.float64)
        size = np.cumsum(np.abs(x), axis=1, dtype=np.float64)
        return Launch(
            (3, 1, 1),
            {"x": bits(x)},
            ["x", "out"],
            {"out": exact},
            {"out": size * 16 * 2.0**-24},
            {"out": "f32"},
        )

    return rows_case(
        "prefix sum f32",
        "running sum of a row",
        triton_rows.prefix_sum,
        {"BLOCK": 1024},
        {"x_ptr": "f32", "out_ptr": "f32"},
        launch,
        "16 roundings of the sum of magnitudes: the order is the compiler's",
    )


def _argmax() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = np.round(wide(rng, 5, 512, spread=1)).astype(np.float32)
        place = np.argmax(x, axis=1).astype(np.int32)
        return Launch(
            (5, 1, 1),
            {"x": bits(x)},
            ["x", "value", "place"],
            {"value": bits(x.max(axis=1)), "place": place},
        )

    return rows_case(
        "argmax f32",
        "the largest, and where it comes first",
        triton_rows.first_largest,
        {"BLOCK": 512},
        {"x_ptr": "f32", "value_ptr": "f32", "place_ptr": "i32"},
        launch,
    )


def _sort() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 4, 256, spread=20)
        return Launch(
            (4, 1, 1), {"x": bits(x)}, ["x", "out"], {"out": bits(np.sort(x, axis=1))}
        )

    return rows_case(
        "sort f32",
        "bitonic, in ascending order",
        triton_rows.sort_row,
        {"BLOCK": 256},
        {"x_ptr": "f32", "out_ptr": "f32"},
        launch,
    )


def _histogram() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = rng.integers(0, 32, 4096).astype(np.int32)
        return Launch(
            (4, 1, 1),
            {"x": x, "out": np.zeros(32, np.int32)},
            ["x", "out"],
            {"out": np.bincount(x, minlength=32).astype(np.int32)},
        )

    return rows_case(
        "histogram",
        "atomics in shared and in global memory",
        triton_rows.count_values,
        {"BLOCK": 1024, "BINS": 32},
        {"x_ptr": "i32", "out_ptr": "i32"},
        launch,
    )


def _column_sums() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        x = wide(rng, 256, 128)
        exact, size = (
            x.sum(axis=0, dtype=np.float64),
            np.abs(x).sum(axis=0, dtype=np.float64),
        )
        return Launch(
            (4, 2, 1),
            {"x": bits(x), "out": np.zeros(128, np.uint32)},
            ["x", "out", 128],
            {"out": exact},
            {"out": size * 12 * 2.0**-24},
            {"out": "f32"},
        )

    return rows_case(
        "column sums f32",
        "parts by atomics",
        triton_rows.column_sum,
        {"ROWS": 64, "BLOCK": 64},
        {"x_ptr": "f32", "out_ptr": "f32", "columns": "i32"},
        launch,
        "12 roundings of the sum of magnitudes: the order is free",
    )


def _gather() -> Case:
    def launch(rng: np.random.Generator) -> Launch:
        table = rng.integers(0, 1 << 16, (20, 512)).astype(np.uint16)
        index = rng.integers(0, 20, 7).astype(np.int32)
        return Launch(
            (7, 1, 1),
            {"table": table, "index": index},
            ["table", "index", "out"],
            {"out": table[index]},
        )

    return rows_case(
        "gather f16",
        "rows of a table",
        triton_rows.gather_rows,
        {"BLOCK": 512},
        {"table_ptr": "f16", "index_ptr": "i32", "out_ptr": "f16"},
        launch,
    )


def moves() -> Iterator[Case]:
    """Kernels that move, order and count, and sums of integers."""
    yield _transpose()
    yield _prefix()
    yield _prefix_f32()
    yield _argmax()
    yield _sort()
    yield _histogram()
    yield _column_sums()
    yield _gather()
