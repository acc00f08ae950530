"""One table of parameters: host block, CUDA struct and the card's arguments follow."""

from __future__ import annotations

import re
import struct
from dataclasses import fields as fields_of

import numpy as np
import pytest
from ptx_cases import needs_nvrtc

import fp4ref
from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import ARCH
from fp4ref.cuda_kernel.choices import headers
from fp4ref.cuda_kernel.on_device import device_argument
from fp4ref.cuda_kernel.parameters import (
    PARAMS,
    PARAMS_NBYTES,
    block_layout,
    parameter_block,
    parameter_struct,
    with_struct,
)
from fp4ref.cuda_kernel.sources import ENTRY, expand, kernel_root
from fp4ref.device.compile import compile_cuda
from fp4ref.device.launch import MapOf, Pointer, Struct
from fp4ref.device.launch import parameter_block as device_block
from fp4ref.gemm.params import D_ADDRESS, FIELDS, Field, GemmParams, Kind
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, parse

ADDED = {
    Kind.TENSOR_MAP: lambda params: params.d,
    Kind.POINTER: lambda params: params.d.address,
    Kind.ADDRESS: lambda params: params.d.address,
    Kind.F32: lambda params: 0.75,
    Kind.U32: lambda params: 7,
}


def problem() -> GemmProblem:
    q = fp4ref.quantize(np.ones((3, 32), np.float32))
    config = GemmConfig.nvfp4(d_format="nvfp4", bias=True)
    bias = np.ones(3, np.float32)
    return GemmProblem(Machine(1), q, q, None, bias, config)


def test_the_header_in_the_kernels_folder_has_the_struct() -> None:
    header = (kernel_root() / PARAMS).read_text()
    assert header.count(parameter_struct()) == 1
    assert with_struct(header) == header


def test_every_parameter_is_a_field_by_its_own_name() -> None:
    names = [each.name for each in FIELDS]
    assert len(set(names)) == len(names)
    host_only = {each.name for each in fields_of(GemmParams)} - set(names)
    of_trees = {"arguments", "probe"}
    assert host_only - of_trees - {D_ADDRESS.name} == {
        "grid",
        "scale_format",
        "tile_k",
        "transposes",
    }
    assert {each.name for each in FIELDS if each.take} == {"scale_type"}
    assert all(each.sentence for each in FIELDS)


def test_the_block_is_laid_out_as_the_kernel_expects() -> None:
    offsets, nbytes = block_layout()
    assert list(offsets) == [each.name for each in FIELDS]
    maps = ("a", "b", "sfa", "sfb", "c", "d")
    assert [offsets[name] for name in maps] == [0, 128, 256, 384, 512, 640]
    rest = ("sfd", "bias", "m", "n", "k", "l", "alpha", "scale_type")
    at = [offsets[name] for name in rest]
    assert at == [768, 776, 784, 788, 792, 796, 800, 804]
    pointers = ("a_address", "b_address", "workspace")
    assert [offsets[name] for name in pointers] == [808, 816, 824]
    assert nbytes == PARAMS_NBYTES == 896


def test_every_field_is_in_the_block_at_its_offset() -> None:
    params = problem().params
    block = parameter_block(params)
    words = struct.unpack_from("<QQIIIIfI", block, 768)
    assert words == (params.sfd, params.bias, 3, 3, 32, 1, params.alpha, 0)
    for i, each in enumerate((params.a, params.b, params.sfa, params.sfb)):
        assert block[128 * i :][:128] == each.to_bytes()
    assert block[512:640] == bytes(128)  # no C
    assert block[640:768] == params.d.to_bytes()
    at = struct.unpack_from("<QQQ", block, 808)
    assert at == (params.a_address, params.b_address, 0)  # no workspace
    assert block[832:] == bytes(64)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("at", [0, 7, len(FIELDS)])
def test_one_row_adds_a_parameter_everywhere(kind: Kind, at: int) -> None:
    extra = Field("extra", kind, "one more parameter", ADDED[kind])
    table = (*FIELDS[:at], extra, *FIELDS[at:])
    made = problem()
    params, gmem = made.params, made.machine.gmem
    offsets, nbytes = block_layout(table)
    assert nbytes % 128 == 0
    assert offsets["extra"] % kind.nbytes == 0

    block = parameter_block(params, table)
    value = extra.of(params)
    data = value.to_bytes() if kind is Kind.TENSOR_MAP else None
    if data is None:
        data = struct.pack(kind.code, value)
    assert len(block) == nbytes
    assert block[offsets["extra"] :][: kind.nbytes] == data

    declared = re.findall(r"^    (.+) (\w+);  // (.+)$", parameter_struct(table), re.M)
    assert [name for _, name, _ in declared] == [each.name for each in table]
    assert declared[at] == (kind.cuda, "extra", "one more parameter")

    arguments = tuple(device_argument(gmem, each, each.of(params)) for each in table)
    addresses = {found.name: found.address for found in gmem.allocations}
    maps = {"D": params.d, "A": params.a, "B": params.b}
    maps |= {"SFA": params.sfa, "SFB": params.sfb}
    card = device_block(
        (Struct(arguments, nbytes),),
        addresses.__getitem__,
        lambda m, address: maps[m.buffer].to_bytes(),
    )
    assert card.data == block
    moved = {Kind.TENSOR_MAP: MapOf, Kind.POINTER: Pointer, Kind.ADDRESS: Pointer}
    if kind in moved:
        assert isinstance(arguments[at], moved[kind])


@needs_nvrtc
def test_the_compiler_takes_a_row_more() -> None:
    extra = Field("extra", Kind.F32, "one more parameter", lambda params: 0.75)
    table = (*FIELDS[:3], extra, *FIELDS[3:])
    header = with_struct((kernel_root() / PARAMS).read_text(), table)
    changed = headers(GemmConfig()) | {PARAMS: header}
    compiled = compile_cuda(expand(changed, kernel_root()), ARCH)
    program = Program.of(parse(compiled.ptx), ENTRY)
    assert program.param_nbytes == block_layout(table)[1] == 1024


def test_the_struct_asserts_its_own_size() -> None:
    said = parameter_struct((*FIELDS, Field("extra", Kind.U32, "one more")))
    assert f"static_assert(sizeof(ParameterBlock) == {PARAMS_NBYTES});" in said
    maps = (*FIELDS, Field("extra", Kind.TENSOR_MAP, "one more"))
    assert "static_assert(sizeof(ParameterBlock) == 1024);" in parameter_struct(maps)
