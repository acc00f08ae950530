"""dot_operands: random codes and scales for block-scaled products."""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.elements import ScaleFormat

UE4M3, UE8M0 = ScaleFormat.UE4M3, ScaleFormat.UE8M0
LEGAL = [(UE4M3, 16), (UE8M0, 16), (UE8M0, 32)]


def random_operands(rng, m, n, k, scale_format, vec_size, raw_scales=False):
    """Codes and scale codes; without `raw_scales` no NaN and a moderate range."""
    a = rng.integers(0, 16, (m, k), dtype=np.uint8)
    b = rng.integers(0, 16, (n, k), dtype=np.uint8)
    low, high = 0, 256
    if not raw_scales:
        low, high = (0, 0x7F) if scale_format is UE4M3 else (0x7F - 24, 0x7F + 24)
    sfa = rng.integers(low, high, (m, k // vec_size), dtype=np.uint8)
    sfb = rng.integers(low, high, (n, k // vec_size), dtype=np.uint8)
    return a, b, sfa, sfb
