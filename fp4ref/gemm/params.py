"""Part 3. params: what a launch passes to the kernel by value.

`FIELDS` is the one table of it. `fp4ref.cuda_kernel.parameters` makes from it the bytes
that a launch passes and the struct of ``kernel/gemm/params.cuh``, and
`fp4ref.cuda_kernel.on_device` the arguments of a launch on a card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from struct import calcsize
from typing import Any

from fp4ref.gemm.split_k import SplitK
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware.tensor_map import NBYTES, TensorMap
from fp4ref.numerics import ScaleFormat
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE


class Kind(Enum):
    """What a field is: its type in CUDA, and its bytes as `struct` writes them."""

    TENSOR_MAP = ("TensorMap", f"{NBYTES}s")
    POINTER = ("const float*", "Q")
    ADDRESS = ("u64", "Q")
    """A global address that the kernel counts with; moved on a card as a pointer is."""
    F32 = ("float", "f")
    U32 = ("u32", "I")

    def __init__(self, cuda: str, code: str) -> None:
        self.cuda = cuda
        self.code = f"<{code}"

    @property
    def nbytes(self) -> int:
        """Size, and alignment too."""
        return calcsize(self.code)


@dataclass(frozen=True, slots=True)
class GemmParams:
    """Kernel parameters: the problem and its tensor maps.

    Attributes
    ----------
    m, n, k, l
        Sizes and batch count.
    tile_k
        K of a stage; compiled in, in CUDA.
    transposes
        Whether D is stored across its accumulators' rows; compiled in too.
    scale_format, sfa, sfb
        None for operands without scales.
    a, b
        None where `a_address` and `b_address` are used, because TMA takes no such rows.
    c, d
        None without C, and without D.
    sfd, bias
        Global addresses of plain pointers; 0 when unused.
    a_address, b_address
        Of A and B, rows of K elements without padding.
    alpha
        As float32, applied to the accumulator.
    workspace
        Global address of partial sums and locks; 0 without split-K.
    d_address
        Of D, where a warp stores rows of it; 0 where they go by the tensor map.
    arguments
        What the formula's nodes are passed, by slot: numbers and global addresses.
    probe
        Called with each region of D and its visit; silicon has none.
    """

    m: int
    n: int
    k: int
    l: int  # noqa: E741  the batch mode's name in CUTLASS
    tile_k: int
    transposes: bool
    scale_format: ScaleFormat | None
    alpha: float
    a: TensorMap | None
    b: TensorMap | None
    sfa: TensorMap | None
    sfb: TensorMap | None
    c: TensorMap | None
    d: TensorMap | None
    sfd: int
    bias: int
    a_address: int
    b_address: int
    grid: TileGrid
    workspace: int = 0
    d_address: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    probe: Callable[[Any, Any], None] | None = None

    def passed(self, slot: str) -> Any:
        """Return what a node's slot holds; that of the bias is a field of its own."""
        return self.arguments.get(slot, self.bias)

    @property
    def k_tiles(self) -> int:
        """Mainloop iterations of a tile. Frame 2.3."""
        return -(-self.k // self.tile_k)

    @property
    def d_rows(self) -> int:
        """Rows of C and D in memory."""
        return self.n if self.transposes else self.m

    @property
    def d_columns(self) -> int:
        """Columns of C and D in memory: elements that lie side by side."""
        return self.m if self.transposes else self.n

    @property
    def split_k(self) -> SplitK:
        """Which k-tiles belong to which split."""
        return SplitK(self.k_tiles, self.grid.splits)

    @property
    def sfd_columns(self) -> int:
        """Scales of one row of D."""
        return -(-self.d_columns // NVFP4_VEC_SIZE)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the parameter block.

    Attributes
    ----------
    sentence
        What it is; the comment in CUDA.
    take
        How `GemmParams` gives it; None takes the attribute of its name.
    """

    name: str
    kind: Kind
    sentence: str
    take: Callable[[GemmParams], Any] | None = None

    def of(self, params: GemmParams) -> Any:
        """Return the field's value; None for a tensor map that is never used."""
        return self.take(params) if self.take else getattr(params, self.name)


FIELDS: tuple[Field, ...] = (
    Field("a", Kind.TENSOR_MAP, "A: (K, M, L)"),
    Field("b", Kind.TENSOR_MAP, "B: (K, N, L)"),
    Field(
        "sfa",
        Kind.TENSOR_MAP,
        "SFA: atoms along K, then blocks of 128 rows; zeros without",
    ),
    Field("sfb", Kind.TENSOR_MAP, "SFB: likewise"),
    Field("c", Kind.TENSOR_MAP, "C: (N, M, L); zeros without C"),
    Field("d", Kind.TENSOR_MAP, "D: (N, M, L); zeros without D"),
    Field("sfd", Kind.ADDRESS, "global address of the scales of D, or 0"),
    Field("bias", Kind.POINTER, "N numbers, or 0"),
    Field("m", Kind.U32, "rows of A and D"),
    Field("n", Kind.U32, "rows of B, columns of D"),
    Field("k", Kind.U32, "columns of A and B"),
    Field("l", Kind.U32, "batches"),
    Field("alpha", Kind.F32, "factor of the accumulator"),
    Field(
        "scale_type",
        Kind.U32,
        "of A and B: 0 UE4M3, 1 UE8M0",
        lambda params: params.scale_format is ScaleFormat.UE8M0,
    ),
    Field("a_address", Kind.ADDRESS, "global address of A: rows of K / 2 bytes"),
    Field("b_address", Kind.ADDRESS, "global address of B: likewise"),
    Field("workspace", Kind.ADDRESS, "global address of sums and locks, or 0"),
)
"""Every field in the order of the block, each aligned to its size."""

D_ADDRESS = Field(
    "d_address", Kind.ADDRESS, "global address of D: rows of whole 16 bytes"
)
"""Behind the fields, in a kernel that stores D by its address."""
