"""why: a deduced value that can say why it is so."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar, overload

T = TypeVar("T")


class Why(NamedTuple):
    """A value, the reason in one sentence, and where the rule is from."""

    value: Any
    sentence: str
    source: str


class Deduced(Generic[T]):
    """An attribute that is computed once from its owner, with its reason.

    In the sentence ``{p.name}`` is another value of the owner, ``{c.name}`` a field of
    its configuration, and ``{value}`` the value itself.
    """

    def __init__(self, compute: Callable[[Any], T], sentence: str, source: str) -> None:
        self.compute, self.sentence, self.source = compute, sentence, source
        self.__doc__ = compute.__doc__
        self.name = compute.__name__

    @overload
    def __get__(self, owner: None, kind: type) -> Deduced[T]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Deduced[T] | T:
        if owner is None:
            return self
        value = self.compute(owner)
        owner.__dict__[self.name] = value
        return value

    def why(self, owner: Any) -> Why:
        """Return the value with its reason."""
        value = getattr(owner, self.name)
        said = self.sentence.format(
            p=owner, c=SimpleNamespace(**owner.config.all_asked()), value=value
        )
        return Why(value, said, self.source)


def deduced(sentence: str, source: str) -> Callable[[Callable[[Any], T]], Deduced[T]]:
    """Make a method a `Deduced` attribute."""
    return lambda compute: Deduced(compute, sentence, source)
