"""alignment: rows of C and D start where TMA can reach them.

Alignments are in elements, and what counts is their bits. Source: CUTLASS
``sm90_common.inl: is_aligned``, on both architectures.
"""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder.element_types import VOID, bits
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.gemm.epilogue_builder.request import (
    EpilogueRequest,
    alignment_bits,
    least_alignment,
)

SOURCE = "sm90_common.inl: is_aligned"


def check_alignment(asked: EpilogueRequest) -> None:
    """Refuse C and D that are not aligned.

    Raises
    ------
    BuilderRefusal
        One of them is not.
    """
    for name, element, elements in (
        ("align_c", asked.c, asked.alignment_c),
        ("align_d", asked.element_d, asked.alignment_d),
    ):
        need = alignment_bits(element)
        if element != VOID and elements * bits(element) % need:
            least = least_alignment(element)
            near = max(least, round(elements / least) * least)
            raise BuilderRefusal(
                "C/D Should meet TMA alignment requirement",
                f"{name}={elements}: {elements} elements of {element} are no multiple "
                f"of {need // 8} bytes",
                SOURCE,
                f"The nearest is {near}",
            )
