"""ptx: the compiled CUDA kernel, executed on the emulated machine."""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref.gemm.problem import GemmProblem


class Ptx:
    """The backend ``"ptx"``."""

    recorded = True

    def launch(
        self, problem: GemmProblem, tiles: Sequence[tuple[int, ...]] | None
    ) -> str:
        """Execute the kernel's PTX on the problem's machine."""
        # Here, because the PTX executor is a third of what fp4ref would import.
        from fp4ref.cuda_kernel import launch_ptx

        return f"nvfp4_gemm, {launch_ptx(problem, tiles).origin}"
