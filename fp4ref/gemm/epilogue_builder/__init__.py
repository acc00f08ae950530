"""epilogue_builder: the epilogue that CUTLASS's builder makes of types and a tile.

One module is one decision, with SM90's rule and SM100's side by side; `values`,
`tma_epilogue` and `no_smem_epilogue` ask each of them once and say why. Nothing here
runs: the epilogue of this package's kernel is planned in `fp4ref.gemm.plan`.
"""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder.build import Epilogue, build_epilogue
from fp4ref.gemm.epilogue_builder.launch import EpilogueLaunch
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest

__all__ = [
    "BuilderRefusal",
    "Epilogue",
    "EpilogueLaunch",
    "EpilogueRequest",
    "build_epilogue",
]
