"""fp4ref check: files on disk, statuses, JSON, and nothing overwritten in silence."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.evidence.check import EXIT_STATUS

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry twice(.param .u64 .ptr .global .align 4 x)
.maxntid 64
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b32 tile[64];
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r2;
    bar.sync 0;
    xor.b32 %r5, %r1, 32;
    mad.lo.u32 %r4, %r5, 4, %r3;
    ld.shared.u32 %r6, [%r4];
    add.u32 %r6, %r6, %r6;
    st.global.u32 [%rd1], %r6;
    ret;
}
"""
LAUNCH = """grid = [1]
block = [64]
[[param]]
buffer = "x"
[buffer.x]
file = "x.npy"
out = "out.npy"
expected = "want.npy"
bits = true
"""
X = np.arange(64, dtype=np.uint32)
SCHEMA = json.loads(files("fp4ref").joinpath("data", "check_schema.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "want.npy", 2 * (X ^ 32))
    (tmp_path / "k.ptx").write_text(TEXT)
    (tmp_path / "k.toml").write_text(LAUNCH)
    return tmp_path


def said(folder: Path, *words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["check", str(folder / "k.ptx"), *words])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def in_json(folder: Path, *words: str) -> dict[str, Any]:
    code, out, _ = said(folder, *words, "--json")
    values: dict[str, Any] = json.loads(out)
    jsonschema.validate(values, SCHEMA)
    assert code == values["exit_status"] == EXIT_STATUS[values["status"]]
    return values


def test_a_clean_kernel_is_status_0_and_leaves_its_buffers(folder: Path) -> None:
    code, out, _ = said(folder)
    assert code == 0
    assert out.splitlines()[-1] == "clean: 0 findings"
    np.testing.assert_array_equal(np.load(folder / "out.npy"), 2 * (X ^ 32))


def test_nothing_is_overwritten_in_silence(folder: Path) -> None:
    assert said(folder)[0] == 0
    before = (folder / "out.npy").read_bytes()
    code, _, sentence = said(folder)
    assert code == 2
    assert "out.npy exists, and is yours; --force overwrites it" in sentence
    assert (folder / "out.npy").read_bytes() == before
    assert said(folder, "--force")[0] == 0
    for page in ("k.ptx", "k.toml"):
        code, _, sentence = said(folder, "--force", "--player", str(folder / page))
        assert code == 2
        assert "is the input" in sentence
    assert (folder / "k.ptx").read_text() == TEXT


def test_every_status_has_its_name_and_number_in_json(folder: Path) -> None:
    values = in_json(folder)
    assert (values["status"], values["findings"]) == ("clean", [])
    (folder / "out.npy").unlink()
    np.save(folder / "want.npy", X)
    values = in_json(folder)
    assert values["status"] == "mismatch"
    (folder / "out.npy").unlink()
    (folder / "k.ptx").write_text(TEXT.replace("    bar.sync 0;\n", ""))
    values = in_json(folder)
    assert values["status"] == "fault"
    (folder / "k.ptx").write_text(
        TEXT.replace("bar.sync 0", "prefetch.global.L2 [%rd1]")
    )
    (folder / "out.npy").unlink(missing_ok=True)
    values = in_json(folder)
    assert values["status"] == "unsupported"
    assert values["unsupported"][0]["opcode"] == "prefetch.global.L2"
    (folder / "k.ptx").write_text(TEXT[:300])
    values = in_json(folder)
    assert values["status"] == "bad input"
    assert "the text ends in the middle of a statement" in values["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "clean", "exit_status": 1},
        {"status": "bad input", "error": None},
        {"status": "fine"},
        {"findings": [{"kind": "race"}]},
        {"more": 1},
    ],
)
def test_the_schema_refuses_what_is_not_so(folder: Path, wrong: dict) -> None:
    values = in_json(folder) | wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, SCHEMA)


def test_init_writes_a_launch_file_once(folder: Path) -> None:
    (folder / "k.toml").unlink()
    code, _, sentence = said(folder)
    assert code == 2
    assert "--init writes one from the PTX's entry" in sentence
    code, out, _ = said(folder, "--init")
    assert code == 0
    assert "fill in what its comments ask for" in out
    written = (folder / "k.toml").read_text()
    assert 'entry = "twice"' in written
    assert said(folder, "--init")[0] == 2
    assert (folder / "k.toml").read_text() == written
    # What it wrote can be read, and runs as it is: zeros are a launch too.
    assert said(folder)[0] == 0


def test_init_of_what_is_not_modelled_has_that_status(folder: Path) -> None:
    table = ".global .align 8 .u64 table[1] = {twice};\n"
    text = TEXT.replace(".visible .entry", f"{table}.visible .entry")
    (folder / "k.ptx").write_text(text)
    (folder / "k.toml").unlink()
    code, sentence, _ = said(folder, "--init")
    assert code == EXIT_STATUS["unsupported"] == 3
    assert "an initialiser with rows or addresses" in sentence
    assert not (folder / "k.toml").exists()
    values = in_json(folder, "--init")
    assert (values["status"], values["exit_status"]) == ("unsupported", 3)


def test_a_player_shows_the_run_that_fails(folder: Path) -> None:
    (folder / "k.ptx").write_text(TEXT.replace("    bar.sync 0;\n", ""))
    page = folder / "run.html"
    assert said(folder, "--player", str(page), "--schedule", "eager,7")[0] == 1
    text = page.read_text()
    assert "<title>fp4ref check: twice</title>" in text
    steps = re.search(r"Step (\d+) of (\d+): SM 0, CTA \(0, 0, 0\), warp", text)
    assert steps is not None
    assert steps[1] == steps[2] != "0"


def test_schedules_and_orderings_are_chosen(folder: Path) -> None:
    values = in_json(folder, "--schedule", "late,3", "--ordering", "shipped")
    ran = [(run["schedule"], run["ordering"]) for run in values["runs"]]
    assert ran == [("late", "shipped"), ("seed 3", "shipped")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--schedule", "soon"), "schedules: schedule 'soon'"),
        (("--schedule", ""), "schedules: schedule ''"),
        (("--ordering", "c++"), "orderings: 'c++'; take 'ptx', 'shipped'"),
        (("--steps", "0"), "steps: 0"),
        (("--seconds", "-1"), "seconds: -1.0; a positive number"),
        (("--entry", "twice"), "--entry goes with --init"),
        (("--launch", "none.toml"), "none.toml: no such launch file"),
        (("--player", "/no/such/folder/x.html"), "no such folder"),
    ],
)
def test_bad_options_are_one_sentence(
    folder: Path, words: tuple[str, ...], sentence: str
) -> None:
    code, _, found = said(folder, *words)
    assert code == 2, found
    assert sentence in found


def test_a_report_fits_80_columns_and_names_line_rule_evidence_remedy(
    folder: Path,
) -> None:
    (folder / "k.ptx").write_text(TEXT.replace("    bar.sync 0;\n", ""))
    code, out, _ = said(folder)
    assert code == 1
    line = TEXT.splitlines().index("    ld.shared.u32 %r6, [%r4];")
    assert f"PTX line {line}: ld.shared.u32 %r6, [%r4];" in out
    for word in ("rule", "remedy", "evidence", "seen in"):
        assert re.search(rf"^  {word}: +\S", out, re.MULTILINE), word
    assert max(map(len, out.splitlines()[1:])) <= 80
