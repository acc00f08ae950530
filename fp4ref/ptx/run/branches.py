"""branches: where the lanes of a path go, and the paths that they split into."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fp4ref.ptx.run.divergence import Path
from fp4ref.ptx.run.registry import Step
from fp4ref.ptx.run.state import PartialWarp, WarpState


def branch(
    state: WarpState,
    step: Step,
    path: Path,
    paths: list[Path],
    unset: frozenset[int] | None,
) -> None:
    """Go on, jump, or split the path.

    Raises
    ------
    PartialWarp
        ``bra.uni`` splits it.
    """
    taken, here = state.mask, path.mask
    begins = unset is not None and unset is not path.unset
    if begins and taken in (0, here):
        # One side alone runs; it gets a path so that it has an end.
        path.mask, path.pc = 0, step.meet
        at = step.target if taken else state.pc + 1
        paths.append(Path(at, here, step.meet, path, unset=unset))
    elif taken == here:
        path.pc = step.target
    elif taken == 0:
        path.pc += 1
    else:
        ways = {path.pc + 1: here & ~taken, step.target: taken}
        _split(state, step, path, paths, ways, unset)


def branch_by_index(
    state: WarpState,
    step: Step,
    path: Path,
    paths: list[Path],
    unset: frozenset[int] | None,
) -> None:
    """Go where the index of each lane says, or on where the guard is false."""
    here = path.mask
    ways: dict[int, int] = {}
    if state.mask:
        state.check_defined(step.must_be_defined, state.mask)
        step.act(state)
        for lane in np.flatnonzero(state.lanes).tolist():
            target = step.choices[int(state.branch[lane])]
            ways[target] = ways.get(target, 0) | 1 << lane
    if left := here & ~state.mask:
        ways[path.pc + 1] = ways.get(path.pc + 1, 0) | left
    if len(ways) == 1:
        (path.pc,) = ways
    else:
        _split(state, step, path, paths, ways, unset)


def _split(
    state: WarpState,
    step: Step,
    path: Path,
    paths: list[Path],
    ways: Mapping[int, int],
    unset: frozenset[int] | None,
) -> None:
    """Let lanes go different ways, by position, until they meet."""
    if step.uniform:
        here = path.mask.bit_count()
        raise PartialWarp(
            f"{step.flow}.uni taken by {state.mask.bit_count()} of {here} lanes"
            if state.mask != path.mask
            else f"{step.flow}.uni with {len(ways)} targets",
            who=state.warp.who,
            where=state.at,
            rule=f"the lanes of {step.flow}.uni all go the same way [PTX: "
            f"{step.flow.partition('.')[0]}]",
            remedy="branch without .uni",
        )
    path.mask, path.pc = 0, step.meet
    for position, lanes in ways.items():
        paths.append(Path(position, lanes, step.meet, path, unset=unset))
