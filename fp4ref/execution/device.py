"""device: the compiled CUDA kernel on a GPU with tcgen05."""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref.errors import InputError
from fp4ref.gemm.problem import GemmProblem


class Device:
    """The backend ``"device"``."""

    recorded = False

    def launch(
        self, problem: GemmProblem, tiles: Sequence[tuple[int, ...]] | None
    ) -> str:
        """Launch the kernel on the first GPU."""
        if tiles is not None:
            raise InputError("backend 'device' runs the whole grid; leave out tiles")
        # Here, for the reason that `fp4ref.execution.ptx` gives.
        from fp4ref.cuda_kernel.on_device import launch_device

        return f"nvfp4_gemm, {launch_device(problem)}"
