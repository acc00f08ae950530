"""void_d: what stands for D where the kernel stores none."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from numpy.typing import NDArray

from fp4ref.errors import InputError

_NONE = (
    "this run has no D, because its configuration has d_format=None. What the tree's "
    "nodes stored is in aux and reductions"
)


class VoidD:
    """Says that there is no D, and refuses to be used as one.

    Raises
    ------
    InputError
        It is asked for anything but its text.
    """

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<no D: {_NONE}>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError(f"D: {_NONE}. Ask for a D by its format, as d_format='f32'")

    __getitem__ = __len__ = __iter__ = __array__ = __bool__ = _refuse
    __eq__ = __ne__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python itself looks for, as copy does
            raise AttributeError(name)
        self._refuse()


def void_d() -> NDArray[Any]:
    """Return what a run has for D where there is none."""
    return cast(NDArray[Any], VoidD())


def is_void(d: object) -> bool:
    """Whether this stands for a D that there is not."""
    return isinstance(d, VoidD)
