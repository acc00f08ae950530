"""make_mmasim_unscaled_golden: write mmasim_unscaled_golden.npz, of an outside model.

Made once with mmasim 2.1.1, torch 2.13.0 (CPU) and NumPy 2.4.6 on Python 3.11:

    pip install torch==2.13.0 mmasim==2.1.1 "numpy<2.6"
    python tests/data/make_mmasim_unscaled_golden.py

Nothing of fp4ref is used here. For every instruction and distribution the file holds
one m64n8 product of one K step, under the key ``<instruction>/<distribution>/<x>``:

    a    (64, K)  codes, uint16 for 16-bit formats and uint8 for the rest
    b    (8, K)
    c    (64, 8)  float32 bits
    d    (64, 8)  float32 bits
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

M, N = 64, 8
# instruction -> (format of A, format of B)
INSTRUCTIONS = {
    "f16": ("f16", "f16"),
    "bf16": ("bf16", "bf16"),
    "e4m3": ("e4m3", "e4m3"),
    "e5m2": ("e5m2", "e5m2"),
    "e2m3": ("e2m3", "e2m3"),
    "e3m2": ("e3m2", "e3m2"),
    "e2m1": ("e2m1", "e2m1"),
    "e4m3.e5m2": ("e4m3", "e5m2"),
    "e5m2.e2m1": ("e5m2", "e2m1"),
}
DISTRIBUTIONS = (
    "raw_bits",
    "zero_heavy",
    "near_c",
    "cancelling",
    "special_c",
    "specials",
)
FIELDS = {  # exponent bits, mantissa bits
    "f16": (5, 10),
    "bf16": (8, 7),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
    "e2m3": (2, 3),
    "e3m2": (3, 2),
    "e2m1": (2, 1),
}
NOT_FINITE = {"f16": 0x7C00, "bf16": 0x7F80, "e4m3": 0x7F, "e5m2": 0x7C}
SPECIAL_C = np.array(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001]
    + [0x7F7FFFFF, 0xFF7FFFFF, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000]
    + [0x3F800000, 0xBF800000, 0x4B800000, 0xCB800000, 0x33800000],
    np.uint32,
)


def k_of(instruction: str) -> int:
    """K of one instruction."""
    return 16 if "f16" in instruction else 32


def values(codes: np.ndarray, element: str) -> np.ndarray:
    """Return finite codes in float64."""
    exponent_bits, mantissa_bits = FIELDS[element]
    code = codes.astype(np.int64)
    fraction = code & ((1 << mantissa_bits) - 1)
    field = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    significand = np.where(field > 0, fraction + (1 << mantissa_bits), fraction)
    exponent = np.maximum(field, 1) - ((1 << exponent_bits - 1) - 1) - mantissa_bits
    sign = 1 - 2 * (code >> (exponent_bits + mantissa_bits) & 1)
    return np.ldexp((sign * significand).astype(np.float64), exponent)


def draw_codes(
    rng: np.random.Generator, rows: int, k: int, element: str, finite: bool
) -> np.ndarray:
    """Return random codes (rows, k)."""
    bits = 1 + sum(FIELDS[element])
    dtype = np.uint16 if bits == 16 else np.uint8
    codes = rng.integers(0, 1 << bits, (rows, k)).astype(dtype)
    if finite and element in NOT_FINITE:
        # Clearing the lowest exponent bit leaves no code with all of them set.
        special = (codes & NOT_FINITE[element]) == NOT_FINITE[element]
        codes[special] &= ~np.uint16(1 << FIELDS[element][1]).astype(dtype)
    return codes


def draw(
    rng: np.random.Generator, distribution: str, instruction: str
) -> dict[str, np.ndarray]:
    """Return codes a (M, K) and b (N, K), and C bits."""
    formats, k = INSTRUCTIONS[instruction], k_of(instruction)
    finite = distribution not in ("raw_bits", "specials")
    a = draw_codes(rng, M, k, formats[0], finite)
    b = draw_codes(rng, N, k, formats[1], finite)
    c = rng.integers(0, 1 << 32, (M, N), dtype=np.uint32)
    if distribution == "raw_bits":
        return {"a": a, "b": b, "c": c}
    c = rng.standard_normal((M, N), np.float32).view(np.uint32)
    if distribution == "zero_heavy":
        a[rng.random(a.shape) < 0.7] = 0
        b[rng.random(b.shape) < 0.4] = 0
        if instruction == "bf16":
            # Products below the exponent of a zero term, and subnormal results.
            for codes in (a, b):
                live = codes != 0
                field = rng.integers(45, 68, codes.shape).astype(codes.dtype)
                codes[live] = (codes & 0x807F | field << 7)[live]
            c[rng.random(c.shape) < 0.6] = 0
            subnormal = rng.random(c.shape) < 0.3
            c[subnormal] = rng.integers(0, 1 << 20, c.shape).astype(c.dtype)[subnormal]
        c[rng.random(c.shape) < 0.4] = 0
        tiny = rng.random(c.shape) < 0.3
        c[tiny] = np.ldexp(c.view(np.float32), -40).view(np.uint32)[tiny]
    elif distribution == "near_c":
        # C is minus the exact product, give or take some last places.
        exact = values(a, formats[0]) @ values(b, formats[1]).T
        with np.errstate(over="ignore"):
            c = (-exact).astype(np.float32).view(np.uint32)
        c = c + rng.integers(-3, 4, c.shape).astype(np.uint32)
    elif distribution == "cancelling":
        # The second half of K cancels the first but for a few elements: what is left
        # was truncated at the largest exponent.
        half = k // 2
        sign = np.array(1 << sum(FIELDS[formats[1]])).astype(b.dtype)
        a[:, half:], b[:, half:] = a[:, :half], b[:, :half] ^ sign
        a[:, half + 1 :: 5] ^= 1
        c = np.ldexp(c.view(np.float32), rng.integers(-30, 10, c.shape))
        c = c.astype(np.float32).view(np.uint32)
    elif distribution == "special_c":
        c = rng.choice(SPECIAL_C, c.shape)
        c[rng.random(c.shape) < 0.3] = 0
    else:
        # Few specials, so that one or two meet in a sum, and zeros beside them.
        for codes, element in ((a, formats[0]), (b, formats[1])):
            other = draw_codes(rng, *codes.shape, element, True)
            other[rng.random(codes.shape) < 0.1] = 0
            usual = rng.random(codes.shape) < 0.98
            codes[usual] = other[usual]
            if element in NOT_FINITE:
                sign = rng.integers(0, 2, codes.shape) << sum(FIELDS[element])
                inf = (NOT_FINITE[element] | sign).astype(codes.dtype)
                rare = rng.random(codes.shape) < 0.02
                codes[rare] = inf[rare]
        c[rng.random(c.shape) < 0.1] = 0x7F800000
        c[rng.random(c.shape) < 0.1] = 0xFF800000
    return {"a": a, "b": b, "c": c}


def mmasim_product(instruction: str, case: dict[str, np.ndarray]) -> np.ndarray:
    """Return D, as float32 bits, by mmasim."""
    import torch
    from mmasim.nv_ptx.sim import TCGen05MMA

    a_format, b_format = INSTRUCTIONS[instruction]
    kind = "f16" if "f16" in instruction else "f8f6f4"
    shape = f"m{M}n{N}k{k_of(instruction)}"
    model = TCGen05MMA("Blackwell", f"{shape}.kind::{kind}.f32.{a_format}.{b_format}")

    def tensor(codes: np.ndarray, element: str) -> torch.Tensor:
        # mmasim has four-bit codes in bits 2 to 5 of a byte.
        codes = codes << 2 if element == "e2m1" else codes
        signed = np.ascontiguousarray(codes)
        signed = signed.view(np.int16) if codes.dtype == np.uint16 else signed
        dtype = {
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "e4m3": torch.float8_e4m3fn,
            "e5m2": torch.float8_e5m2,
        }.get(element, torch.uint8)
        return torch.from_numpy(signed).view(dtype)

    c = torch.from_numpy(np.ascontiguousarray(case["c"].view(np.float32)))
    d = model(tensor(case["a"], a_format), tensor(case["b"].T, b_format), c)
    return d.numpy().view(np.uint32)


def cases(seed: int) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """Yield instruction, distribution and the inputs."""
    rng = np.random.default_rng(seed)
    for instruction in INSTRUCTIONS:
        for distribution in DISTRIBUTIONS:
            yield instruction, distribution, draw(rng, distribution, instruction)


def main() -> None:
    """Write the file beside this script."""
    arrays: dict[str, np.ndarray] = {}
    for instruction, distribution, case in cases(seed=20261127):
        stored = {**case, "d": mmasim_product(instruction, case)}
        for name, array in stored.items():
            arrays[f"{instruction}/{distribution}/{name}"] = array
    target = Path(__file__).with_name("mmasim_unscaled_golden.npz")
    np.savez_compressed(target, **arrays)
    outputs = sum(v.size for k, v in arrays.items() if k.endswith("/d"))
    print(f"{target}: {outputs} outputs, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
