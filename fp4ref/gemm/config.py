"""Part 1. config: the tile, and what is asked of the kernel. It computes nothing.

`fp4ref.gemm.plan` says what is allowed, and deduces stage counts and memory maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fp4ref.numerics import ScaleFormat
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

TILE_M = 128
TILE_K = 256
SF_VEC_SIZE = NVFP4_VEC_SIZE
SUBTILE_N = 32
"""Columns of D that the epilogue handles at a time."""

Format = Literal["f32", "bf16", "f16", "nvfp4"]
Activation = Literal["relu", "gelu", "silu"]


@dataclass(frozen=True)
class GemmConfig:
    """What is compiled into the kernel.

    Parameters
    ----------
    tile_n
        Columns of the CTA tile: 64 or 128. Rows are 128, K is 256.
    d_format
        Output elements; ``"nvfp4"`` adds block scales SFD.
    sfd_format, norm_constant
        Scale type of SFD, and the constant of the CUTLASS recipe.
    c_format
        Elements of C; None when the kernel has no C.
    beta
        Factor of C. It is compiled in, because 0 means that C is never loaded; alpha is
        an argument of the launch.
    bias
        Whether a float32 vector of length N is added.
    scheduler
        ``"clc"`` or ``"static"``.
    raster
        Which dimension of the tile grid runs fastest.
    stages
        Mainloop stages; None takes as many as fit.
    scale_buffers
        Sets of scale columns in TMEM. 2 stays inside the PTX text; 1 is what CUTLASS
        does and needs ``ordering="shipped"``.

    Notes
    -----
    A configuration only asks. `fp4ref.gemm.plan.plan` says whether it is allowed, and
    what follows from it.
    """

    tile_n: int = 128
    d_format: Format = "f32"
    sfd_format: ScaleFormat = ScaleFormat.UE4M3
    norm_constant: float = 1.0
    c_format: Literal["f32", "bf16", "f16"] | None = None
    beta: float = 0.0
    bias: bool = False
    activation: Activation | None = None
    scheduler: Literal["clc", "static"] = "clc"
    raster: Literal["m", "n"] = "m"
    stages: int | None = None
    c_stages: int = 2
    d_stages: int = 2
    accumulator_stages: int = 2
    clc_stages: int = 2
    scale_buffers: int = 2

    @classmethod
    def example_72b(cls, **changes: Any) -> GemmConfig:
        """Configuration of CUTLASS example 72b: the default GEMM of the frame index.

        f32 C with beta 0, D = E2M1 with UE8M0 SFD and norm constant 2. C keeps its
        four stages of shared memory, which leaves four mainloop stages, as in CUTLASS,
        where D lies in C's memory; here D has two stages of its own. The raster
        runs along M, as in the document; 72b's own heuristic takes N on square
        problems. Its alpha is 1: what the launch takes for operands without global
        scales, and ``alpha=1.0`` for others.
        """
        settings: dict[str, Any] = {
            "d_format": "nvfp4",
            "sfd_format": ScaleFormat.UE8M0,
            "norm_constant": 2.0,
            "c_format": "f32",
            "c_stages": 4,
        }
        return cls(**settings | changes)
