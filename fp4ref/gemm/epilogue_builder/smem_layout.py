"""smem_layout: the swizzled atom of C and D, and a subtile made of atoms.

An atom is 8 rows of 16, 32, 64 or 128 bytes, the widest that divides the subtile along
the contiguous dimension. SM100 has one exception: a 32-bit M-major tile takes 32 x 4
elements whose pairs of chunks move together.

Source: CUTLASS ``ss_smem_selector`` in gemm/collective/builders/sm90_common.inl,
``sm100_smem_selector`` in sm100_common.inl, and CuTe's mma_traits_sm90_gmma.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.epilogue_builder.element_types import bits, smem_bits
from fp4ref.gemm.epilogue_builder.epilogue_tile import EpilogueTile
from fp4ref.gemm.epilogue_builder.refusal import BuilderRefusal
from fp4ref.layout import Layout, Swizzle, SwizzleMode

SM90 = "gemm/collective/builders/sm90_common.inl: ss_smem_selector"
SM100 = "gemm/collective/builders/sm100_common.inl: sm100_smem_selector"
_WIDEST_FIRST = (
    SwizzleMode.B128,
    SwizzleMode.B64,
    SwizzleMode.B32,
    SwizzleMode.NONE,
)
_ROWS = 8


@dataclass(frozen=True)
class SmemLayout:
    """A layout in shared memory: a pattern of bytes over a layout of elements.

    Attributes
    ----------
    bits
        Of an element there.
    """

    swizzle: Swizzle
    bits: int
    layout: Layout

    def __str__(self) -> str:
        return f"{self.swizzle} o smem_ptr[{self.bits}b] o {self.layout}"

    @property
    def alignment(self) -> int:
        """Bytes after which the pattern repeats.

        Source: CUTLASS detail/layout.hpp, ``alignment_for_swizzle``.
        """
        return 1 << self.swizzle.bits + self.swizzle.base + self.swizzle.shift


def atom(arch: str, element: str, layout: str, tile: EpilogueTile) -> SmemLayout:
    """Return the atom for a matrix of `element` in subtiles of `tile`.

    Raises
    ------
    BuilderRefusal
        Not even 16 bytes divide the subtile.
    """
    width = smem_bits(element) if arch == "sm100" else bits(element)
    m_major = layout == "column"
    extent = tile.m if m_major else (tile.n if arch == "sm90" else tile.contiguous_n)
    for name, each in (("BLK_MN0", tile.m), ("BLK_K0", tile.contiguous_n)):
        if each % _ROWS:
            raise BuilderRefusal(
                f"{name} must be a multiple of 8.",
                f"a subtile of {tile.m},{tile.n}",
                SM90 if arch == "sm90" else SM100,
                f"The nearest is {max(_ROWS, round(each / _ROWS) * _ROWS)}",
            )
    if arch == "sm100" and m_major and width == 32:
        mode, across = SwizzleMode.B128_ATOM_32B, 4
    else:
        fitting = (m for m in _WIDEST_FIRST if extent % (m.span * 8 // width) == 0)
        mode, across = next(fitting, SwizzleMode.NONE), _ROWS
    along = mode.span * 8 // width
    if extent % along or width == 6:  # which no atom of 2^n bytes is made of
        raise BuilderRefusal(*_no_atom(arch, element, m_major, extent, along))
    if m_major:
        return SmemLayout(mode.swizzle, width, Layout((along, across), (1, along)))
    return SmemLayout(mode.swizzle, width, Layout((across, along), (along, 1)))


def _no_atom(
    arch: str, element: str, m_major: bool, extent: int, along: int
) -> tuple[str, str, str, str]:
    mma, name = "GMMA" if arch == "sm90" else "UMMA", "MN" if m_major else "K"
    block = "BLK_MN0" if m_major else "BLK_K0"
    reason = (
        f"{block} must be a multiple of size<{int(not m_major)}>({mma}::Layout_{name}_"
        "INTER_Atom<ElementType>{})"
    )
    if arch == "sm100" and m_major and smem_bits(element) == 32:
        reason = (
            "for mn-major tf32 operands, SW128_32B is the only available smem layout"
        )
    return (
        reason,
        f"{extent} elements of {element} along the contiguous dimension of a subtile, "
        f"where an atom has {along}",
        SM90 if arch == "sm90" else SM100,
        f"The nearest is {max(along, round(extent / along) * along)}",
    )


def staged(
    one: SmemLayout,
    layout: str,
    tile: EpilogueTile,
    stages: int,
    stride: int | None = None,
) -> SmemLayout:
    """Repeat an atom over a subtile and over the stages: CuTe's ``tile_to_shape``.

    Parameters
    ----------
    stride
        Elements from one stage to the next, which is then a mode of its own, as on
        SM100. None appends the stages as SM90 does: one more repetition.
    """
    (rows, row_step), (columns, column_step) = one.layout.flat_modes
    steps = (row_step, column_step)
    counts = (tile.m // rows, tile.n // columns)
    size = rows * columns
    # The dimension that is not contiguous is filled with atoms first.
    first = 1 if layout == "column" else 0
    apart = [size, size]
    apart[1 - first] = size * counts[first]
    strides = [apart[i] if counts[i] > 1 else 0 for i in (0, 1)]
    shape = ((rows, counts[0]), (columns, counts[1]))
    by_mode = ((steps[0], strides[0]), (steps[1], strides[1]))
    if stride is not None:
        over = Layout((*shape, stages), (*by_mode, stride))
    else:
        whole = tile.m * tile.n if stages > 1 else 0
        over = Layout((*shape, (1, stages)), (*by_mode, (0, whole)))
    return SmemLayout(one.swizzle, one.bits, over)
