"""build: a request is checked, and its epilogue deduced."""

from __future__ import annotations

from fp4ref.arguments import require_instance
from fp4ref.gemm.epilogue_builder.alignment import check_alignment
from fp4ref.gemm.epilogue_builder.callbacks import (
    check_callbacks,
    check_scales,
)
from fp4ref.gemm.epilogue_builder.element_types import bits
from fp4ref.gemm.epilogue_builder.no_smem_epilogue import (
    Sm90NoSmemEpilogue,
    Sm100NoSmemEpilogue,
)
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest
from fp4ref.gemm.epilogue_builder.tma_epilogue import TmaEpilogue
from fp4ref.gemm.epilogue_builder.values import SubtileValues

Epilogue = TmaEpilogue | Sm90NoSmemEpilogue | Sm100NoSmemEpilogue


def build_epilogue(asked: EpilogueRequest) -> Epilogue:
    """Return the epilogue that CUTLASS's builder makes of a request.

    Raises
    ------
    InputError
        `asked` is something else.
    BuilderRefusal
        CUTLASS would not compile it; the message has its own reason.
    """
    require_instance(
        *(asked, "asked", EpilogueRequest),
        "For example EpilogueRequest(arch='sm100', tile=(128, 128, 256))",
    )
    _check_schedule(asked)
    if asked.chosen.tma:
        check_alignment(asked)
    check_callbacks(asked)
    epilogue = _kind(asked)(asked)
    if asked.fusion.block_scaled and isinstance(epilogue, SubtileValues):
        check_scales(asked, epilogue.epilogue_tile)
    assert epilogue.why  # asks every rule, so that what refuses does so here
    return epilogue


def _kind(asked: EpilogueRequest) -> type[Epilogue]:
    if asked.chosen.tma:
        return TmaEpilogue
    return Sm90NoSmemEpilogue if asked.arch == "sm90" else Sm100NoSmemEpilogue


def _check_schedule(asked: EpilogueRequest) -> None:
    chosen = asked.chosen
    if chosen.arch != asked.arch:
        raise BuilderRefusal(
            "Could not build a collective epilogue for given parameters.",
            f"schedule={chosen.name} with arch={asked.arch}",
            "collective_builder.hpp",
            f"It is a schedule of {chosen.arch}",
        )
    if chosen.cta_group == 2 and asked.cluster[0] % 2:
        raise BuilderRefusal(
            "schedule + cluster mismatch",
            f"{chosen.name} with {asked.cluster[0]} CTAs along M",
            "sm100_builder.inl",
            f"The nearest is {asked.cluster[0] + 1}",
        )
    if chosen.cta_group == 2 and asked.tile[0] % 2:
        raise BuilderRefusal(
            "Divisibility Condition",
            f"{chosen.name} with {asked.tile[0]} rows, of which each CTA has half",
            "sm100_builder.inl: cta_tile_shape",
            f"The nearest is {asked.tile[0] + 1}",
        )
    if not chosen.tma and asked.arch == "sm100" and bits(asked.element_d) == 6:
        raise BuilderRefusal(
            "Output element requires TMA",
            f"d={asked.d} with {chosen.name}",
            "sm100_builder.inl: the builder without shared memory",
            "Ask for a schedule with TMA",
        )
