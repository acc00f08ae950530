"""The soft tensor core: one place chooses it, and it has room in every kernel."""

from __future__ import annotations

import re
from itertools import product

import pytest

from fp4ref import GemmConfig, ScaleFormat
from fp4ref.cuda_kernel.build import (
    SOFT_BARRIERS,
    SOFT_STAGES,
    CompileError,
    _soft_plan,
    compile_kernel,
    compile_soft,
)
from fp4ref.cuda_kernel.choices import one_file
from fp4ref.cuda_kernel.on_device import SOFT_SMS, SOFT_THREADS
from fp4ref.cuda_kernel.sources import ENTRY, HARDWARE, SOFT_HARDWARE
from fp4ref.errors import InputError
from fp4ref.ptx import Program, parse

NVFP4 = GemmConfig.nvfp4(d_format="nvfp4")
NVFP4_UE8M0 = GemmConfig.nvfp4(d_format="nvfp4", sfd_format=ScaleFormat.UE8M0)
ONLY_BLACKWELL = ("tcgen05", "clusterlaunchcontrol", ".e2m1x2", ".ue8m0x2")
PAIR = GemmConfig.nvfp4(cta_group=2, tile_m=256, cluster_m=2)


def opcodes(ptx: str) -> set[str]:
    return {each.opcode for each in Program.of(parse(ptx), ENTRY).instructions}


def lines_by_file(text: str) -> dict[str, list[str]]:
    """The text of each file of a kernel in one file."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("#line"):
            name = line.split('"')[1]
        else:
            found.setdefault(name, []).append(line)
    return found


def test_each_build_has_its_own_instructions_alone():
    try:
        native, soft = (
            build(NVFP4_UE8M0).ptx for build in (compile_kernel, compile_soft)
        )
    except CompileError as error:
        pytest.skip(str(error))
    for what in ONLY_BLACKWELL:
        assert any(what in each for each in opcodes(native)), what
        assert not any(what in each for each in opcodes(soft)), what
    assert "soft_tmem" in soft
    assert "soft_" not in native


@pytest.mark.parametrize("config", [NVFP4, PAIR], ids=["one SM", "pair"])
def test_outside_the_folder_the_sources_are_the_same(config):
    native = lines_by_file(one_file(config))
    soft = lines_by_file(one_file(config, soft=True))
    replaced = {name.rpartition("/")[2] for name in soft if SOFT_HARDWARE in name}
    for name, lines in native.items():
        folder, _, file = name.rpartition("/")
        if folder == HARDWARE and file in replaced and name not in soft:
            assert f"{SOFT_HARDWARE}/{file}" in soft
        else:
            assert soft[name] == lines, name
    assert {name for name in soft if SOFT_HARDWARE not in name} <= set(native)


def constant(name: str) -> int:
    """A number of the soft tensor core, as its text has it."""
    text = one_file(PAIR, soft=True)
    ((found,),) = [re.findall(rf"constexpr u32 {name} = (\d+);", text)]
    return int(found)


def test_the_host_knows_the_numbers_of_the_soft_tensor_core():
    assert constant("SOFT_SMS") == SOFT_SMS
    assert constant("TENSOR_CORE_THREADS") == SOFT_THREADS
    assert constant("RELAY_TICKETS") == SOFT_STAGES
    first, end = SOFT_BARRIERS
    assert constant("RELAY") == first
    assert first + 12 * SOFT_STAGES + 4 <= constant("UNIT")
    assert constant("UNIT") + 80 <= end


SHAPES = [(1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2, 2), (4, 2, 2)]
ROOMS = list(product(SHAPES, ("f32", "nvfp4"), (1, 4)))


@pytest.mark.parametrize(("shape", "d", "clc"), ROOMS)
def test_its_barriers_are_between_the_kernels_and_the_buffers(shape, d, clc):
    m, n, group = shape
    config = GemmConfig.nvfp4(
        cluster_m=m, cluster_n=n, cta_group=group, tile_m=128 * group, tile_n=64
    ).replace(d_format=d, clc_stages=clc)
    assert _soft_plan(config) == {}


def test_a_kernel_without_room_for_it_is_refused():
    config = GemmConfig.nvfp4(tile_n=64, clc_stages=16)
    with pytest.raises(InputError, match="bytes 512 to 1024"):
        _soft_plan(config)


def test_a_padded_tile_counts_its_padding():
    config = GemmConfig.nvfp4(operand_format="mxfp6_e3m2")
    ((path, text),) = _soft_plan(config).items()
    assert path.endswith("plan.cuh")
    assert "K_TILE_TX_BYTES = 33792;" in text
    assert "K_TILE_TX_BYTES = 25600;" in one_file(config)
