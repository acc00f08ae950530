"""lesson_20: exercises of the epilogue as a tree."""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder import EpilogueRequest
from fp4ref.gemm.epilogue_builder.tma_epilogue import TmaEpilogue
from fp4ref.gemm.fusion.add import Add
from fp4ref.gemm.fusion.expression import acc, alpha, row, scalar
from fp4ref.gemm.fusion.fma import Fma
from fp4ref.gemm.fusion.multiply import Multiply
from fp4ref.lessons.exercise import exercise

_TREE = alpha * acc + row("bias") * scalar("s")


@exercise(
    "20.1",
    title="Roundings of a formula",
    frames=("7.6",),
    hints=(
        "A product that is added is part of an fma, which rounds once.",
        "Of two products the right one goes into the fma.",
        "alpha * acc is rounded, then the fma. What is loaded is not rounded.",
    ),
    # Every operation; both products in one; one more for gelu.
    wrong=(3, 1, 4),
)
def roundings() -> int:
    """Count the nodes that compute."""
    return sum(isinstance(n, Add | Fma | Multiply) for n in _TREE.node.walk())


@exercise(
    "20.2",
    title="Shared memory of C and D with reuse",
    frames=("7.4",),
    hints=(
        "With reuse D has no memory of its own.",
        "A stage has the bytes of the wider of the two: a subtile of float32.",
        "Four stages of 128 x 32 x 4 bytes.",
    ),
    why="D lies in C's memory, so only C counts: four stages of 128 x 32 float32.",
    # Stages of D besides; one stage; the whole epilogue; D's width.
    wrong=(69_632, 16_384, 67_584, 8_192),
)
def reused() -> int:
    """Ask the builder."""
    asked = EpilogueRequest(arch="sm100", tile=(128, 128, 256), c="f32", d="nvfp4")
    return TmaEpilogue(asked).collective_nbytes
