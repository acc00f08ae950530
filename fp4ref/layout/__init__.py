"""layout: where the bits sit.

`int_tuple`, `algebra` and `tiling` are the CuTe layout algebra, `swizzle` the XOR
pattern of shared-memory tiles, `scale_factors` and `tmem_scales` the 128x4 atom of
block scales in memory and in tensor memory, `scale_layouts` the orders by name.
"""

from fp4ref.layout.algebra import (
    Layout,
    coalesce,
    complement,
    composition,
    left_inverse,
    make_layout,
    right_inverse,
)
from fp4ref.layout.int_tuple import crd2idx, idx2crd
from fp4ref.layout.scale_factors import (
    SwizzledScales,
    element_scale_layout,
    padded_shape,
    scale_atom,
    scale_layout,
    sf_nbytes,
    sf_offset,
    swizzle_scales,
    unswizzle_scales,
)
from fp4ref.layout.scale_layouts import (
    LaidOutScales,
    RaggedScales,
    layout_nbytes,
    scale_offsets,
)
from fp4ref.layout.swizzle import (
    PANEL_NBYTES,
    Swizzle,
    SwizzleMode,
    swizzled_offsets,
)
from fp4ref.layout.tiling import (
    flat_divide,
    local_tile,
    logical_divide,
    tiled_divide,
    zipped_divide,
)
from fp4ref.layout.tmem_scales import (
    TmemScalePosition,
    sfb_column_shift,
    sfb_smem_rows,
    sfb_start,
    tmem_scale_position,
)

__all__ = [
    "LaidOutScales",
    "PANEL_NBYTES",
    "Layout",
    "RaggedScales",
    "Swizzle",
    "SwizzleMode",
    "SwizzledScales",
    "TmemScalePosition",
    "coalesce",
    "complement",
    "composition",
    "crd2idx",
    "element_scale_layout",
    "flat_divide",
    "idx2crd",
    "layout_nbytes",
    "left_inverse",
    "local_tile",
    "logical_divide",
    "make_layout",
    "padded_shape",
    "right_inverse",
    "scale_atom",
    "scale_layout",
    "scale_offsets",
    "sf_nbytes",
    "sf_offset",
    "sfb_column_shift",
    "sfb_smem_rows",
    "sfb_start",
    "swizzle_scales",
    "swizzled_offsets",
    "tiled_divide",
    "tmem_scale_position",
    "unswizzle_scales",
    "zipped_divide",
]
