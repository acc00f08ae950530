"""emulator: the kernel as Python warps."""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref.gemm.problem import GemmProblem


class Emulator:
    """The backend ``"emulator"``."""

    recorded = True

    def launch(
        self, problem: GemmProblem, tiles: Sequence[tuple[int, ...]] | None
    ) -> str:
        """Run the kernel's Python functions on the problem's machine."""
        problem.launch(tiles)
        return ""
