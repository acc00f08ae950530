"""wrong_dumps: D as kernels with a usual mistake leave it, by the oracle.

Nothing here is triage's: each mistake is written by hand, byte after byte where that is
how it happens, and the oracle multiplies what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from fp4ref import BlockScaled, GemmConfig, oracle

M, N, K = 256, 384, 1024


@dataclass
class Dump:
    """A wrong D, and what is passed beside it."""

    d: np.ndarray
    beside: dict[str, Any] = field(default_factory=dict)


def operand(seed: int, rows: int, k: int, global_scale: float | None) -> BlockScaled:
    """Codes of every value, and scales over ten octaves."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (rows, k), np.uint8)
    scales = rng.integers(0x18, 0x60, (rows, k // 16), np.uint8)
    return BlockScaled(codes, scales, global_scale=global_scale)


A, B = operand(1, M, K, 12.5), operand(2, N, K, 0.3)


def with_(q: BlockScaled, **parts: Any) -> BlockScaled:
    """The operand with other codes or scales."""
    own = {"codes": q.codes, "scales": q.scales, "global_scale": q.global_scale}
    return BlockScaled(**own | parts)


def product(a: BlockScaled = A, b: BlockScaled = B, **more: Any) -> np.ndarray:
    """The oracle's D."""
    return oracle.expected(a, b, **more).d


def sf_offset(row: int, col: int, cols: int) -> int:
    """The byte of a scale in 128x4 atoms, from cuBLAS's text."""
    tile = (row // 128) * -(-cols // 4) + col // 4
    return tile * 512 + (row % 32) * 16 + row % 128 // 32 * 4 + col % 4


def relaid(scales: np.ndarray, read: Callable, written: Callable) -> np.ndarray:
    """Write every scale to a buffer by one rule and read it by another."""
    rows, cols = scales.shape
    buffer = np.zeros(rows * cols + 4096, np.uint8)
    for r in range(rows):
        for c in range(cols):
            buffer[written(r, c, cols)] = scales[r, c]
    found = [[buffer[read(r, c, cols)] for c in range(cols)] for r in range(rows)]
    return np.array(found, np.uint8)


def row_major(row: int, col: int, cols: int) -> int:
    return row * cols + col


def nibbles() -> Dump:
    packed = A.packed()
    swapped = (packed >> 4) | (packed << 4)
    codes = np.stack([swapped & 15, swapped >> 4], axis=-1).reshape(M, K)
    return Dump(product(a=with_(A, codes=codes)))


def scales_twice() -> Dump:
    once = relaid(B.scales, row_major, sf_offset)
    return Dump(product(b=with_(B, scales=once)))


def scales_plain() -> Dump:
    return Dump(
        product(
            a=with_(A, scales=relaid(A.scales, sf_offset, row_major)),
            b=with_(B, scales=relaid(B.scales, sf_offset, row_major)),
        )
    )


def scales_8x4() -> Dump:
    def small(row: int, col: int, cols: int) -> int:
        return ((row // 8) * (cols // 4) + col // 4) * 32 + row % 8 * 4 + col % 4

    return Dump(product(a=with_(A, scales=relaid(A.scales, sf_offset, small))))


def row_map() -> Dump:
    rows = [r // 128 * 128 + r % 4 * 32 + r % 128 // 4 for r in range(M)]
    return Dump(product(a=with_(A, scales=A.scales[rows])))


def global_inverse() -> Dump:
    return Dump(product(alpha=12.5 / 0.3))


def global_missing() -> Dump:
    return Dump(product(alpha=1 / 12.5))


def wrong_k_tile() -> Dump:
    codes = A.codes.copy()
    codes[:, 256:512] = A.codes[:, 512:768]
    codes[:, 512:768] = A.codes[:, 768:]
    codes[:, :256] = A.codes[:, 256:512]
    codes[:, 768:] = 0
    return Dump(product(a=with_(A, codes=codes)))


def stage_reused() -> Dump:
    """Two stages: k-tiles 2 and 3 landed on 0 and 1 before these were read."""
    order = [512 + k % 512 for k in range(K)]
    return Dump(product(b=with_(B, codes=B.codes[:, order])))


def sf_id() -> Dump:
    scales = A.scales.copy()
    for first in range(0, K // 16, 16):
        for block in range(16):
            scales[:, first + block] = A.scales[:, first + block % 4]
    return Dump(product(a=with_(A, scales=scales)))


def half_of_b() -> Dump:
    rows = [n - 64 if n % 128 >= 64 else n for n in range(N)]
    both = with_(B, codes=B.codes[rows], scales=B.scales[rows])
    return Dump(product(b=both))


def transposed() -> Dump:
    return Dump(np.ascontiguousarray(product().T).reshape(M, N))


def unrounded() -> Dump:
    config = GemmConfig.nvfp4(d_format="nvfp4", norm_constant=2.0)
    z = product(alpha=2.0**-12)
    sfd = oracle.expected(A, B, alpha=2.0**-12, config=config).sfd
    blocks = z.reshape(M, -1, 16)
    scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(6)
    codes = (blocks / scale).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    beside = {"sfd": sfd, "alpha": 2.0**-12, "config": config}
    return Dump(codes.reshape(M, N), beside)


def float32_order() -> Dump:
    """Element after element along K, as a loop of fma would."""
    x, y = (q.dequantize(np.float64) * q.global_scale for q in (A, B))
    acc = np.zeros((M, N), np.float32)
    for k in range(K):
        acc = (acc + np.outer(x[:, k], y[:, k])).astype(np.float32)
    return Dump(acc * np.float32(1 / (A.global_scale * B.global_scale)))


def blas() -> Dump:
    return Dump(A.dequantize() @ B.dequantize().T)


def split_base() -> Dump:
    half = K // 2
    parts = []
    for first in (0, half):
        scales = [
            q.scales[:, : half // 16] for q in (A, B)
        ]  # of both slices, the first
        parts.append(
            product(
                a=with_(A, codes=A.codes[:, first : first + half], scales=scales[0]),
                b=with_(B, codes=B.codes[:, first : first + half], scales=scales[1]),
                alpha=1.0,
            )
        )
    alpha = np.float32(1 / (A.global_scale * B.global_scale))
    return Dump((parts[0] + parts[1]) * alpha)


BIAS = np.random.default_rng(3).standard_normal(N).astype(np.float32) * 50
WITH_BIAS = GemmConfig.nvfp4(bias=True)


def bias_by_row() -> Dump:
    acc = product(alpha=1.0)
    alpha = np.float64(np.float32(1 / (A.global_scale * B.global_scale)))
    z = alpha * acc + BIAS[:M, None].astype(np.float64)
    return Dump(z.astype(np.float32), {"bias": BIAS, "config": WITH_BIAS})


def ragged() -> Dump:
    """N of 200 in rows of 208: read without the padding."""
    b = operand(4, 200, K, 0.3)
    good = product(b=b)
    padded = np.zeros((M, 208), np.float32)
    padded[:, :200] = good
    return Dump(padded.ravel()[: M * 200].reshape(M, 200), {"b": b})


def ragged_k() -> Dump:
    a, b = operand(5, M, 960, 12.5), operand(6, N, 960, 0.3)
    cut = [BlockScaled(q.codes[:, :768], q.scales[:, :48]) for q in (a, b)]
    d = product(*cut, alpha=1 / (A.global_scale * B.global_scale))
    return Dump(d, {"a": a, "b": b})


def scales_of_d() -> Dump:
    config = GemmConfig.nvfp4(d_format="nvfp4")
    made = oracle.expected(A, B, alpha=2.0**-12, config=config)
    cols = N // 16
    rows_of = relaid(made.sfd, sf_offset, row_major)
    assert rows_of.shape == (M, cols)
    return Dump(made.d, {"sfd": rows_of, "alpha": 2.0**-12, "config": config})


ONE: dict[str, tuple[Callable[[], Dump], str]] = {
    "nibbles": (nibbles, "nibbles swapped"),
    "twice": (scales_twice, "scales swizzled twice"),
    "not at all": (scales_plain, "scales not swizzled"),
    "8x4": (scales_8x4, "scales in another layout"),
    "row map": (row_map, "SF row map"),
    "inverse": (global_inverse, "global scale"),
    "missing": (global_missing, "global scale"),
    "k-tile": (wrong_k_tile, "wrong k-tile"),
    "stage": (stage_reused, "stage reused"),
    "sf id": (sf_id, "SF byte or id"),
    "half of B": (half_of_b, "half of B"),
    "transposed": (transposed, "D transposed"),
    "unrounded": (unrounded, "unrounded scale of D"),
    "float32": (float32_order, "float32 order"),
    "blas": (blas, "float32 order"),
    "split-K": (split_base, "split-K scale base"),
    "bias": (bias_by_row, "bias"),
    "ragged": (ragged, "ragged edge"),
    "ragged K": (ragged_k, "ragged K"),
    "scales of D": (scales_of_d, "scales of D in another layout"),
}
"""A dump with one mistake, and its name."""


def nibbles_and_twice() -> Dump:
    codes = A.codes.reshape(M, -1, 2)[:, :, ::-1].reshape(M, K)
    once = relaid(A.scales, row_major, sf_offset)
    return Dump(product(a=with_(A, codes=codes, scales=once)))


def twice_and_inverse() -> Dump:
    once = relaid(B.scales, row_major, sf_offset)
    return Dump(product(b=with_(B, scales=once), alpha=12.5 / 0.3))


def half_and_transposed() -> Dump:
    return Dump(np.ascontiguousarray(half_of_b().d.T).reshape(M, N))


def nibbles_and_float32() -> Dump:
    codes = A.codes.reshape(M, -1, 2)[:, :, ::-1].reshape(M, K)
    return Dump(with_(A, codes=codes).dequantize() @ B.dequantize().T)


def k_tile_and_bias() -> Dump:
    alpha = np.float64(np.float32(1 / (A.global_scale * B.global_scale)))
    ks = [k for k in range(K) if k // 256 != 1]
    blocks = [block for block in range(K // 16) if block // 16 != 1]
    parts = [with_(q, codes=q.codes[:, ks], scales=q.scales[:, blocks]) for q in (A, B)]
    acc = product(*parts, alpha=1.0)
    z = alpha * acc + BIAS[:M, None].astype(np.float64)
    return Dump(z.astype(np.float32), {"bias": BIAS, "config": WITH_BIAS})


def row_map_and_sf_id() -> Dump:
    rows = [r // 128 * 128 + r % 32 * 4 + r % 128 // 32 for r in range(N)]
    other = [block ^ 3 for block in range(K // 16)]
    return Dump(
        product(
            a=with_(A, scales=A.scales[:, other]), b=with_(B, scales=B.scales[rows])
        )
    )


TWO: dict[str, tuple[Callable[[], Dump], set[str]]] = {
    "nibbles, twice": (nibbles_and_twice, {"nibbles swapped", "scales swizzled twice"}),
    "twice, inverse": (twice_and_inverse, {"scales swizzled twice", "global scale"}),
    "half, transposed": (half_and_transposed, {"half of B", "D transposed"}),
    "nibbles, BLAS": (nibbles_and_float32, {"nibbles swapped", "float32 order"}),
    "k-tile, bias": (k_tile_and_bias, {"wrong k-tile", "bias"}),
    "row map, sf id": (row_map_and_sf_id, {"SF row map", "SF byte or id"}),
}
"""A dump with two mistakes, and their names."""
