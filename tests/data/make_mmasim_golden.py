"""make_mmasim_golden: write mmasim_golden.npz, the outputs of an outside MMA model.

Made once with mmasim 2.1.1, torch 2.13.0 (CPU) and NumPy 2.4.6 on Python 3.11:

    pip install torch==2.13.0 mmasim==2.1.1 "numpy<2.6"
    python tests/data/make_mmasim_golden.py

mmasim is the package of the authors of MMA-Sim (arXiv 2511.10909), who compared it
with B200. Nothing of fp4ref is used here. For every instruction and distribution the
file holds one m128n24k64 product, under the key ``<instruction>/<distribution>/<x>``:

    a    (128, 32)  packed E2M1, low nibble first
    b    (24, 32)
    sfa  (128, 4 or 2)  scale bytes
    sfb  (24, 4 or 2)
    c    (128, 24)  float32 bits
    d    (128, 24)  float32 bits
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

M, N, K = 128, 24, 64
# instruction -> (scale format, vec_size)
INSTRUCTIONS = {
    "mxf4nvf4.block16.ue4m3": ("ue4m3", 16),
    "mxf4nvf4.block16.ue8m0": ("ue8m0", 16),
    "mxf4nvf4.block32.ue8m0": ("ue8m0", 32),
    "mxf4.block32.ue8m0": ("ue8m0", 32),
}
DISTRIBUTIONS = ("raw_bits", "zero_heavy", "near_c", "wide_scales", "special_c")
SPECIAL_C = np.array(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001]
    + [0x7F7FFFFF, 0xFF7FFFFF, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000]
    + [0x3F800000, 0xBF800000, 0x4B800000, 0xCB800000, 0x33800000],
    np.uint32,
)
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def draw(
    rng: np.random.Generator, distribution: str, scale_format: str, vec_size: int
) -> dict[str, np.ndarray]:
    """Return codes a (M, K) and b (N, K), scale bytes, and C bits."""
    groups = K // vec_size
    a = rng.integers(0, 16, (M, K), dtype=np.uint8)
    b = rng.integers(0, 16, (N, K), dtype=np.uint8)
    sfa = rng.integers(0, 256, (M, groups), dtype=np.uint8)
    sfb = rng.integers(0, 256, (N, groups), dtype=np.uint8)
    c = rng.integers(0, 1 << 32, (M, N), dtype=np.uint32)
    if distribution == "raw_bits":
        return {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "c": c}

    if scale_format == "ue4m3":
        sfa, sfb = np.minimum(sfa & 0x7F, 0x7E), np.minimum(sfb & 0x7F, 0x7E)
        near_one = 0x38
    else:
        near_one = 0x7F
        spread = 64 if distribution == "wide_scales" else 24
        sfa = (near_one + rng.integers(-spread, spread + 1, sfa.shape)).astype(np.uint8)
        sfb = (near_one + rng.integers(-spread, spread + 1, sfb.shape)).astype(np.uint8)
    c = rng.standard_normal((M, N), np.float32).view(np.uint32)

    if distribution == "zero_heavy":
        # Zero elements, zero groups next to large scales, and sums that cancel.
        a[rng.random(a.shape) < 0.8] = 0
        b[rng.random(b.shape) < 0.5] = 8
        for row in range(M):
            a[row].reshape(-1, 16)[rng.random(K // 16) < 0.3] = 0
        a[::4, 8:16], b[::2, 8:16] = a[::4, 0:8], b[::2, 0:8] ^ 8
        sfa[rng.random(sfa.shape) < 0.1] = 0
        c[rng.random(c.shape) < 0.4] = 0
        tiny = rng.random(c.shape) < 0.3
        c[tiny] = np.ldexp(c.view(np.float32), -30).view(np.uint32)[tiny]
    elif distribution == "near_c":
        # C is minus the exact product, give or take some last places.
        exact = float_product(a, b, sfa, sfb, scale_format, vec_size)
        c = (-exact).astype(np.float32).view(np.uint32)
        c = c + rng.integers(-3, 4, c.shape).astype(np.uint32)
    elif distribution == "wide_scales":
        # The second half of each group cancels the first: only its exponent counts.
        a[::2, 8:16], b[::2, 8:16] = a[::2, 0:8], b[::2, 0:8] ^ 8
        c = np.ldexp(c.view(np.float32), rng.integers(-40, 41, c.shape))
        c = c.astype(np.float32).view(np.uint32)
    else:
        if scale_format == "ue8m0":
            # Overflow, and products around the smallest subnormal.
            sfa = rng.choice(np.array([0, 1, 4, 0x7F, 0xFE], np.uint8), (M, groups))
            sfb = rng.choice(np.array([0, 0x64, 0x68, 0x80], np.uint8), (N, groups))
        c = rng.choice(SPECIAL_C, c.shape)
        c[rng.random(c.shape) < 0.3] = 0
    return {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "c": c}


def float_product(
    a: np.ndarray,
    b: np.ndarray,
    sfa: np.ndarray,
    sfb: np.ndarray,
    scale_format: str,
    vec_size: int,
) -> np.ndarray:
    """Return A B^T in float64."""
    element = np.concatenate([MAGNITUDES, -MAGNITUDES])
    code = np.arange(256)
    if scale_format == "ue4m3":
        field, mantissa = code >> 3 & 15, code & 7
        scale = np.where(field > 0, 8 + mantissa, mantissa) * np.exp2(
            np.maximum(field, 1) - 10.0
        )
    else:
        scale = np.exp2(code - 127.0)
    rows = element[a] * np.repeat(scale[sfa], vec_size, axis=1)
    columns = element[b] * np.repeat(scale[sfb], vec_size, axis=1)
    return rows @ columns.T


def pack(codes: np.ndarray) -> np.ndarray:
    """Pack two codes per byte, low nibble first."""
    return codes[:, 0::2] | codes[:, 1::2] << 4


def mmasim_product(instruction: str, case: dict[str, np.ndarray]) -> np.ndarray:
    """Return D, as float32 bits, by mmasim."""
    import torch
    from mmasim.nv_ptx.sim import TCGen05MMABlockScale

    kind, block, scale_format = instruction.split(".")
    model = TCGen05MMABlockScale(
        "Blackwell", f"m{M}n{N}k{K}.kind::{kind}.{block}.f32.e2m1.e2m1.{scale_format}"
    )
    scale_dtype = {
        "ue4m3": torch.float8_e4m3fn,
        "ue8m0": torch.float8_e8m0fnu,
    }[scale_format]

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array))

    d = model(
        tensor(pack(case["a"])),
        tensor(pack(case["b"]).T),
        tensor(case["c"].view(np.float32)),
        tensor(case["sfa"]).view(scale_dtype),
        tensor(case["sfb"].T).view(scale_dtype),
    )
    return d.numpy().view(np.uint32)


def cases(seed: int) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """Yield instruction, distribution and the inputs."""
    rng = np.random.default_rng(seed)
    for instruction, (scale_format, vec_size) in INSTRUCTIONS.items():
        for distribution in DISTRIBUTIONS:
            yield (
                instruction,
                distribution,
                draw(rng, distribution, scale_format, vec_size),
            )


def main() -> None:
    """Write the file beside this script."""
    arrays: dict[str, np.ndarray] = {}
    for instruction, distribution, case in cases(seed=20260901):
        d = mmasim_product(instruction, case)
        stored = {**case, "a": pack(case["a"]), "b": pack(case["b"]), "d": d}
        for name, array in stored.items():
            arrays[f"{instruction}/{distribution}/{name}"] = array
    target = Path(__file__).with_name("mmasim_golden.npz")
    np.savez_compressed(target, **arrays)
    outputs = sum(v.size for k, v in arrays.items() if k.endswith("/d"))
    print(f"{target}: {outputs} outputs, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
