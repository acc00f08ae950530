"""changes: what the document's kernels do otherwise than the one that was traced.

Two things no configuration of the family has: a ring that begins anew with each tile,
and two epilogue warps, each with the rows of two. Both change only what comes after
what. The rest are instructions that the emulator has not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from fp4ref.lab.traced.tile import START, Edge, Step

COMMIT: Final = "tcgen05.commit"
LOAD: Final = ".load"


def restarts(steps: Sequence[Step], stages: int) -> list[Step]:
    """Let each tile begin in stage 0, as the document's ``ki % N_STAGES`` says.

    The load of a stage then waits for the MMAs that had this stage last, maybe in the
    tile before, instead of those so many stages ago.
    """
    commits = [p for p, s in enumerate(steps) if s.is_work and s.operation == COMMIT]
    loads = [
        place
        for warp in _warps(steps, lambda operation: operation.endswith(LOAD))
        for place in warp
        if any(edge.step in commits for edge in steps[place].edges)
    ]
    found = list(steps)
    for sm in sorted({steps[place].sm for place in loads}):
        mine = [place for place in loads if steps[place].sm == sm]
        k_tiles = len(mine)
        # Of the same tile are the commits that the last loads wait for.
        same = min(e.back for e in steps[mine[-1]].edges if e.step in commits)
        same -= stages >= k_tiles
        for k, place in enumerate(mine):
            last, back = k - stages, same
            if last < 0:
                last, back = k + stages * ((k_tiles - 1 - k) // stages), same + 1
            found[place] = _moved(steps[place], commits, commits[last], back)
    return found


def _moved(step: Step, commits: Sequence[int], to: int, back: int) -> Step:
    edges = [
        edge._replace(back=back, step=to) if edge.step in commits else edge
        for edge in step.edges
    ]
    return replace(step, edges=edges)


def two_warps(steps: Sequence[Step]) -> list[Step]:
    """Let two epilogue warps of each SM do the rows of four, one quarter after another.

    The third warp's steps come after the first one's of the same tile, and the fourth
    one's after the second's.
    """
    found = list(steps)
    for sm in sorted({step.sm for step in steps}):
        warps = [
            places for places in epilogue_warps(steps) if steps[places[0]].sm == sm
        ]
        for first, second in zip(warps[:2], warps[2:], strict=True):
            for places, edge in (
                (second, Edge(0, first[-1], (), START)),
                (first, Edge(1, second[-1], (), START)),
            ):
                step = steps[places[0]]
                edges = [e for e in step.edges if e.step != places[-1]]
                found[places[0]] = replace(step, edges=[*edges, edge])
    return found


def epilogue_warps(steps: Sequence[Step]) -> list[list[int]]:
    """Return the places of the steps of each warp that reads TMEM."""
    return _warps(steps, lambda operation: operation == "tcgen05.ld")


def mma_warp(steps: Sequence[Step]) -> list[int]:
    """Return the places of the steps of the warp that issues MMAs."""
    (found,) = _warps(steps, lambda operation: operation == "tcgen05.mma")
    return found


def _warps(steps: Sequence[Step], asked: Callable[[str], bool]) -> list[list[int]]:
    """Return the places of the steps of each warp that has such an operation."""
    whose = {
        (step.sm, step.agent): None
        for step in steps
        if any(asked(part.operation) for part in step.parts)
    }
    return [
        [p for p, s in enumerate(steps) if (s.sm, s.agent) == who and not s.is_work]
        for who in whose
    ]
