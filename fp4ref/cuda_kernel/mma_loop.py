"""mma_loop: what the MMA warp executes for a k-tile above the plain kernel, and why."""

from __future__ import annotations

from collections.abc import Mapping

from fp4ref.cuda_kernel.build import compile_kernel
from fp4ref.cuda_kernel.sass import SassFigures, figures
from fp4ref.gemm.config import GemmConfig

WHY: Mapping[str, str] = {
    "UTCQMMA": "the MMA of formats of 8 and 6 bits, where the plain kernel has UTCOMMA",
    "UTCHMMA": "the MMA of formats of 16 bits, where the plain kernel has UTCOMMA",
    "UTCCP": "more than 128 rows of B have two scale atoms for each K block",
    "LDCU": "a descriptor from constant memory: there are more of them, or fewer are "
    "kept in uniform registers from round to round",
    "UMOV": "an operand that is the same for all stages: the high words of an MMA's "
    "descriptor, or the mask of a multicast commit",
    "ULOP3": "the mask of a multicast commit has 16 bits",
    "CCTL": "a wait that acquires at cluster scope empties L1: peers arrive there",
    "MEMBAR": "the proxy fence after cp.async, before the MMAs read",
    "FENCE": "the proxy fence after cp.async, before the MMAs read",
    "LDS": "never executed (@!PT): the assembler's padding of a proxy fence",
    "MOV": "a uniform register is set aside in a vector register: a descriptor lies "
    "there until it is used again",
    "R2UR": "a uniform register comes back from a vector register",
    "UIADD3": "the address of a barrier, which a commit takes from a register",
    "BRA": "the end of a round, which has fewer k-tiles",
    "UISETP": "the end of a round, which has fewer k-tiles; or its first MMA",
    "ISETP": "the end of a round, counted in a vector register",
    "VIADD": "the end of a round, counted in a vector register",
    "IMAD": "the parity 1 of a round's waits, made once for it",
    "SHF": "the parities of a round's waits, made once for it",
    "HFMA2": "a constant of a round, made by the assembler in the place of a move",
    "LOP3": "whether a commit is elected, in vector registers",
    "ELECT": "whether a commit is elected, asked again",
    "ULEA": "the mask of a commit to the CTAs of a pair's cluster",
}
"""Why an instruction is executed more often than by the plain kernel, by its name."""


def compiled_figures(config: GemmConfig) -> SassFigures:
    """Compile a configuration for its real target, and return its figures.

    Raises
    ------
    CompileError
        NVRTC or nvdisasm is not installed.
    """
    cubin = compile_kernel(config).cubin
    return figures(cubin, k_group=config.mainloop.k_group)


def above(found: SassFigures, plain: SassFigures) -> dict[str, float]:
    """Return how often more an instruction is executed for a k-tile, by its name."""
    return {
        name: count / found.k_tiles - usual
        for name, count in found.loop_counts.items()
        if (usual := plain.loop_counts.get(name, 0) / plain.k_tiles)
        < count / found.k_tiles
    }
