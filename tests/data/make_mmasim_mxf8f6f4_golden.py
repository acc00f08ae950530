"""make_mmasim_mxf8f6f4_golden: write mmasim_mxf8f6f4_golden.npz, of an outside model.

Made once with mmasim 2.1.1, torch 2.14.1 (CPU) and NumPy 2.4.6 on Python 3.11:

    pip install torch==2.14.1 mmasim==2.1.1 "numpy<2.6"
    python tests/data/make_mmasim_mxf8f6f4_golden.py

Nothing of fp4ref is used here. The file holds one product of one K = 32 step for every
pair of formats and every distribution, in arrays that begin with those two dimensions:

    a    (25, 6, 24, 32)  codes in their low bits
    b    (25, 6, 8, 32)
    sfa  (25, 6, 24, 1)   UE8M0 codes
    sfb  (25, 6, 8, 1)
    c    (25, 6, 24, 8)   float32 bits
    d    (25, 6, 24, 8)   float32 bits
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from make_mmasim_unscaled_golden import (
    FIELDS,
    NOT_FINITE,
    SPECIAL_C,
    draw_codes,
    values,
)

M, N, K = 24, 8, 32
FORMATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
PAIRS = tuple((a, b) for a in FORMATS for b in FORMATS)
DISTRIBUTIONS = (
    "raw_bits",
    "zero_heavy",
    "near_c",
    "cancelling",
    "special_c",
    "specials",
)
ONE = 127
"""The UE8M0 code of 1."""


def sign(element: str) -> int:
    """Return the sign bit of a code."""
    return 1 << sum(FIELDS[element])


def draw_scales(
    rng: np.random.Generator, rows: int, spread: int, centre: int = ONE
) -> np.ndarray:
    """Return scale codes (rows, 1) around `centre`."""
    codes = centre + rng.integers(-spread, spread + 1, (rows, 1))
    return codes.astype(np.uint8)


def scaled(codes: np.ndarray, scales: np.ndarray, element: str) -> np.ndarray:
    """Return finite codes with their scales in float64."""
    return np.ldexp(values(codes, element), scales.astype(np.int64) - ONE)


def draw(
    rng: np.random.Generator, distribution: str, formats: tuple[str, str]
) -> dict[str, np.ndarray]:
    """Return codes a (M, K) and b (N, K), scale codes, and C bits."""
    finite = distribution not in ("raw_bits", "specials")
    a = draw_codes(rng, M, K, formats[0], finite)
    b = draw_codes(rng, N, K, formats[1], finite)
    sfa, sfb = draw_scales(rng, M, 24), draw_scales(rng, N, 24)
    c = rng.standard_normal((M, N), np.float32)
    if distribution == "raw_bits":
        sfa = rng.integers(0, 256, (M, 1), dtype=np.uint8)
        sfb = rng.integers(0, 256, (N, 1), dtype=np.uint8)
        c = rng.integers(0, 1 << 32, (M, N), dtype=np.uint32).view(np.float32)
    elif distribution == "zero_heavy":
        # Some rows end below the exponent of a zero term, with subnormal results.
        a[rng.random(a.shape) < 0.7] = 0
        b[rng.random(b.shape) < 0.4] = 0
        sfa[::3] = draw_scales(rng, sfa[::3].shape[0], 12, centre=20)
        sfb[::2] = draw_scales(rng, sfb[::2].shape[0], 12, centre=90)
        c = np.ldexp(c, rng.choice([0, -40, -140], c.shape)).astype(np.float32)
        c[rng.random(c.shape) < 0.4] = 0
    elif distribution == "near_c":
        # C is minus the exact product, give or take some last places.
        exact = scaled(a, sfa, formats[0]) @ scaled(b, sfb, formats[1]).T
        near = (-exact).astype(np.float32).view(np.uint32)
        c = (near + rng.integers(-3, 4, c.shape).astype(np.uint32)).view(np.float32)
    elif distribution == "cancelling":
        # The second half of K cancels the first but for a few elements: what is left
        # was truncated at the largest exponent.
        half = K // 2
        a[:, half:], b[:, half:] = a[:, :half], b[:, :half] ^ sign(formats[1])
        a[:, half + 1 :: 5] ^= 1
        scale = sfa.astype(np.int64) + sfb.astype(np.int64).T - 2 * ONE
        c = np.ldexp(c, scale + rng.integers(-30, 10, c.shape)).astype(np.float32)
    elif distribution == "special_c":
        # Overflow, and products around the smallest subnormal.
        sfa = rng.choice(np.array([0, 1, 4, 127, 254, 255], np.uint8), (M, 1))
        sfb = rng.choice(np.array([0, 100, 104, 128, 150, 254], np.uint8), (N, 1))
        c = rng.choice(SPECIAL_C, c.shape)
        c[rng.random(c.shape) < 0.3] = 0
        c = c.view(np.float32)
    else:
        # Few specials, so that one or two meet in a sum, and zeros beside them.
        for codes, element in ((a, formats[0]), (b, formats[1])):
            other = draw_codes(rng, *codes.shape, element, True)
            other[rng.random(codes.shape) < 0.1] = 0
            usual = rng.random(codes.shape) < 0.99
            codes[usual] = other[usual]
            if element in NOT_FINITE:
                flip = rng.integers(0, 2, codes.shape) * sign(element)
                rare = rng.random(codes.shape) < 0.01
                codes[rare] = (NOT_FINITE[element] | flip)[rare]
        for codes in (sfa, sfb):
            codes[rng.random(codes.shape) < 0.1] = 255
        c[rng.random(c.shape) < 0.1] = np.inf
        c[rng.random(c.shape) < 0.1] = -np.inf
    return {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "c": c.view(np.uint32)}


def mmasim_product(formats: tuple[str, str], case: dict[str, np.ndarray]) -> np.ndarray:
    """Return D, as float32 bits, by mmasim; M is part of its name and of no use."""
    import torch
    from mmasim.nv_ptx.sim import TCGen05MMABlockScale

    model = TCGen05MMABlockScale(
        "Blackwell",
        f"m128n{N}k{K}.kind::mxf8f6f4.block32.f32.{formats[0]}.{formats[1]}.ue8m0",
    )

    def tensor(codes: np.ndarray, element: str) -> torch.Tensor:
        # mmasim has four-bit codes in bits 2 to 5 of a byte.
        codes = np.ascontiguousarray(codes << 2 if element == "e2m1" else codes)
        dtype = {
            "e4m3": torch.float8_e4m3fn,
            "e5m2": torch.float8_e5m2,
            "ue8m0": torch.float8_e8m0fnu,
        }.get(element, torch.uint8)
        return torch.from_numpy(codes).view(dtype)

    d = model(
        tensor(case["a"], formats[0]),
        tensor(case["b"].T, formats[1]),
        torch.from_numpy(np.ascontiguousarray(case["c"].view(np.float32))),
        tensor(case["sfa"], "ue8m0"),
        tensor(case["sfb"].T, "ue8m0"),
    )
    bits: np.ndarray = d.numpy().view(np.uint32)
    return bits


def cases(seed: int) -> Iterator[tuple[tuple[str, str], dict[str, np.ndarray]]]:
    """Yield the formats and the inputs, distributions fastest."""
    rng = np.random.default_rng(seed)
    for formats in PAIRS:
        for distribution in DISTRIBUTIONS:
            yield formats, draw(rng, distribution, formats)


def main() -> None:
    """Write the file beside this script."""
    stored: dict[str, list[np.ndarray]] = {}
    for formats, case in cases(seed=20261128):
        for name, array in {**case, "d": mmasim_product(formats, case)}.items():
            stored.setdefault(name, []).append(array)
    shape = len(PAIRS), len(DISTRIBUTIONS)
    arrays = {
        name: np.stack(each).reshape(*shape, *each[0].shape)
        for name, each in stored.items()
    }
    target = Path(__file__).with_name("mmasim_mxf8f6f4_golden.npz")
    np.savez_compressed(target, **arrays)  # type: ignore[arg-type]
    print(f"{target}: {arrays['d'].size} outputs, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
