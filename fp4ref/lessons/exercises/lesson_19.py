"""lesson_19: exercises of the formats of A and B; the answers come from the plan."""

from __future__ import annotations

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise
from fp4ref.numerics.elements import element


@exercise(
    "19.1",
    title="MMAs of a tile of BF16",
    frames=("6.6.5",),
    hints=(
        "One MMA reads 32 bytes of a row.",
        "An element of BF16 has two bytes, so K of an MMA is 16.",
    ),
    # As NVFP4, as FP8, the k-tiles, one for each element of a byte.
    wrong=(8, 16, 4, 64),
    unit="MMA instructions",
)
def mmas() -> int:
    """Ask the plan for K of an MMA."""
    return 512 // plan(GemmConfig.nvfp4(operand_format="bf16")).mma_k


@exercise(
    "19.2",
    title="MXFP4 beside MXFP8",
    frames=("5.4.5",),
    hints=(
        "The kind is mxf8f6f4: each element has the place of a byte.",
        "In global memory there are no gaps; two codes share a byte.",
        "The barrier counts what is copied, not the padding.",
    ),
    # Packed in both; padded in both; as MXFP6; exchanged.
    wrong=((64, 64), (128, 128), (96, 128), (128, 64)),
)
def of_a_row() -> tuple[int, int]:
    """A row of B, as copied and as it lies."""
    asked = GemmConfig.nvfp4(operand_format="mxfp8_e4m3", b_format="mxfp4")
    p = plan(asked)
    copied = p.tile_k * element("mxfp4").bits // 8
    return copied, p.b_nbytes // p.tile_n
