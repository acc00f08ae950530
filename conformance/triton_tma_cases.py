"""triton_tma_cases: ``tl.dot`` on what TMA loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import triton_matmul
from triton_cases import (
    DESCRIBED,
    EVERY_BIT,
    POINTERS,
    Case,
    Launch,
    codes_of,
    operands,
    product,
)

TILE = (128, 128, 64)


def _tma(
    name: str,
    kernel: Any,
    kind: str,
    out: str,
    tile: tuple[int, int, int],
    shape: tuple[int, int, int],
    grid: tuple[int, int, int],
    constants: dict[str, Any],
    **options: Any,
) -> Case:
    m, n, k = shape
    described = kernel is not triton_matmul.device_tma

    def launch(rng: np.random.Generator) -> Launch:
        a, b = operands(rng, m, n, k, kind)
        sizes = {"M": m, "N": n, "K": k}
        numbers = [sizes[x] for x in "MNK" if x in kernel.arg_names]
        tensors: list[Any] = ["a", "b", "d"]
        if described:
            tensors = [("a", (m, k)), ("b", (n, k)), ("d", (m, n))]
        d = codes_of(product(a, b, kind), out)
        return Launch(grid, {"a": a, "b": b}, tensors + numbers, {"d": d})

    blocks = {"a": (tile[0], tile[2]), "b": (tile[1], tile[2]), "d": (tile[0], tile[1])}
    kinds = {"a": kind, "b": kind, "d": out}
    if described:
        types = {
            f"{x}_desc": f"tensordesc<{DESCRIBED[kinds[x]]}{list(blocks[x])}>"
            for x in "abd"
        }
    else:
        types = {f"{x}_ptr": POINTERS[kinds[x]] for x in "abd"}
    types |= {x: "i32" for x in "MNK" if x in kernel.arg_names}
    sizes = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile, strict=True))
    sized, tiled = ("x".join(map(str, each)) for each in (shape, tile))
    what = f"{kind} to {out}, {sized}, tiles {tiled}"
    return Case(
        name, what, EVERY_BIT, kernel, types, sizes | constants, launch, options
    )


def _host() -> Iterator[Case]:
    one = triton_matmul.host_tma
    yield _tma(
        "host TMA f16, 1 stage",
        one,
        "f16",
        "f16",
        TILE,
        (192, 128, 144),
        (2, 1, 1),
        {},
        num_stages=1,
    )
    yield _tma(
        "host TMA f16, 3 stages",
        one,
        "f16",
        "f16",
        TILE,
        (128, 136, 272),
        (1, 2, 1),
        {},
        num_stages=3,
    )
    yield _tma(
        "host TMA bf16, 4 stages, 8 warps",
        one,
        "bf16",
        "bf16",
        (128, 256, 64),
        (128, 256, 336),
        (1, 1, 1),
        {},
        num_stages=4,
        num_warps=8,
    )


def _persistent() -> Iterator[Case]:
    many = triton_matmul.host_tma_persistent
    plain = {"PROGRAMS": 2, "FLATTEN": False, "SPECIALIZE": False}
    yield _tma(
        "host TMA E4M3, persistent",
        many,
        "e4m3",
        "f16",
        (128, 128, 128),
        (256, 256, 256),
        (2, 1, 1),
        plain,
        num_stages=3,
    )
    yield _tma(
        "host TMA f16, persistent, flattened",
        many,
        "f16",
        "f16",
        TILE,
        (256, 256, 128),
        (2, 1, 1),
        plain | {"FLATTEN": True},
        num_stages=3,
    )
    yield _tma(
        "host TMA f16, warps specialised",
        many,
        "f16",
        "f16",
        TILE,
        (256, 256, 192),
        (2, 1, 1),
        plain | {"FLATTEN": True, "SPECIALIZE": True},
        num_stages=3,
    )
    yield _tma(
        "host TMA bf16, warps specialised, 2 stages",
        many,
        "bf16",
        "bf16",
        TILE,
        (256, 128, 256),
        (1, 1, 1),
        plain | {"PROGRAMS": 1, "SPECIALIZE": True},
        num_stages=2,
    )


def _device() -> Iterator[Case]:
    device = triton_matmul.device_tma
    yield _tma(
        "device TMA f16",
        device,
        "f16",
        "f16",
        TILE,
        (160, 128, 208),
        (2, 1, 1),
        {},
        num_stages=3,
    )
    yield _tma(
        "device TMA E4M3",
        device,
        "e4m3",
        "f16",
        (128, 64, 128),
        (128, 128, 272),
        (1, 2, 1),
        {},
        num_stages=2,
    )


def tensor_maps() -> Iterator[Case]:
    """``tl.dot`` on what TMA loads, by maps of the host and of the device."""
    yield from _host()
    yield from _persistent()
    yield from _device()
