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
    "LDCU": "each scale copy has a descriptor, read from constant memory",
    "UIMAD": "the address of descriptors whose size is no power of two",
    "UMOV": "an operand that is the same for all stages: the high words of an MMA's "
    "descriptor, or the mask of a multicast commit",
    "ULOP3": "the mask of a multicast commit has 16 bits; or the first rounds of a "
    "group are counted in steps of two",
    "CCTL": "a wait that acquires at cluster scope empties L1: peers arrive there",
    "MEMBAR": "the proxy fence after cp.async, before the MMAs read",
    "FENCE": "the proxy fence after cp.async, before the MMAs read",
    "LDS": "never executed (@!PT): the assembler's padding of a proxy fence",
    "R2UR": "a base that lies in a vector register goes to a uniform one",
    "BRA": "the loop over the k-tiles of a group",
    "UISETP": "the end of a group and of the last, ragged one",
    "ISETP": "the end of a group, counted in a vector register",
    "UIADD3": "addresses of the k-tiles of a group, and of their scales in TMEM",
    "VIMNMX": "the k-tiles of a group, fewer in the last one",
    "VIADDMNMX": "the k-tiles of a group, fewer in the last one",
    "IMAD": "the k-tiles of a group, as bytes of descriptors",
    "MOV": "the k-tiles of a group, as bytes of descriptors",
    "VIADD": "one k-tile of a group less, in bytes of descriptors",
    "IADD3": "one k-tile of a group less, in bytes of descriptors",
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
