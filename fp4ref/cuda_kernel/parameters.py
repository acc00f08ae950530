"""parameters: the kernel's parameter block, as bytes and as a struct in CUDA.

Both follow from `fp4ref.gemm.params.FIELDS`. After an edit of the table say
``python -m fp4ref.cuda_kernel.package``, which first writes the struct into
``kernel/gemm/params.cuh``; a test compares.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.gemm.params import FIELDS, Field, GemmParams, Kind

PARAMS = "kernel/gemm/params.cuh"
"""Path of the header."""

STRUCT = "ParameterBlock"
"""The struct of the fields; ``GemmParams`` adds what is computed from them."""

_FIRST = (
    "// Written by fp4ref.cuda_kernel.parameters from FIELDS of fp4ref.gemm.params."
)
_LAST = "// End of what is written."


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def block_layout(fields: Sequence[Field] = FIELDS) -> tuple[dict[str, int], int]:
    """Return the byte offset of each field by name, and the size of the block."""
    offsets: dict[str, int] = {}
    end, alignment = 0, 1
    for each in fields:
        nbytes = each.kind.nbytes
        alignment = max(alignment, nbytes)
        offsets[each.name] = _up(end, nbytes)
        end = offsets[each.name] + nbytes
    return offsets, _up(end, alignment)


PARAMS_NBYTES = block_layout()[1]
"""Size of the block, padded to its alignment."""


def parameter_block(params: GemmParams, fields: Sequence[Field] = FIELDS) -> bytes:
    """Return the block that a launch passes by value."""
    offsets, nbytes = block_layout(fields)
    block = bytearray(nbytes)
    for each in fields:
        value = _plain(each, each.of(params))
        struct.pack_into(each.kind.code, block, offsets[each.name], value)
    return bytes(block)


def parameter_struct(fields: Sequence[Field] = FIELDS) -> str:
    """Return the struct of the block in CUDA, with its size and offsets asserted."""
    return "\n".join(_struct_lines(fields))


def with_struct(header: str, fields: Sequence[Field] = FIELDS) -> str:
    """Return the text of ``params.cuh`` with the struct of `fields` in its place."""
    before, _, rest = header.partition(f"{_FIRST}\n")
    _, _, after = rest.partition(f"{_LAST}\n")
    return f"{before}{_FIRST}\n{parameter_struct(fields)}\n{_LAST}\n{after}"


def write_struct() -> None:
    """Write the struct into the header in the checkout."""
    path = kernel_root() / PARAMS
    path.write_text(with_struct(path.read_text(encoding="utf-8")), encoding="utf-8")


def _struct_lines(fields: Sequence[Field]) -> Iterator[str]:
    offsets, nbytes = block_layout(fields)
    yield f"struct {STRUCT} {{"
    for each in fields:
        yield f"    {each.kind.cuda} {each.name};  // {each.sentence}"
    yield "};"
    yield ""
    yield f"static_assert(sizeof({STRUCT}) == {nbytes});"
    for _, alike in groupby(fields, key=lambda each: each.kind):
        name = next(alike).name
        offset = f"__builtin_offsetof({STRUCT}, {name})"
        yield f"static_assert({offset} == {offsets[name]});"


def _plain(field: Field, value: Any) -> Any:
    """Return what `struct` packs: a map's bytes, zeros for one that is never used."""
    if field.kind is not Kind.TENSOR_MAP:
        return value
    return b"" if value is None else value.to_bytes()
