"""divergence: the paths of a warp whose lanes have split, and which of them goes on.

The sides of a branch run one after the other, each until it reaches the place where
they meet. A side that blocks lets the others go on: every lane makes progress by itself
[CUDA programming guide: independent thread scheduling]. Compilers count on it, where
they give one elected lane a loop of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fp4ref.hardware.sm import Blocked
from fp4ref.hardware.timing import Timed
from fp4ref.ptx.run.activation import Frame
from fp4ref.ptx.run.registry import Step, Wait
from fp4ref.ptx.run.state import UndefinedRegister, WarpState


@dataclass(slots=True, eq=False)
class Path:
    """Lanes that run from `pc` until `meet`, where they join the path `into`.

    Attributes
    ----------
    held
        What it is blocked in.
    unset
        Registers that it may write, if its branch was decided by an unset value, or
        by a path inside of which it runs; they are undefined where it ends.
    frame
        Of the path that runs a function: what its lanes come back to.
    """

    pc: int
    mask: int
    meet: int
    into: Path | None
    held: Held | None = None
    unset: frozenset[int] | None = None
    frame: Frame | None = None


def written_until(steps: Sequence[Step], branch: int, meet: int) -> frozenset[int]:
    """Return the registers that may be written between a branch and its meeting."""
    step = steps[branch]
    seen: set[int] = set()
    ahead = [branch + 1, step.target]
    while ahead:
        at = ahead.pop()
        if at == meet or at in seen or at >= len(steps):
            continue
        seen.add(at)
        jumps = steps[at].flow == "bra"
        if jumps:
            ahead.append(steps[at].target)
        if not jumps or steps[at].guard >= 0:
            ahead.append(at + 1)
    return frozenset(index for at in seen for index in steps[at].targets)


def require_no_effect(state: WarpState, step: Step, path: Path) -> None:
    """Raise `UndefinedRegister` if others see what a path of an unset branch does."""
    if path.unset is not None and (step.effect or step.flow in ("ret", "exit")):
        raise UndefinedRegister(
            "an instruction with effects, on a side of a branch that an unset value "
            "decided",
            who=state.warp.who,
            where=state.at,
            rule="such a branch may choose values that are dropped, and nothing else",
            remedy="look for the path on which its predicate is not set",
        )


class Held:
    """An instruction in which the lanes of one path wait.

    Parameters
    ----------
    step
        The instruction; None for a loop that waits for a change.
    """

    def __init__(self, body: Wait, step: Step | None, state: WarpState) -> None:
        self.body, self.step, self.state = body, step, state
        self.wait: Blocked | None = None
        self._mask, self._lanes, self._pc = state.mask, state.lanes, state.pc
        self._line, self._source = state.line, state.warp.kernel_source

    def advance(self) -> bool:
        """Go on to the next wait; True if there is none left."""
        try:
            self.wait = next(self.body)
        except StopIteration:
            return True
        return False

    def ready(self) -> bool:
        """Whether its lanes may go on."""
        return self.wait is None or self.wait.ready()

    def resume(self) -> bool:
        """Let its lanes be the executing ones again, and `advance`."""
        state = self.state
        state.mask, state.lanes, state.pc = self._mask, self._lanes, self._pc
        state.line, state.warp.kernel_source = self._line, self._source
        state.warp.actor.active = self._mask
        return self.advance()


@dataclass(frozen=True, slots=True)
class DivergedWait:
    """All paths of a warp are blocked, each in a wait of its own."""

    waits: tuple[Blocked, ...]

    def ready(self) -> bool:
        """Whether one of them may go on."""
        return any(wait.ready() for wait in self.waits)

    def visible_at(self, clock: Timed) -> float:
        """When the first of those that are ready is visible."""
        ready = [wait for wait in self.waits if wait.ready()]
        return min((clock.visible(wait) for wait in ready), default=clock.last)

    def describe(self) -> str:
        """Say what each waits for."""
        return "; ".join(wait.describe() for wait in self.waits)

    def released_by(self) -> str:
        """Say who could release each."""
        return "; ".join(wait.released_by() for wait in self.waits)


def promote(paths: list[Path]) -> bool:
    """Put a path on top that can go on; False if there is none."""
    parents = {id(path.into) for path in paths}
    for path in reversed(paths):
        is_leaf = id(path) not in parents
        if is_leaf and (path.held is None or path.held.ready()):
            paths.remove(path)
            paths.append(path)
            return True
    return False


def all_waits(paths: list[Path]) -> Blocked:
    """Return what a warp waits for, all of whose paths are blocked."""
    waits = tuple(p.held.wait for p in paths if p.held and p.held.wait is not None)
    return waits[0] if len(waits) == 1 else DivergedWait(waits)
