"""launch: what the host asks of a built epilogue, and the load warp after it.

Types are chosen when the kernel is compiled; a problem comes later. CUTLASS then asks
whether TMA can reach the rows of C and D, how many bytes of workspace the fusion needs,
and, on the GPU, whether C is to be loaded at all: with beta = 0 it is not read, so that
NaNs in it do no harm.

Source: CUTLASS ``can_implement`` and ``get_workspace_size`` of the collectives in
``epilogue/collective``; ``is_producer_load_needed`` and ``is_C_load_needed`` of the
nodes in ``sm90_visitor_load_tma_warpspecialized.hpp``.
"""

from __future__ import annotations

from math import ceil

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.gemm.epilogue_builder.build import Epilogue
from fp4ref.gemm.epilogue_builder.element_types import VOID, bits
from fp4ref.gemm.epilogue_builder.request import least_alignment

MOST = (1 << 31) - 1
"""Of an extent: CUTLASS counts them in int."""
_WORKSPACE_ALIGNMENT = 16
_LOCK_NBYTES = 4
_FLOAT_NBYTES = 4


class EpilogueLaunch:
    """An epilogue with a problem.

    Parameters
    ----------
    epilogue
        What `build_epilogue` returned, for one matrix: the problems of an array of
        pointers are known on the GPU alone.
    m, n, batches
        Rows and columns of D in elements, and CUTLASS's L.
    beta
        What C is multiplied by. NaN is not zero: it loads C.

    Raises
    ------
    InputError
        An extent is no whole number from 1 to 2^31 - 1, beta no number, or the
        epilogue is one of an array.
    """

    def __init__(
        self,
        epilogue: Epilogue,
        m: int,
        n: int,
        batches: int = 1,
        *,
        beta: float = 0.0,
    ) -> None:
        for name, extent in (("m", m), ("n", n), ("batches", batches)):
            require_integer(extent, name, 1, MOST)
        if isinstance(beta, bool) or not isinstance(beta, (int, float)):
            raise InputError(f"beta={beta!r:.60}; need a number")
        if epilogue.config.chosen.ptr_array or epilogue.config.grouped:
            raise InputError(
                f"schedule={epilogue.schedule}: the problems of arrays of pointers are "
                "known on the GPU alone, and CUTLASS's host does not check them "
                "(can_implement). Ask for an epilogue of one matrix"
            )
        self.epilogue = epilogue
        self.m, self.n, self.batches, self.beta = m, n, batches, float(beta)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why CUTLASS's ``can_implement`` says no; empty where it says yes."""
        asked, epilogue = self.epilogue.config, self.epilogue
        if not asked.chosen.tma:
            return ()
        matrices = [("D", epilogue.element_d, asked.d_layout)]
        if asked.c != VOID:
            matrices.append(("C", asked.c, asked.c_layout))
        return tuple(
            said for each in matrices if (said := self._unreachable(*each)) is not None
        )

    def _unreachable(self, name: str, element: str, layout: str) -> str | None:
        """Say why TMA cannot reach the rows, or columns, of a matrix."""
        major, extent, line = ("N", self.n, "row")
        if layout == "column":
            major, extent, line = ("M", self.m, "column")
        least = least_alignment(element)
        if extent % least == 0:
            return None
        return (
            f"{name} of {element} is {major}-major: a {line} of {extent} elements is "
            f"no multiple of {least}, the {least * bits(element) // 8} bytes that TMA "
            f"needs. The nearest {major} is {ceil(extent / least) * least}"
        )

    @property
    def workspace_nbytes(self) -> int:
        """Bytes of global memory: sums and counters of tiles, for a bias's gradient.

        The counters are of the rows of tiles, not of the batches: as CUTLASS has it.
        """
        if "DePerRowBias" not in self.epilogue.config.fusion.name:
            return 0
        rows, columns, _ = self.epilogue.cta_tile
        tiles_m = ceil(self.m / rows)
        sums = tiles_m * ceil(self.n / columns) * self.batches * rows * _FLOAT_NBYTES
        return _aligned(_aligned(sums) + tiles_m * _LOCK_NBYTES)

    @property
    def is_c_load_needed(self) -> bool | None:
        """Whether C is loaded; None for ready callbacks, which decide themselves."""
        asked = self.epilogue.config
        if asked.callbacks is not None:
            return None
        return asked.c != VOID and asked.fusion.takes_c and self.beta != 0

    @property
    def is_producer_load_needed(self) -> bool | None:
        """Whether the load warp has work: C, or an auxiliary matrix that is read."""
        if (loads_c := self.is_c_load_needed) is None:
            return None
        return loads_c or self.epilogue.config.fusion.aux == "in"


def _aligned(nbytes: int) -> int:
    return ceil(nbytes / _WORKSPACE_ALIGNMENT) * _WORKSPACE_ALIGNMENT
