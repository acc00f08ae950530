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
from fp4ref.gemm.fusion.launch_arguments import arguments_of
from fp4ref.gemm.params import FIELDS, Field, GemmParams, Kind
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.tensor_map import DataType, TensorMap

SOFT_THREADS = 64
"""The unit and the relay."""

SOFT_SMEM_NBYTES = 120 << 10
"""More than half of an SM's shared memory: one CTA has its tensor core."""

SOFT_SMS = 160
"""SMs for which the soft tensor core has tensor memory and a queue."""

SOFT_VARIABLES = ("soft_clc_next", "soft_clc_clusters")
"""Variables of the soft kernel that are zero before each launch."""


def launch_device(problem: GemmProblem) -> str:
    """Run the whole problem on the first GPU; returns what ran, in words.

    Raises
    ------
    DeviceError
        There is no GPU, or the driver refused something.
    InputError
        The GPU has no tcgen05, or more SMs than the soft tensor core.
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
        if gpu.sms > SOFT_SMS:
            raise InputError(
                f"backend 'device': {gpu.card} has {gpu.sms} SMs, and the soft tensor "
                f"core has tensor memory for {SOFT_SMS}. Raise SOFT_SMS in "
                "kernel/soft_hardware/tensor_core_queue.cuh and here"
            )
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


def kernel_call(problem: GemmProblem, *, soft: bool = False) -> Call:
    """Describe the launch: buffers by name, and the parameters that refer to them.

    The soft tensor core is two warps more, takes tensors of 4 and 6 bits as bytes, and
    must have its SM for itself.
    """
    gmem = problem.machine.gmem
    params = soft_params(problem) if soft else problem.params
    dims, _ = problem.grid_dims(None)
    buffers = {
        found.name: gmem.contents(found.address, found.nbytes)
        for found in gmem.allocations
    }
    block = problem.plan.fields
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


def soft_params(problem: GemmProblem) -> GemmParams:
    """Return the parameters with tensors of 4 and 6 bits as maps of bytes.

    TMA of Hopper has no padded types. Their tensors get a copy in global memory, in
    which 16 elements lie in 16 bytes, as TMA of Blackwell puts them in shared memory.
    """
    gmem = problem.machine.gmem
    found: dict[str, Any] = {}
    for each in FIELDS:
        m = each.of(problem.params)
        if not isinstance(m, TensorMap):
            continue
        if m.data_type is DataType.U4_ALIGN8B:
            found[each.name] = replace(
                m,
                data_type=DataType.UINT8,
                dims=(m.dims[0] // 2, *m.dims[1:]),
                box=(m.box[0] // 2, *m.box[1:]),
            )
        elif m.data_type.is_padded:
            found[each.name] = _unpacked(gmem, m)
    return replace(problem.params, **found)


def _unpacked(gmem: GlobalMemory, m: TensorMap) -> TensorMap:
    """Upload the copy of a packed tensor with 16 elements in 16 bytes; its map."""
    packed, bits = gmem.find(m.address), m.data_type.bits
    assert packed is not None
    assert packed.address == m.address
    groups = gmem.contents(packed.address, packed.nbytes).reshape(-1, 2 * bits)
    wide = np.zeros((len(groups), 16), np.uint8)
    wide[:, : 2 * bits] = groups
    return replace(
        m,
        data_type=DataType.UINT8,
        address=gmem.upload(f"{packed.name} unpacked", wide),
        strides=tuple(stride * 8 // bits for stride in m.strides),
    )


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
