"""What is packaged, what NVRTC makes, and what the assembler made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gemm_cases import Case
from ptx_cases import needs_nvrtc
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig, ScaleFormat
from fp4ref.cuda_kernel import build, kernel_code, packaged_configs, parameter_block
from fp4ref.cuda_kernel.build import normalised, packaged
from fp4ref.cuda_kernel.choices import PARTS, headers, one_file
from fp4ref.cuda_kernel.header import plan_header
from fp4ref.cuda_kernel.package import texts
from fp4ref.cuda_kernel.parameters import PARAMS_NBYTES
from fp4ref.cuda_kernel.sass import figures, mandatory
from fp4ref.cuda_kernel.sources import (
    ENTRY,
    MAIN,
    expand,
    kernel_root,
)
from fp4ref.device.compile import CompileError
from fp4ref.errors import InputError
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, parse

NAMES = list(packaged_configs())


@pytest.fixture
def without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "nvrtc_version", lambda: None)


@pytest.mark.usefixtures("without_nvrtc")
@pytest.mark.parametrize("name", NAMES)
def test_the_package_runs_without_nvrtc(name: str) -> None:
    config = packaged_configs()[name]
    assert kernel_code(config).origin == "packaged"
    changes = {
        name: value
        for name, value in config.all_asked().items()
        if value != GemmConfig().asked(name)
    }
    case = Case(130, 100, 288, config=changes)
    ptx = case.run("ptx")
    assert ptx.meta["kernel"] == "nvfp4_gemm, packaged"
    outcome = fp4ref.compare(case.run("emulator"), ptx)
    assert outcome.ok, outcome.report()


@pytest.mark.usefixtures("without_nvrtc")
def test_any_alpha_is_packaged() -> None:
    assert kernel_code(GemmConfig()).ptx == packaged("f32.ptx")
    case = Case(20, 30, 64, config={"alpha": 0.25})
    ptx = case.run("ptx")
    assert (ptx.meta["kernel"], ptx.meta["alpha"]) == ("nvfp4_gemm, packaged", 0.25)
    outcome = fp4ref.compare(case.run("emulator"), ptx)
    assert outcome.ok, outcome.report()


@pytest.mark.usefixtures("without_nvrtc")
def test_other_configurations_ask_for_nvrtc() -> None:
    with pytest.raises(InputError, match=r"only for f32, bf16, f16.*fp4ref\[cuda\]"):
        kernel_code(GemmConfig.nvfp4(tile_n=64))


@needs_nvrtc
def test_nvrtc_makes_what_is_packaged() -> None:
    try:
        made = texts()
    except CompileError as error:
        pytest.skip(str(error))
    facts = json.loads(packaged("figures.json"))
    now = json.loads(made["figures.json"])
    if now["nvrtc"] != facts["nvrtc"]:
        pytest.skip(f"NVRTC {now['nvrtc']}; the package was made by {facts['nvrtc']}")
    for name, text in made.items():
        assert packaged(name) == text, (
            f"{name}: say python -m fp4ref.cuda_kernel.package"
        )


@pytest.mark.parametrize("name", NAMES)
def test_packaged_ptx_names_no_folder(name: str) -> None:
    ptx = packaged(f"{name}.ptx")
    files = re.findall(r'\.file\s+\d+\s+"([^"]+)"', ptx)
    assert files
    assert all((kernel_root() / file).is_file() for file in files)
    assert ".section" not in ptx
    assert "inlined_at" not in ptx
    assert ".target sm_100a" in ptx


@pytest.mark.parametrize("name", NAMES)
def test_no_spills_and_few_registers_and_instructions(name: str) -> None:
    facts = json.loads(packaged("figures.json"))[name]
    assert facts["spill_instructions"] == 0
    assert facts["registers"] <= 128
    needed = mandatory(plan(packaged_configs()[name]))
    assert sum(needed.values()) <= facts["per_k_tile"] <= 60


@pytest.mark.parametrize("tile_n", [64, 128])
def test_what_is_mandatory_follows_the_plan(tile_n: int) -> None:
    """Each K block of 64 has an MMA and a copy of SFA and of SFB, each of 128 rows."""
    needed = mandatory(plan(GemmConfig.nvfp4(tile_n=tile_n)))
    assert needed == {"UTCCP": 8, "UTCOMMA": 4, "UTCBAR": 1}


@needs_nvrtc
def test_a_k_tile_has_the_mandatory_instructions() -> None:
    compiled = build.compile_kernel(GemmConfig())
    try:
        found = figures(compiled.cubin)
    except CompileError as error:
        pytest.skip(str(error))
    for opcode, count in mandatory(plan()).items():
        assert found.loop_counts[opcode] == count * found.k_tiles
    assert found.registers == json.loads(packaged("figures.json"))["f32"]["registers"]


@needs_nvrtc
@pytest.mark.parametrize(
    ("operand_format", "mma", "copies"),
    [("mxfp8_e5m2", "UTCQMMA", 2), ("e4m3", "UTCQMMA", 0), ("bf16", "UTCHMMA", 0)],
)
def test_other_kinds_have_their_mma_and_no_spills(
    operand_format: str, mma: str, copies: int
) -> None:
    """Four MMAs of 32 bytes along K; of scales one atom of each operand."""
    config = GemmConfig.nvfp4(operand_format=operand_format)
    wanted = {mma: 4, "UTCBAR": 1} | ({"UTCCP": copies} if copies else {})
    assert mandatory(plan(config)) == wanted
    try:
        found = figures(build.compile_kernel(config).cubin)
    except CompileError as error:
        pytest.skip(str(error))
    for opcode in ("UTCCP", mma, "UTCBAR"):
        per_k_tile = found.loop_counts.get(opcode, 0) // found.k_tiles
        assert per_k_tile == wanted.get(opcode, 0)
    assert (found.spill_instructions, found.registers <= 128) == (0, True)


def constants_of(config: GemmConfig) -> dict[str, str]:
    """Constants of the header by name, those of a map with its namespace."""
    found, space = {}, ""
    for line in plan_header(config).splitlines():
        if opened := re.match(r"namespace (\w+)", line):
            space = f"{opened[1]}::"
        elif line.startswith("}"):
            space = ""
        if given := re.match(r"constexpr \w+ (\w+) = (.*);", line):
            found[space + given[1]] = given[2]
    return found


def test_every_constant_of_the_plan_is_used() -> None:
    pair = {"cta_group": 2, "tile_m": 256, "cluster_m": 2, "cluster_n": 2}
    scaled = GemmConfig.nvfp4(c_format="bf16", beta=1.0, d_format="nvfp4", **pair)
    unscaled = GemmConfig.nvfp4(operand_format="bf16")
    unused = unused_constants(scaled) & unused_constants(unscaled)
    asserted = {"smem_map::END"}
    in_rings = {n for n in unused if n.endswith(("_FULL", "_EMPTY", "::LOAD_ORDER"))}
    assert unused - in_rings == asserted
    assert all(plan_header(scaled).count(name) == 1 for name in in_rings)


def unused_constants(config: GemmConfig) -> set[str]:
    """Those that no other file of the kernel names."""
    others = one_file(config).replace(plan_header(config), "")
    return {
        name
        for name in constants_of(config)
        if not re.search(rf"\b{name}\b", others.replace(f"{name} = ", ""))
    }


def test_the_headers_in_the_kernels_folder_are_those_of_the_default() -> None:
    for path, text in headers(GemmConfig()).items():
        assert (kernel_root() / path).read_text() == text


def test_constants_follow_the_configuration() -> None:
    config = GemmConfig.example_72b(beta=-1.5)
    found = constants_of(config)
    assert found["MAINLOOP_STAGES"] == "4"
    parts = headers(config)[PARTS]
    assert "using Output = BlockScaleFactorRowStore<UE8M0, 0x40000000>;" in parts
    assert (
        "Fma<Constant<0xbfc00000>, SrcFetch<F32>, Multiply<Alpha, AccFetch>>" in parts
    )
    assert found["smem_map::A"] == str(plan(config).smem.a)
    assert found["tmem_map::K_TILE"] == "32"


def test_the_parameter_block_is_the_entrys() -> None:
    machine = Machine(1)
    a, b = wide_pair(1, 3, 5, 32)
    problem = GemmProblem(machine, a, b, None, None, GemmConfig())
    block = parameter_block(problem.params)
    program = Program.of(parse(packaged("f32.ptx")), ENTRY)
    assert len(block) == PARAMS_NBYTES == program.param_nbytes
    assert block[:128] == problem.params.a.to_bytes()
    assert block[4 * 128 : 5 * 128] == bytes(128)  # no C
    assert int.from_bytes(block[784:788], "little") == 3
    assert problem.params.scale_format is ScaleFormat.UE4M3


def test_headers_go_in_once_with_their_lines(tmp_path: Path) -> None:
    main = tmp_path / MAIN
    main.parent.mkdir(parents=True)
    main.write_text('#include "a.cuh"\n#include "../b.cuh"\nint main_line_3;\n')
    (main.parent / "a.cuh").write_text('#pragma once\n#include "../b.cuh"\nint a;\n')
    (main.parent.parent / "b.cuh").write_text("int b;\n")
    text = expand({"kernel/b.cuh": "int changed;\n"}, tmp_path)
    assert text.count("int changed;") == 1
    lines = text.splitlines()
    assert lines[lines.index("int a;") - 1] == '#line 3 "kernel/gemm/a.cuh"'
    assert lines[lines.index("int main_line_3;") - 1] == f'#line 3 "{MAIN}"'


def test_line_information_names_the_statement_of_a_role() -> None:
    ptx = """\
.loc 1 10 5
.loc 2 20 5, function_name $a, inlined_at 1 11 3
.loc 3 30 5, function_name $b, inlined_at 2 20 5
    mov.u32 %r1, 0;
}
    .file 1 "/home/someone/kernel/gemm/mma_warp.cuh"
    .file 2 "/home/someone/kernel/gemm/pipeline.cuh"
    .file 3 "/home/someone/kernel/hardware/mbarrier.cuh"
    .section .debug_str
    .b8 1
"""
    found = normalised(ptx)
    assert re.findall(r"\.loc\t(.*)", found) == ["1 10 5", "1 11 3", "1 11 3"]
    assert "someone" not in found
    assert ".section" not in found
