"""Tables of what was compiled: the same bytes twice, and each sum is the listing's."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from typer.main import get_command

from fp4ref.commands import app
from fp4ref.cuda_kernel.build import nvrtc_version, packaged
from fp4ref.device.compile import CompileError
from fp4ref.lab import compiled
from fp4ref.lab.compiled import STEPS, compiled_tables
from fp4ref.lab.cutlass_72b import recorded
from fp4ref.lab.mma_loop_steps import VERDICTS, steps
from fp4ref.lab.table import COMPILED, Table

COMMANDS = get_command(app)


def table(name: str) -> Table:
    (found,) = (each for each in compiled_tables() if each.id == name)
    return found


def test_two_makings_are_the_same_bytes() -> None:
    again = [json.dumps(each.to_dict()) for each in compiled_tables.__wrapped__()]
    assert again == [json.dumps(each.to_dict()) for each in compiled_tables()]
    assert {each.kind for each in compiled_tables()} == {COMPILED}


def test_the_roles_of_each_kernel_add_up_to_its_listing() -> None:
    wanted = {"ours": json.loads(packaged("figures.json"))["f32"]["instructions"]}
    wanted["CUTLASS 72b"] = recorded()["instructions"]
    rows = table("sass_roles").rows
    for kernel, total in wanted.items():
        of_kernel = [row for row in rows if row["kernel"] == kernel]
        assert sum(row["all"] for row in of_kernel) == total
        loops = [name for name in rows[0] if name not in ("kernel", "role", "all")]
        assert sum(row[loop] for row in of_kernel for loop in loops) == total


def test_the_kinds_add_up_and_name_the_mandatory() -> None:
    *rows, total = table("sass_kinds").rows
    figures = json.loads(packaged("figures.json"))["f32"]
    assert total["kind"] == "all"
    assert total["mma_ours"] == pytest.approx(figures["per_k_tile"])
    assert total["listing_ours"] == figures["instructions"]
    assert total["listing_cutlass"] == recorded()["instructions"]
    by_kind = {row["kind"]: row for row in rows}
    for kind, count in {"MMA": 4, "scale copy": 8, "commit": 1}.items():
        assert by_kind[kind]["mma_ours"] == by_kind[kind]["mma_cutlass"] == count


def test_every_line_of_the_mma_loop_has_a_step_of_document_003() -> None:
    rows = table("mma_loop").rows
    per_k_tile = sum(row["ours"] for row in table("mma_ten_steps").rows)
    assert len(rows) == round(10 * per_k_tile)
    assert all(row["step"] for row in rows)
    mmas = [row["step"] for row in rows if row["kind"] == "MMA"]
    assert mmas == 10 * ["6", "7", "8", "9"]
    kinds = [kind for _, _, _, of_step in STEPS for kind in of_step]
    assert len(kinds) == len(set(kinds))


@pytest.mark.skipif(nvrtc_version() is None, reason="needs NVRTC")
def test_unrolling_takes_no_registers_and_spills_nothing() -> None:
    rows = table("sass_unroll").rows
    if not rows:
        pytest.skip(table("sass_unroll").note)
    assert [row["unroll"] for row in rows] == [1, 2, 10]
    assert all(row["registers"] <= 128 for row in rows)
    assert all(row["spill_instructions"] == 0 for row in rows)
    figures = json.loads(packaged("figures.json"))
    if figures["nvrtc"] == nvrtc_version():
        assert rows[2]["per_k_tile"] == figures["f32"]["per_k_tile"]


def test_without_a_compiler_the_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise CompileError("NVRTC is not installed; run: pip install it")

    monkeypatch.setattr(compiled, "compile_cuda", missing)
    found = {each.id: each for each in compiled_tables.__wrapped__()}
    assert found["sass_unroll"].note == "Not compiled: NVRTC is not installed."
    assert found["sass_unroll"].rows == ()
    assert len(found["sass_roles"].rows) > 6


def test_the_command_prints_the_tables() -> None:
    text = CliRunner().invoke(COMMANDS, ["sass", "--census"], env={"COLUMNS": "80"})
    assert text.exit_code == 0, text.output
    assert all(each.title in text.output for each in compiled_tables())
    found = CliRunner().invoke(COMMANDS, ["sass", "--census", "--json"])
    assert [each["id"] for each in json.loads(found.output)] == [
        each.id for each in compiled_tables()
    ]


def test_the_steps_begin_with_the_rolled_loop_and_lead_to_the_packaged_kernel() -> None:
    first, *others = steps()
    figures = json.loads(packaged("figures.json"))
    if figures["nvrtc"] == "13.5":
        (default,) = (each for each in steps() if each.id == "one text")
        assert default.after == figures["f32"]["per_k_tile"]
    assert first.verdict == "base"
    assert first.before == first.after
    assert {each.verdict for each in others} == set(VERDICTS) - {"base"}
    assert all(each.before == first.after for each in others)
    assert all(each.success and each.expected and each.result for each in others)
