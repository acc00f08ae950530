"""Part 1. config: the tile, and what is asked of the kernel. It computes nothing.

`fp4ref.gemm.plan` says what is allowed, and deduces stage counts and memory maps.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from fp4ref.errors import InputError
from fp4ref.numerics import ScaleFormat
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

TILE_M = 128
TILE_K = 256
"""Of the default's operands, packed E2M1."""
SF_VEC_SIZE = NVFP4_VEC_SIZE
SUBTILE_N = 32
"""Columns of D that the default's epilogue handles at a time."""

SourceFormat = Literal["f32", "bf16", "f16", "e4m3", "e5m2"]
"""Of C and of aux tensors."""
Format = Literal[SourceFormat, "nvfp4"]
"""Of D."""


@dataclass(frozen=True)
class Tile:
    """Rows, columns and K of the tile of one MMA: CUTLASS's ``MmaTileShape``.

    Parameters
    ----------
    m
        128 for one SM, 256 for a pair, of which each CTA has half.
    n
        64, 128, 192 or 256.
    k
        None takes the elements of a row of 128 bytes in shared memory: 256 of packed
        E2M1, 64 of 16 bits, and 128 of all others.
    """

    m: int = TILE_M
    n: int = 128
    k: int | None = None


@dataclass(frozen=True)
class Operands:
    """What A and B are.

    Parameters
    ----------
    operand_format
        ``"nvfp4"``, a scale for 16 elements of type UE4M3 or UE8M0 as the operands have
        it; with a UE8M0 scale for 32 ``"mxfp4"``, ``"mxfp8_e4m3"``, ``"mxfp8_e5m2"``,
        ``"mxfp6_e2m3"`` and ``"mxfp6_e3m2"``; without scales ``"f16"``, ``"bf16"``,
        ``"e4m3"``, ``"e5m2"``, ``"e2m3"``, ``"e3m2"`` and ``"e2m1"``.
    b_format
        Of B where it is another: formats of 8 bits and less go together if both have a
        scale for 32 elements, or neither has scales. None is that of A.
    swap_ab
        Whether the kernel takes B for A and A for B: its tile, its cluster and its
        tile order are then those of ``B @ A.T``, the transpose of D, and a small M
        fills the N side of the MMA. D, SFD, C and bias are asked for as without.
    """

    operand_format: str = "nvfp4"
    b_format: str | None = None
    swap_ab: bool = False


@dataclass(frozen=True)
class Mainloop:
    """The rings between load, MMA and epilogue.

    Parameters
    ----------
    stages
        Mainloop stages; None takes as many as fit.
    accumulator_stages
        Accumulators in TMEM.
    scale_buffers
        Sets of scale columns in TMEM, each for a stage. 2 stays inside the PTX text; 1
        is what CUTLASS does and needs ``ordering="shipped"``.
    k_group
        k-tiles of a stage, which share its two barriers: 1, 2 or 4.
    loader
        What copies A and B: ``"tma"``, or ``"cp_async"``, which takes operands whose
        rows TMA cannot address. A launch with such operands chooses it by itself.
    mma_loop
        How the MMA warp goes round its ring. ``"unrolled"`` has two rounds written out;
        ``"rolled"`` computes stage and phase for each k-tile, by the same text, and
        issues 59 instructions for one instead of 34.
    """

    stages: int | None = None
    accumulator_stages: int = 2
    scale_buffers: int = 2
    k_group: int = 1
    loader: Literal["tma", "cp_async"] = "tma"
    mma_loop: Literal["unrolled", "rolled"] = "unrolled"


@dataclass(frozen=True)
class Cluster:
    """Which CTAs work together.

    Parameters
    ----------
    cta_group
        1 or 2: SMs that execute one MMA.
    cluster_m, cluster_n
        CTAs of a cluster along M and N: CUTLASS's ``ClusterShape``. Those of one row
        share A, those of one column B: each loads a part and sends it to all.
    """

    cta_group: int = 1
    cluster_m: int = 1
    cluster_n: int = 1


