"""triton_launch: compile a Triton or Gluon kernel for sm_100a, and launch its PTX.

Neither a GPU nor a driver is asked: the launch is what Triton's launcher would make of
the compiler's metadata. Pointers and sizes are multiples of 16, as the launcher says of
tensors of PyTorch.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

# Unset, Triton 3.9 warns that the default will change.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.ptx import Program, launch, parse

TARGET = GPUTarget("cuda", 100, 32)
DIVISIBLE = ("n", "M", "N", "K", "length", "rows", "columns")
"""Integers that are multiples of 16."""

# Triton's codes of element types, by the device's and by CUDA's name.
_TMA_TYPES = {
    0: DataType.UINT8, 1: DataType.UINT16, 2: DataType.UINT32, 6: DataType.FLOAT16,
    8: DataType.BFLOAT16, 10: DataType.BFLOAT16, 7: DataType.FLOAT32,
}  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """PTX, and what its launch needs."""

    program: Program
    smem_nbytes: int
    scratch_nbytes: int
    descriptors: tuple[Mapping[str, Any], ...]

    @property
    def threads(self) -> int:
        """Threads of a CTA, those of all specialised warps among them."""
        return self.program.entry.directives["reqntid"][0]

    @property
    def opcodes(self) -> set[str]:
        """Every opcode with its modifiers."""
        return {each.opcode for each in self.program.instructions}


@dataclass(frozen=True)
class Descriptor:
    """A tensor that the host describes: its buffer and shape, rows of `dtype`."""

    address: int
    shape: tuple[int, ...]


def compile_kernel(
    kernel: Any,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    *,
    gluon: bool = False,
    **options: Any,
) -> Compiled:
    """Compile; `types` are Triton's names of the arguments' types."""
    names = list(kernel.arg_names)
    signature = {name: types.get(name, "constexpr") for name in names}
    attributes = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(names)
        if name in types and (types[name].startswith("*") or name in DIVISIBLE)
    }
    source = (GluonASTSource if gluon else ASTSource)(
        kernel, signature, constexprs=dict(constants), attrs=attributes
    )
    found = triton.compile(source, target=TARGET, options=options)
    data = found.metadata
    return Compiled(
        Program.of(parse(found.asm["ptx"])),
        data.shared,
        data.global_scratch_size,
        tuple(getattr(data, "tensordesc_meta", None) or ()),
    )


def run(
    machine: Machine,
    compiled: Compiled,
    grid: tuple[int, int, int],
    arguments: Sequence[int | float | Descriptor],
) -> None:
    """Launch with arguments in the order of the kernel, without constants."""
    values: list[Any] = []
    described = iter(compiled.descriptors)
    for each in arguments:
        if isinstance(each, Descriptor):
            values.append(_tensor_map(each, next(described)).to_bytes())
            values += each.shape
            values += [each.shape[-1], 1]
        else:
            values.append(each)
    programs = grid[0] * grid[1] * grid[2]
    scratch = machine.gmem.allocate(
        "scratch", max(compiled.scratch_nbytes * programs, 16)
    )
    values += [scratch, scratch]
    program = compiled.program
    block = bytearray(program.param_nbytes)
    for parameter, value in zip(program.entry.params, values, strict=True):
        at = program.param_offsets[parameter.name]
        block[at : at + parameter.nbytes] = _packed(value, parameter.nbytes)
    launch(
        machine,
        program,
        grid,
        (compiled.threads, 1, 1),
        bytes(block),
        smem_nbytes=compiled.smem_nbytes,
    )


def _packed(value: Any, nbytes: int) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack("<f", value)
    return int(value).to_bytes(nbytes, "little")


def _tensor_map(tensor: Descriptor, meta: Mapping[str, Any]) -> TensorMap:
    """Make the map that Triton's driver makes; its dimensions begin with the rows."""
    nbytes = meta["elem_size"]
    return TensorMap(
        _TMA_TYPES[meta["elem_type"]],
        tensor.address,
        tuple(tensor.shape[::-1]),
        (tensor.shape[1] * nbytes,),
        tuple(meta["block_size"][::-1]),
        swizzle=SwizzleMode(meta["swizzle"]),
    )


def contents(machine: Machine, address: int, like: NDArray[Any]) -> NDArray[Any]:
    """Return a buffer as an array of the type and shape of `like`."""
    return (
        machine.gmem.contents(address, like.nbytes).view(like.dtype).reshape(like.shape)
    )
