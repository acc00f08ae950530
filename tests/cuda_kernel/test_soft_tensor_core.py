"""The soft tensor core: one place chooses it, and an H200 ran the kernel on it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from gemm_cases import CONFIG_CASES, Case, asked

from fp4ref import GemmConfig, ScaleFormat
from fp4ref.cuda_kernel.build import (
    CompileError,
    compile_kernel,
    compile_soft,
)
from fp4ref.cuda_kernel.choices import one_file
from fp4ref.cuda_kernel.sources import ENTRY, HARDWARE, SOFT_HARDWARE
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, parse

NVFP4 = GemmConfig.nvfp4(d_format="nvfp4")
NVFP4_UE8M0 = GemmConfig.nvfp4(d_format="nvfp4", sfd_format=ScaleFormat.UE8M0)
ONLY_BLACKWELL = ("tcgen05", "clusterlaunchcontrol", ".e2m1x2", ".ue8m0x2")
RECORD = Path(__file__).parents[1] / "data" / "silicon_h200.json"
RECORDED = json.loads(RECORD.read_text())
REPLAYED = [each for each in CONFIG_CASES if each.m * each.n * each.k < 300_000][:3]


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


def test_outside_the_folder_the_sources_are_the_same():
    native = lines_by_file(one_file(NVFP4))
    soft = lines_by_file(one_file(NVFP4, soft=True))
    replaced = {name.rpartition("/")[2] for name in soft if SOFT_HARDWARE in name}
    for name, lines in native.items():
        folder, _, file = name.rpartition("/")
        if folder == HARDWARE and file in replaced and name not in soft:
            assert f"{SOFT_HARDWARE}/{file}" in soft
        else:
            assert soft[name] == lines, name
    assert {name for name in soft if SOFT_HARDWARE not in name} <= set(native)


def test_the_card_had_one_set_of_bits_in_every_run():
    rows = RECORDED["runs"]
    assert len({row["case"] for row in rows}) >= 60
    assert [row for row in rows if row["bad"] or len(row["hashes"]) != 1] == []
    assert sum(row["runs"] for row in rows if row["delays"]) >= 20_000
    (large,) = [row for row in rows if row["case"] == "2048x2048x2048"]
    assert large["seconds"] < 20


@pytest.mark.parametrize("case", REPLAYED, ids=str)
def test_the_emulator_has_the_bits_of_the_card(case: Case):
    (recorded,) = [
        row["hashes"] for row in RECORDED["runs"] if row["case"] == str(case)
    ]
    problem = problem_of(case)
    problem.launch()
    gmem = problem.machine.gmem
    outputs = [each for each in gmem.allocations if each.name in ("D", "SFD")]
    data = b"".join(gmem.contents(o.address, o.nbytes).tobytes() for o in outputs)
    assert [hashlib.sha256(data).hexdigest()[:16]] == recorded


def problem_of(case: Case) -> GemmProblem:
    config, alpha = asked(case.config)
    a, b, c, bias = case.operands(1)
    if c is not None and c.dtype.name == "bfloat16":
        c = c.view("uint16")
    return GemmProblem(Machine(case.sms), a, b, c, bias, config, alpha)