@dataclass(frozen=True)
class TileOrder:
    """Who says which tile is next, and in which order they come.

    Parameters
    ----------
    scheduler
        ``"clc"`` or ``"static"``.
    raster
        Which dimension of the tile grid runs fastest.
    raster_swizzle
        Clusters of the other dimension that come together, so that they share what L2
        holds: 1, 2, 4 or 8.
    clc_stages
        CLC answers at a time.
    splits
        Work units that share the k-tiles of an output tile (split-K). They add their
        float32 accumulators in the order of K; the last one with k-tiles stores D.
    """

    scheduler: Literal["clc", "static"] = "clc"
    raster: Literal["m", "n"] = "m"
    raster_swizzle: int = 1
    clc_stages: int = 2
    splits: int = 1


@dataclass(frozen=True)
class Epilogue:
    """D = activation(beta * C + (alpha * acc + bias)), and the form of D.

    Parameters
    ----------
    d_format
        Output elements; ``"nvfp4"`` adds block scales SFD, each of 16 elements that
        lie side by side: of N, or of M as `store` says. ``"e4m3"`` and ``"e5m2"``
        saturate: what is too large, infinity too, becomes the largest number. None
        stores no D: what the nodes of a tree store is all that is left.
    sfd_format, norm_constant
        Scale type of SFD, and the constant of the CUTLASS recipe.
    c_format
        Elements of C; None when the kernel has no C.
    beta
        Factor of C. It is compiled in, because 0 means that C is never loaded; alpha is
        an argument of the launch.
    bias
        Whether a float32 vector of length N is added.
    activation
        ``"relu"``, ``"gelu"``, ``"silu"`` or None.
    subtile_n
        Columns of D that the epilogue handles at a time, N of CUTLASS's
        ``EpilogueTile``: 16, 32, 64 or 128, of which a tile has a whole number. Its M
        is all rows of a CTA's tile.
    c_stages, d_stages
        Subtiles of C and of D in shared memory.
    reuse_smem_c
        Whether D is written to the stage that C came in. D then has C's stages, and
        `d_stages` is how many of its stores may still read theirs.
    delay_tma_store
        Whether the store of a subtile starts when the next one has been computed.
    store
        How C and D lie in memory: ``"plain"`` has rows of N elements, ``"transposed"``
        rows of M elements.
    element_wise
        Where the formula is computed: ``"registers"``, as the accumulator comes from
        TMEM, or ``"smem"``, where the accumulator is written first. A tile that is not
        stored as it was multiplied (`store` and `swap_ab`) is transposed there.
    fusion
        A tree of `fp4ref.gemm.fusion`, as `build` makes it, in the place of the formula
        above: then `beta`, `bias` and `activation` ask for nothing. None is the
        formula.
    tmem_load
        Shape of ``tcgen05.ld``: with ``"32x32b"`` a thread has a row of the subtile,
        with ``"16x256b"`` pairs of elements of four rows, as ``stmatrix`` stores them.
    """

    d_format: Format | None = "f32"
    sfd_format: ScaleFormat = ScaleFormat.UE4M3
    norm_constant: float = 1.0
    c_format: SourceFormat | None = None
    beta: float = 0.0
    bias: bool = False
    activation: str | None = None
    subtile_n: int = SUBTILE_N
    c_stages: int = 2
    d_stages: int = 2
    reuse_smem_c: bool = False
    delay_tma_store: bool = False
    store: Literal["plain", "transposed"] = "plain"
    element_wise: Literal["registers", "smem"] = "registers"
    tmem_load: Literal["32x32b", "16x256b"] = "32x32b"
    fusion: Hashable | None = None


@dataclass(frozen=True)
class Staging:
    """How D goes from registers to global memory, if each warp brings its own rows.

    A warp then has its rows in halves of 128 columns in shared memory of its own, and
    no named barrier of the epilogue warps: document 003's epilogue. Phase 1 writes the
    first half, 1B the second one while 2A brings the first to global memory, and 2B
    brings the second one.

    Parameters
    ----------
    staging
        ``"tiles"`` is the epilogue with stages that one warp stores whole. Else a warp
        has rows of 272 bytes, of which 16 are padding: ``"padded"`` reads them back and
        stores them, ``"bulk"`` has a bulk copy for each row. With ``"swizzled"`` two
        tensor copies take two panels of 128 bytes, and ``"none"`` stores each thread's
        row from registers.
    unroll
        Subtiles of a half that are unrolled together: 1, 2, or 4, which are all.
    release
        When the accumulator is given back: ``"loaded"``, after its last load, or
        ``"stored"``, when D has been stored.
    """

    staging: Literal["tiles", "padded", "bulk", "swizzled", "none"] = "tiles"
    unroll: int = 1
    release: Literal["loaded", "stored"] = "loaded"


