"""The record of CUTLASS and ptxas is what the pinned packages say when asked again."""

from __future__ import annotations

import runpy
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fp4ref import GemmConfig, plan
from fp4ref.cutlass.toolchain import Toolchain, find_toolchain, missing_packages
from fp4ref.errors import InputError
from fp4ref.lessons import record

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    *("cute_types", "sm90_epilogue", "sm100_72b", "sm100_overlapped"),
    "sm90_cooperative_64x64",
)


@pytest.fixture(scope="module")
def ask() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance/record/make.py"))


@pytest.fixture(scope="module")
def tools() -> Toolchain:
    if sys.platform != "linux":
        pytest.skip("CUTLASS is built on Linux only")
    if missing := missing_packages():
        pytest.skip(f"the [cutlass] extra is not installed: {', '.join(missing)}")
    try:
        return find_toolchain()
    except InputError as error:
        pytest.skip(str(error))


def is_recorded(package: str) -> bool:
    return metadata.version(package) == record.entry("packages", package)


def test_the_record_is_of_the_pinned_cutlass() -> None:
    pinned = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = record.entry("packages", "nvidia-cutlass")
    assert f'"nvidia-cutlass=={version};' in pinned


def test_a_line_is_where_the_record_has_it(
    ask: dict[str, Any], tools: Toolchain
) -> None:
    found = ask["found_lines"](tools)
    assert set(found) == set(record.entry("lines"))
    for key, line in found.items():
        expected = record.entry("lines", key)
        if not is_recorded(line["package"]):
            expected = expected | {"line": line["line"]}
        assert line == expected, key


def test_ptxas_says_what_the_record_has(ask: dict[str, Any], tools: Toolchain) -> None:
    assert ask["assembled"](tools) == record.entry("ptx")


def check_program(ask: dict[str, Any], tools: Toolchain, program: str) -> None:
    if program in ask["REFUSED"]:
        assert ask["refusal"](tools, program) == record.entry("refused", program)
    else:
        assert ask["compiled"](tools, program) == record.entry("types", program)


def test_one_program_each_day_prints_what_the_record_has(
    ask: dict[str, Any], tools: Toolchain, rotating_seed: int
) -> None:
    check_program(ask, tools, PROGRAMS[rotating_seed % len(PROGRAMS)])


@pytest.mark.soak
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_prints_what_the_record_has(
    ask: dict[str, Any], tools: Toolchain, program: str
) -> None:
    check_program(ask, tools, program)


def test_every_program_is_tested(ask: dict[str, Any]) -> None:
    assert {*ask["PROGRAMS"], *ask["REFUSED"]} == set(PROGRAMS)
    assert set(record.entry("types")) == set(ask["PROGRAMS"])
    assert set(record.entry("refused")) == set(ask["REFUSED"])
    sources = (ROOT / "conformance/record").glob("*.cu")
    executed = {"callback_order"}  # tests/cutlass/test_installed_callbacks.py has it
    assert {source.stem for source in sources} == {*PROGRAMS, *executed}


def test_narrow_subtiles_of_overlapped_accumulators_leave_tmem() -> None:
    """CUTLASS compiles all three. In this kernel 128 columns are shared, whatever n."""
    said = {
        n: record.compiled("sm100_overlapped", f"end_with_{n}_columns")
        for n in (128, 64, 32)
    }
    wide = {"tile_n": 256, "d_format": "f32", "d_stages": 1}
    ours = [plan(GemmConfig.nvfp4(**wide, subtile_n=n)) for n in said]
    scales = ours[0].sf_atoms * (ours[0].sfa_columns + ours[0].sfb_columns)
    assert said == {n: 256 - n + 256 + scales for n in said}
    columns = record.compiled("sm100_overlapped", "columns")
    assert said[64] <= columns < said[32]
    sets = len(ours[0].tmem.sfa)
    assert {each.tmem.end for each in ours} == {256 - 128 + 256 + sets * scales}
    assert ours[0].tmem.end <= columns


def test_the_counters_of_a_bias_gradient_are_of_no_batch() -> None:
    """One for a row of tiles; the last of them in all batches adds."""
    assert record.lines("gradient_counter") == ["n", "m"]
    ends = record.lines("gradient_counter_end")
    assert [end.count("size<3>(gBuf_") for end in ends] == [1, 1]


def test_a_question_that_nothing_answers_is_a_sentence(
    ask: dict[str, Any], tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"key": "none", "file": "cute/config.hpp", "pattern": "(no such words)"}
    found_lines = ask["found_lines"]
    monkeypatch.setitem(
        found_lines.__globals__, "questions", lambda: {"line": [question]}
    )
    with pytest.raises(InputError, match=r"cute/config\.hpp: none is not there"):
        found_lines(tools)


def test_an_entry_that_is_not_there_is_named() -> None:
    with pytest.raises(record.RecordError, match=r"no types\.cute_types\.none"):
        record.compiled("cute_types", "none")


def test_several_words_are_not_one() -> None:
    with pytest.raises(record.RecordError, match=r"epilogue_parameters: .* several"):
        record.line("epilogue_parameters")
