"""case: the products whose kernels lose an operation.

Small, and yet each ring goes round more than once: more k-tiles than mainloop stages,
more tiles than accumulators and than answers of cluster launch control.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.faults.operands import operands
from fp4ref.execution.runs import Run, run
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.machine_state import Ordering
from fp4ref.numerics.elements import element

Form = Literal["emulator", "ptx"]


@dataclass(frozen=True)
class Case:
    """One configuration, and the product that it computes.

    Attributes
    ----------
    shape
        (M, N, K).
    sms
        SMs of the machine.
    """

    name: str
    config: GemmConfig
    shape: tuple[int, int, int]
    sms: int = 1

    def run(
        self, form: Form, ordering: Ordering = "ptx", schedule: str | int = "eager"
    ) -> Run:
        """Run the product, traced, every access watched."""
        m, n, _ = self.shape
        a, b = operands(self.shape, self.config.operands)
        epilogue = self.config.epilogue
        bias = np.linspace(1, 2, n, dtype=np.float32) if epilogue.bias else None
        return run(
            *(a, b, _c(m, n, epilogue.c_format) if epilogue.c_format else None),
            bias=bias,
            config=self.config,
            backend=form,
            schedule=schedule,
            ordering=ordering,
            sms=self.sms,
        )

    def clean(self, form: Form, ordering: Ordering = "ptx") -> Run:
        """Return the run of the whole kernel, which is made once."""
        return _clean(self.name, form, ordering)


@cache
def _c(m: int, n: int, name: str) -> NDArray[Any]:
    """C in a format, no two rows alike."""
    values = np.random.default_rng(2).uniform(-4, 4, (m, n))
    return values.astype(element(name).dtype)


@cache
def _clean(name: str, form: Form, ordering: Ordering) -> Run:
    return CASES[name].run(form, ordering)


_ROLLED: dict[str, Any] = {"mma_loop": "rolled"}
"""One text of each operation; whole rounds, with a copy for each stage, are a case."""
_FEW_STAGES: dict[str, Any] = {"tile_n": 64, "stages": 3, **_ROLLED}
_WHOLE = GemmConfig.nvfp4(
    c_format="bf16", beta=0.5, bias=True, d_format="nvfp4", **_FEW_STAGES
)
_STATIC = GemmConfig.nvfp4(scheduler="static", **_FEW_STAGES)
_PAIR: dict[str, Any] = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
_WIDE: dict[str, Any] = {"tile_n": 256, "stages": 2, "c_stages": 1, **_ROLLED}
_SPLIT = GemmConfig.nvfp4(splits=3, **_WIDE)
_COPIES = GemmConfig.nvfp4(
    loader="cp_async", tmem_load="16x256b", d_format="bf16", **_FEW_STAGES
)
_REUSE: dict[str, Any] = {"c_format": "f32", "beta": 0.5, "reuse_smem_c": True}
_MIXED = GemmConfig.nvfp4(d_format="bf16", **_REUSE, **_FEW_STAGES)
_DELAYED = GemmConfig.nvfp4(
    c_stages=3, d_stages=2, delay_tma_store=True, **_REUSE, **_FEW_STAGES
)
_ROUNDS = GemmConfig.nvfp4(stages=2)
_LATE = GemmConfig.nvfp4(delay_tma_store=True, **_FEW_STAGES)
_STAGED: dict[str, Any] = {
    "operand_format": "e4m3",
    "tile_n": 256,
    "stages": 2,
    "d_format": "bf16",
    "scheduler": "static",
    **_ROLLED,
}
_OF_003 = {"warp_order": "load_first", "prefetch_tile": True}
_PADDED = GemmConfig.nvfp4(staging="padded", **_OF_003, **_PAIR | _STAGED)
_ONE_HALF = GemmConfig.nvfp4(staging="padded", **_STAGED | {"tile_n": 128})
_BULK = GemmConfig.nvfp4(staging="bulk", **_STAGED)
_SWIZZLED = GemmConfig.nvfp4(staging="swizzled", **_STAGED)
CASES: Mapping[str, Case] = MappingProxyType(
    {
        case.name: case
        for case in (
            Case("C, bias, SFD", _WHOLE, (640, 64, 1024)),
            Case("one k-tile", _WHOLE, (640, 64, 256)),
            Case("static", _STATIC, (640, 64, 1280)),
            Case("five stages", GemmConfig.nvfp4(**_ROLLED), (640, 64, 1024)),
            Case("pair", GemmConfig.nvfp4(**_PAIR, **_FEW_STAGES), (1280, 64, 1024), 2),
            Case("wide pair", GemmConfig.nvfp4(**_PAIR, **_WIDE), (768, 256, 768), 2),
            Case("splits", _SPLIT, (256, 256, 1536), 3),
            Case("D in C's stages", _MIXED, (384, 64, 512)),
            Case("D in C's stages, delayed", _DELAYED, (384, 64, 512)),
            Case("delayed", _LATE, (256, 64, 256)),
            Case("rounds", _ROUNDS, (384, 64, 1792)),
            Case("cp.async", _COPIES, (256, 64, 784)),
            Case("cp.async, one k-tile", _COPIES, (128, 64, 80)),
            Case("padded rows", _PADDED, (768, 256, 384), 2),
            Case("bulk copies of rows", _BULK, (384, 256, 128)),
            Case("swizzled panels", _SWIZZLED, (384, 256, 128)),
            Case("one half of padded rows", _ONE_HALF, (384, 128, 128)),
        )
    }
)
"""By name; the first in which an operation is, loses it first."""