@dataclass(frozen=True)
class Warps:
    """Which warp of a CTA does what.

    Parameters
    ----------
    warp_order
        ``"mma_first"`` is CUTLASS's: MMA, scheduler, load, load of C, and the epilogue.
        ``"load_first"`` has the load, the MMA, and the epilogue from warp 2 on; roles
        without work have no warp.
    epilogue_warps
        4, one for each quarter of the TMEM lanes; 6 or 8 if a warp has but one of the
        two halves of its rows.
    prefetch_tile
        Whether the load warp finds the tile after this one before it loads this one.
    """

    warp_order: Literal["mma_first", "load_first"] = "mma_first"
    epilogue_warps: int = 4
    prefetch_tile: bool = False


@dataclass(frozen=True)
class GemmConfig:
    """What is compiled into the kernel.

    Notes
    -----
    A configuration only asks. `fp4ref.gemm.plan.plan` says whether it is allowed, and
    what follows from it.
    """

    tile: Tile = Tile()
    operands: Operands = Operands()
    mainloop: Mainloop = Mainloop()
    cluster: Cluster = Cluster()
    tiles: TileOrder = TileOrder()
    epilogue: Epilogue = Epilogue()
    staging: Staging = Staging()
    warps: Warps = Warps()

    @classmethod
    def nvfp4(cls, **asked: Any) -> GemmConfig:
        """Return the default with some fields changed, each by its own name.

        ``GemmConfig.nvfp4(tile_n=64, d_format="bf16")``; the names are those of the
        parts, with `Tile`'s as ``tile_n``.

        Raises
        ------
        InputError
            No part has such a field.
        """
        return cls().replace(**asked)

    def replace(self, **asked: Any) -> GemmConfig:
        """Return a copy with some fields changed, each by its own name.

        Raises
        ------
        InputError
            No part has such a field.
        """
        changed: dict[str, dict[str, Any]] = {}
        for name, value in asked.items():
            if name not in FIELDS:
                known = ", ".join(sorted(FIELDS))
                raise InputError(f"{name!r:.60}: no such field; names are {known}")
            part, field = FIELDS[name]
            changed.setdefault(part, {})[field] = value
        parts = {
            part: replace(getattr(self, part), **values)
            for part, values in changed.items()
        }
        return replace(self, **parts)

    def asked(self, name: str) -> Any:
        """Return a field by its own name."""
        part, field = FIELDS[name]
        return getattr(getattr(self, part), field)

    def all_asked(self) -> dict[str, Any]:
        """Return every field by its own name."""
        return {name: self.asked(name) for name in FIELDS}

    @classmethod
    def example_72b(cls, **changes: Any) -> GemmConfig:
        """Configuration of CUTLASS example 72b: the default GEMM of the frame index.

        f32 C with beta 0, D = E2M1 with UE8M0 SFD and norm constant 2. C keeps its
        four stages of shared memory, which leaves four mainloop stages, and D is
        written to them, with two stores at a time, as in CUTLASS. The raster runs along
        M, as in the document; 72b's own heuristic takes N on square
        problems. Its MMA warp peeks at each next stage, in a loop that is rolled. Its
        alpha is 1: what the launch takes for operands without global scales, and
        ``alpha=1.0`` for others.
        """
        settings: dict[str, Any] = {
            "d_format": "nvfp4",
            "sfd_format": ScaleFormat.UE8M0,
            "norm_constant": 2.0,
            "c_format": "f32",
            "c_stages": 4,
            "reuse_smem_c": True,
            "mma_loop": "rolled",
        }
        return cls.nvfp4(**settings | changes)


FIELDS: dict[str, tuple[str, str]] = {
    f"tile_{field.name}" if part.name == "tile" else field.name: (part.name, field.name)
    for part in fields(GemmConfig)
    for field in fields(getattr(GemmConfig(), part.name))
}
"""Part and field, by the name under which a field is asked for and reported."""
