"""on_device: launch the kernel on a GPU, on Hopper with the soft tensor core.

The operands are those that the emulator was given: the allocations of its global memory
are copied to the card, and D and SFD come back to where the emulator would leave them.
No card with tcgen05 has run this yet; an H200 has, see ``docs/measured.md``. The
parameter block is proven equal to the one that the ptx backend executes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fp4ref.cuda_kernel.build import compile_kernel, compile_soft, require_tcgen05
from fp4ref.cuda_kernel.parameters import block_layout
from fp4ref.cuda_kernel.sources import ENTRY
from fp4ref.device.compile import HOPPER
from fp4ref.device.driver import DeviceError, find_gpu
from fp4ref.device.launch import Call, MapOf, Module, Pointer, Scalar, Struct
from fp4ref.errors import InputError
from fp4ref.gemm.fusion.launch_arguments import arguments_of, fields_of
from fp4ref.gemm.params import FIELDS, Field, GemmParams, Kind
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.tensor_map import DataType, TensorMap

SOFT_THREADS = 32
SOFT_SMEM_NBYTES = 120 << 10
"""More than half of an SM's shared memory: one CTA has its tensor core."""

SOFT_VARIABLES = ("soft_clc_next", "soft_clc_clusters")
"""Variables of the soft kernel that are zero before each launch."""


def launch_device(problem: GemmProblem) -> str:
    """Run the whole problem on the first GPU; returns what ran, in words.

    Raises
    ------
    DeviceError
        There is no GPU, or the driver refused something.
    InputError
        The GPU has no tcgen05, and the soft tensor core not what is asked.
    CompileError
        NVRTC is not installed.
    """
    gpu = find_gpu()
    if not gpu:
        raise DeviceError(
            f"backend 'device': {gpu.missing.rstrip('.')}. backend='ptx' runs the same "
            "kernel's code on the emulated machine"
        )
    soft = gpu.capability == HOPPER
    if soft:
        _require_soft(problem)
        compiled = compile_soft(problem.config)
    else:
        arch = require_tcgen05(gpu.capability, gpu.card)
        compiled = compile_kernel(problem.config, arch)
    module = Module(compiled.cubin)
    for name in SOFT_VARIABLES if soft else ():
        module.fill(name)
    results = module.run(kernel_call(problem, soft=soft))
    gmem = problem.machine.gmem
    stored = {"D", "SFD", *arguments_of(problem.plan.fusion)}
    for found in gmem.allocations:
        if found.name in stored:
            gmem.poke(found.address, results[found.name])
    how = ", soft tensor core" if soft else ""
    return f"{gpu}, NVRTC {compiled.nvrtc}{how}"


_UNPADDED = frozenset({"f16", "bf16", "e4m3", "e5m2", "mxfp8_e4m3", "mxfp8_e5m2"})
"""Operands that TMA of Hopper brings as the MMA reads them; and those of mxf4nvf4."""


def _require_soft(problem: GemmProblem) -> None:
    """Raise `InputError` for what the soft tensor core does not have."""
    planned = problem.plan
    lacks = ""
    if planned.config.cluster.cta_group == 2:
        lacks = "cta_group=2"
    elif planned.config.tile.m == 64:
        lacks = "tile_m=64"
    elif planned.kind != "mxf4nvf4":
        padded = {planned.a_format, planned.b_format} - _UNPADDED
        lacks = f"{min(padded)} in kind::{planned.kind}" if padded else ""
    if lacks:
        raise InputError(
            f"backend 'device': the soft tensor core of a Hopper card has no {lacks}. "
            "backend='ptx' runs the same kernel's code on the emulated machine"
        )


def kernel_call(problem: GemmProblem, *, soft: bool = False) -> Call:
    """Describe the launch: buffers by name, and the parameters that refer to them.

    The soft tensor core is a warp more, takes 4-bit tensors as bytes, and must have its
    SM for itself.
    """
    gmem, params = problem.machine.gmem, problem.params
    dims, _ = problem.grid_dims(None)
    buffers = {
        found.name: gmem.contents(found.address, found.nbytes)
        for found in gmem.allocations
    }
    if soft:
        params = byte_maps(params)
    block = fields_of(problem.plan.fusion)
    fields = tuple(device_argument(gmem, each, each.of(params)) for each in block)
    smem_nbytes = plan(problem.config).smem.end
    return Call(
        ENTRY,
        buffers,
        (Struct(fields, block_layout(block)[1]),),
        grid=dims,
        block=(problem.plan.threads + (SOFT_THREADS if soft else 0), 1, 1),
        cluster=problem.plan.cluster,
        smem_nbytes=max(smem_nbytes, SOFT_SMEM_NBYTES) if soft else smem_nbytes,
    )


def byte_maps(params: GemmParams) -> GemmParams:
    """Return the parameters with 4-bit tensors as maps of bytes."""
    found: dict[str, Any] = {
        each.name: replace(
            m,
            data_type=DataType.UINT8,
            dims=(m.dims[0] // 2, *m.dims[1:]),
            box=(m.box[0] // 2, *m.box[1:]),
        )
        for each in FIELDS
        if isinstance(m := each.of(params), TensorMap)
        and m.data_type is DataType.U4_ALIGN8B
    }
    return replace(params, **found)


def device_argument(
    gmem: GlobalMemory, field: Field, value: Any
) -> Pointer | MapOf | Scalar | None:
    """Return a field's value as the launch on a card takes it."""
    match field.kind:
        case Kind.TENSOR_MAP:
            return None if value is None else _map(gmem, value)
        case Kind.POINTER | Kind.ADDRESS:
            return _pointer(gmem, value)
        case Kind.F32:
            return np.float32(value)
        case Kind.U32:
            return np.uint32(value)


def _map(gmem: GlobalMemory, m: TensorMap) -> MapOf:
    found = gmem.find(m.address)
    assert found is not None
    return MapOf(
        found.name,
        m.data_type,
        m.dims,
        m.strides,
        m.box,
        m.element_strides,
        m.interleave,
        m.swizzle,
        m.l2_promotion,
        m.oob_nan,
        m.address - found.address,
    )


def _pointer(gmem: GlobalMemory, address: int) -> Pointer | np.uint64:
    """Refer to an allocation; a null pointer stays null."""
    found = gmem.find(address)
    if found is None:
        return np.uint64(0)
    return Pointer(found.name, address - found.address)
