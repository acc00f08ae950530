"""backend: what runs a problem's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fp4ref.gemm.problem import GemmProblem


class Backend(Protocol):
    """Runs the kernel of a problem to its end.

    Attributes
    ----------
    recorded
        Whether the launch happens on the problem's machine, which records it.
    """

    recorded: bool

    def launch(
        self, problem: GemmProblem, tiles: Sequence[tuple[int, ...]] | None
    ) -> str:
        """Run it, or some tiles of it; return which code ran, where that varies.

        Raises
        ------
        InputError
            A tile is outside the grid, or the backend cannot run the problem.
        HardwareFault
            The kernel did something wrong.
        """
        ...
