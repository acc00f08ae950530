"""strides: the type of a matrix's stride, for one matrix and for a group of them.

A group has a pointer to a stride of its own; its matrices have no batch, so that the
last stride is a constant 0. Source: CUTLASS ``detail/layout.hpp: TagToStrideC``.
"""

from __future__ import annotations

SOURCE = "detail/layout.hpp: TagToStrideC"


def stride(layout: str, grouped: bool) -> str:
    """Write CuTe's stride over (M, N, L); ``int64`` is what only a launch knows."""
    contiguous = "(1,int64" if layout == "column" else "(int64,1"
    return f"{contiguous},{0 if grouped else 'int64'})" + "*" * grouped
