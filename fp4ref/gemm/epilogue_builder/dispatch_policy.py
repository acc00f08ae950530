"""dispatch_policy: stages, fragment, reuse of C's memory, and the delayed store.

::

                       SM90                          SM100
    StagesD            min(subtiles, 2)              the same
    StagesC            min(subtiles, 4); with reuse at least StagesD + 1, both
    FragmentSize       subtile / 128 threads,        subtile / 128 threads
                       256 if cooperative
    ReuseSmemC         C as wide as D, > 8 bits      C wider than 8 bits
    DelayTmaStore      void C, no pointer arrays     the same

Source: CUTLASS ``sm90_get_tma_dispatch_policy`` and ``sm100_dense_dispatch_policy``.
"""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder.element_types import VOID, bits
from fp4ref.gemm.epilogue_builder.operations import HEAVY_ACTIVATIONS
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest

SM90 = "sm90_builder.inl: sm90_get_tma_dispatch_policy"
SM100 = "sm100_builder.inl: sm100_dense_dispatch_policy"
_MOST_STAGES_C, _MOST_STAGES_D = 4, 2
_MAINLOOP_SHARES_NOTHING = 8
"""Bits of a C so small that memory of its own costs less than waiting for a store."""


def stages_d(subtiles: int) -> int:
    """Return how many subtiles of D may be on their way out."""
    return min(subtiles, _MOST_STAGES_D)


def stages_c(subtiles: int, reuse: bool) -> int:
    """Return how many subtiles of C are loaded ahead.

    With reuse a stage is C's, then D's: one more than `stages_d` keeps a load and a
    store from waiting for each other.
    """
    ahead = min(subtiles, _MOST_STAGES_C)
    return max(ahead, stages_d(subtiles) + 1) if reuse else ahead


def reuses_c(asked: EpilogueRequest, element_d: str) -> bool:
    """Whether D is written over C in shared memory."""
    c, d = bits(asked.c), bits(element_d)
    if asked.arch == "sm90":
        return c == d and d > _MAINLOOP_SHARES_NOTHING
    return c > _MAINLOOP_SHARES_NOTHING


def delays_store(asked: EpilogueRequest) -> bool:
    """Whether a subtile is stored after the next one has been computed."""
    return asked.c == VOID and not asked.chosen.ptr_array


def unrolls_subtiles(asked: EpilogueRequest) -> bool:
    """Whether the loop of subtiles is unrolled: on SM100 not around a heavy activation.

    Source: CUTLASS sm100_epilogue_tma_warpspecialized.hpp, ``UnrollEpiLoop``.
    """
    if asked.arch == "sm90" or not asked.fusion.activation:
        return True
    return (asked.activation or "relu") not in HEAVY_ACTIVATIONS


def threads(asked: EpilogueRequest) -> int:
    """Return how many threads share a subtile."""
    return 256 if asked.chosen.cooperative else 128
