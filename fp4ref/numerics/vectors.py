"""vectors: loops in vectors of 512 bits, where the processor has them.

LLVM takes 256 for most such processors, as code with few long loops gains nothing from
more. The loops that use this have nothing but long rows. Elsewhere it changes nothing.
"""

from __future__ import annotations

from typing import Any

from fp4ref.numerics import compiled


def wide_vectors() -> None:
    """Have the calling function compiled with wide vectors; as Python, do nothing."""


if compiled.AVAILABLE:
    from numba import types
    from numba.extending import intrinsic, overload

    def _prefer(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            # llvmlite knows no attributes with a value; it prints what is in the set.
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
            return context.get_dummy_value()

        return types.void(), generate

    _prefer_wide: Any = intrinsic(_prefer)

    @overload(wide_vectors, inline="always")
    def _wide_vectors() -> Any:
        return lambda: _prefer_wide()
