"""lesson_06: exercises about the instruction descriptor and the MMA's sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fp4ref import ScaleFormat, frames
from fp4ref.gemm.config import TILE_K
from fp4ref.gemm.descriptors import K_BLOCKS
from fp4ref.hardware.instr_descriptor import InstrDescriptor
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.lessons.exercise import exercise
from fp4ref.numerics import encode_e2m1, encode_ue4m3, mma_block_scaled

GROUP = 16


def _element(
    a: Sequence[float], sfa: Sequence[float], sfb: Sequence[float], c: float
) -> float:
    """Return the model's D for a row of B of ones."""
    d = mma_block_scaled(
        encode_e2m1(np.array([a], np.float32)),
        encode_e2m1(np.ones((1, MMA_K), np.float32)),
        encode_ue4m3(np.array([sfa], np.float32)),
        encode_ue4m3(np.array([sfb], np.float32)),
        np.array([[c]], np.float32),
        scale_format=ScaleFormat.UE4M3,
        vec_size=GROUP,
    )
    return float(d[0, 0])


@exercise(
    "06.1",
    title="An instruction descriptor",
    frames=("6.2", "6.6.9"),
    hints=(
        "Start from the word of the kernel, 0x08200480: two of its fields change.",
        "N sits at bit 17 in units of 8; bit 23 is the scale type.",
        "`1 << 7 | 1 << 10 | N >> 3 << 17 | 1 << 23 | M >> 7 << 27`.",
    ),
    wrong=(
        # BF16 operands, as kind::f16 writes them (type 1, D in float32, M >> 4).
        1 << 4 | 1 << 7 | 1 << 10 | 64 >> 3 << 17 | 128 >> 4 << 24,
        # E2M1 by its code of mxf8f6f4.
        5 << 7 | 5 << 10 | 64 >> 3 << 17 | 1 << 23 | 128 >> 7 << 27,
        # Scale type or N forgotten; N not shifted.
        0x0810_0480,
        0x08A0_0480,
        1 << 7 | 1 << 10 | 64 << 17 | 1 << 23 | 128 >> 7 << 27,
    ),
)
def descriptor() -> int:
    """Encode it."""
    return InstrDescriptor(128, 64, ScaleFormat.UE8M0).encode()


@exercise(
    "06.2",
    title="Elements along K, and instructions",
    frames=("6.2", "6.6.5", "6.6.9", "6.6.12"),
    hints=(
        "The kind fixes K of one instruction; what does the trace of the run show?",
        "A k-tile of 256 took four instructions, each 32 bytes further along K.",
        "32 bytes of packed E2M1 are 64 elements.",
    ),
    why=(
        "32 bytes of packed E2M1 are 64 elements. A k-tile of 256 takes four "
        "instructions, and K = 2,048 is eight k-tiles."
    ),
    wrong=(
        # K = 16 of BF16; an atom of 128 x 128 x 256; one for each scale.
        (16, 16, 128),
        (256, 1, 8),
        (64, 16, 128),
        (32, 8, 64),
        (64, 4, 8),
    ),
)
def instruction_counts() -> tuple[int, int, int]:
    """Ask the configuration, at the index's K of 2048."""
    k_tiles = 2048 // TILE_K
    assert frames.show("6.2")["k_blocks"] == K_BLOCKS
    return MMA_K, K_BLOCKS, k_tiles * K_BLOCKS


@exercise(
    "06.3",
    title="A scale for each 16 elements",
    frames=("6.6.7",),
    hints=(
        "How many elements does one scale of A cover?",
        "The first 16 products are scaled by 1.5 * 2, the next 16 by 1 * 1.",
        "16 * (1.5 * 2 + 1 * 1 + 0.5 * 1 + 2 * 4).",
    ),
    wrong=(
        # 1.5 * 2 scales the whole product; the means do; the sums do.
        192.0,
        64 * 1.25 * 2.0,
        64 * 5.0 * 8.0,
        # Scales added, not multiplied; each scale for one product only.
        16 * 13.0,
        12.5,
    ),
)
def scaled_groups() -> float:
    """Ask the model."""
    return _element(MMA_K * [1.0], [1.5, 1, 0.5, 2], [2, 1, 1, 4], 0.0)


@exercise(
    "06.4",
    title="One sum, one rounding",
    frames=("6.6.5", "6.6.9"),
    hints=(
        "Add all of it exactly first: nothing here is below the 35 bits that are kept.",
        "At 2^24 neighbouring float32 values are 2 apart.",
        "16,777,219 lies between two of them. Toward zero, not to the nearest even.",
    ),
    wrong=(
        # Nearest even; four sums of K = 16, each rounded; not rounded at all.
        16_777_220.0,
        16_777_216.0,
        16_777_219.0,
    ),
)
def one_rounding() -> float:
    """Ask the model: a single 1 in each of three groups."""
    a = np.zeros(MMA_K)
    a[: 3 * GROUP : GROUP] = 1
    return _element(a.tolist(), 4 * [1.0], 4 * [1.0], 2.0**24)
