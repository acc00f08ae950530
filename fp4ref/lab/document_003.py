"""document_003: document 003's kernel, a configuration of the family, and its variants.

    tile        256 x 256 of a pair, 128 of K: 24 MMAs for K = 768
    warps       load, MMA and four of the epilogue; the tiles are given out statically
    epilogue    acc + embedding in BF16, staged in rows of 272 bytes, phases 1 to 2B

Its sizes are the row ``003`` of ``fp4ref/data/lab_workloads.toml``. What the document
tried is a change of a few fields, by the number of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.expression import acc, add_bf16, build, embedding
from fp4ref.lab.workload import Workload, workloads

TABLE: Final = "embedding"
"""Name of the embedding's table among the arguments of a launch: (P, N) in BF16."""

_FORMATS: Final = {8: "e4m3"}

_IN_BF16: Final = build(add_bf16(acc, embedding(TABLE)), d="bf16").fusion
_IN_F32: Final = build(acc + embedding(TABLE), d="bf16").fusion

_KERNEL: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "stages": 4,
        "scheduler": "static",
        "warp_order": "load_first",
        "d_format": "bf16",
        "fusion": _IN_BF16,
        "staging": "padded",
        "unroll": 2,
    }
)

VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "baseline": {},
        "F22, add in float32": {"fusion": _IN_F32},
        "F22, unroll 1": {"unroll": 1},
        "F22, unroll 4": {"unroll": 4},
        "F24, swizzled": {"staging": "swizzled"},
        "F24, swizzled, 5 stages": {"staging": "swizzled", "stages": 5},
        "F19b, bulk copies": {"staging": "bulk"},
        "F17, direct stores": {"staging": "none"},
        "F19a, late release": {"release": "stored"},
        "F20, next tile ahead": {"prefetch_tile": True},
        "F3, 6 epilogue warps": {"epilogue_warps": 6},
        "F3, 8 epilogue warps": {"epilogue_warps": 8},
        "TN=128": {"tile_n": 128},
        "F12, TN=128, 6 stages": {"tile_n": 128, "stages": 6},
    }
)
"""Fields that differ from the kernel of the document's last state, by experiment.

F19a asks whether the accumulator is given back before the second half is stored. That
the document's MMA warp waits for phase 1 and not for 2B says that its last state does
so: the variant is what was before.
"""

REFUSED: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "5 stages beside padded rows": {"stages": 5},
        "F23C, 2 epilogue warps": {"epilogue_warps": 2},
    }
)
"""What the document has, or has tried, and no plan allows."""


def work() -> Workload:
    """Return the product that the document's kernel computes."""
    return workloads()["003"]


def config(**changes: Any) -> GemmConfig:
    """Return the document's kernel, some fields changed."""
    cut = work()
    asked = {
        "tile_m": cut.tile_m,
        "tile_n": cut.tile_n,
        "cta_group": cut.cta_group,
        "cluster_m": cut.cta_group,
        "operand_format": _FORMATS[cut.element_bits],
        **_KERNEL,
    }
    return GemmConfig.nvfp4(**asked | changes)


def variant(name: str) -> GemmConfig:
    """Return one of `VARIANTS` or `REFUSED`, by name."""
    return config(**{**VARIANTS, **REFUSED}[name])
