"""frame_label: the frame ids that a warp's events carry while a block is open.

Nothing is labelled in a run that nothing records.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from inspect import isgeneratorfunction
from types import TracebackType
from typing import Any, TypeVar, cast


class FrameScope:
    """Pushes frame ids on a warp's stack for the length of a block."""

    __slots__ = ("_ids", "_stack")

    def __init__(self, stack: list[str], ids: tuple[str, ...]) -> None:
        self._stack, self._ids = stack, ids

    def __enter__(self) -> None:
        self._stack.extend(self._ids)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ids:
            del self._stack[-len(self._ids) :]


NO_FRAMES = FrameScope([], ())
"""Of a run that nothing records."""


F = TypeVar("F", bound=Callable[..., Any])


def frame(*ids: str) -> Callable[[F], F]:
    """Label all events of a function, or of a generator, with frame ids.

    Its first argument is the warp, or an object that has it as ``warp``.
    """

    def label(function: F) -> F:
        is_generator = isgeneratorfunction(function)

        def steps(first: Any, *rest: Any, **named: Any) -> Generator[Any, Any, Any]:
            with getattr(first, "warp", first).frame(*ids):
                return (yield from function(first, *rest, **named))

        @wraps(function)
        def call(first: Any, *rest: Any, **named: Any) -> Any:
            warp = getattr(first, "warp", first)
            if warp.machine.recorder is None:
                return function(first, *rest, **named)
            if is_generator:
                return steps(first, *rest, **named)
            with warp.frame(*ids):
                return function(first, *rest, **named)

        return cast("F", call)

    return label
