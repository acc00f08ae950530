"""src_fetch: C, from the stages that the epilogue load warp fills."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit
from fp4ref.hardware import smem
from fp4ref.hardware.sm import Blocked
from fp4ref.layout import SwizzleMode, swizzled_offsets
from fp4ref.numerics.elements import ELEMENTS

ROWS = 32
"""Of a warp: one for each thread."""


@dataclass(frozen=True, repr=False)
class SrcFetch(Node):
    """CUTLASS's ``Sm90SrcFetch``.

    Parameters
    ----------
    element
        Name of C's format; None until `build` has chosen it.
    """

    element: str | None = None

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read this warp's rows of the next C subtile: (32, columns)."""
        assert self.element is not None, "an epilogue of build names C's format"
        element = ELEMENTS[self.element]
        if e.store_releases_c:
            stage = yield from e.c.wait_ahead(e.load_wait)
        else:
            stage = yield from e.c.wait()
        with stage:
            panels = e.c_rows(stage.index)
            row_nbytes = len(at.columns) * element.bits // 8 // len(panels)
            blocks = [smem.ld(e.warp, each, ROWS * row_nbytes) for each in panels]
            if not e.store_releases_c:
                # The next load of C overwrites the stage through the async proxy.
                smem.fence_proxy_async(e.warp)
        places = swizzled_offsets(SwizzleMode.of_span(row_nbytes), ROWS, row_nbytes)
        codes = np.hstack([block[places] for block in blocks])
        return element.decode(codes.view(element.code_dtype))

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]

    @property
    def template(self) -> tuple[str, ...]:
        """The format."""
        return (str(self.element).upper(),)
