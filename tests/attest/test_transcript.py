"""A transcript is held against today's predictions, and moves rows of the table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.attest.keep import TRANSCRIPTS, keep
from fp4ref.attest.verdict import judge
from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.evidence import attested, fidelity
from fp4ref.evidence.attested import KEPT, facts, moves
from fp4ref.evidence.transcript import PartAnswer, Transcript, read

RECORDED = TRANSCRIPTS / "attest_ptx.json"
FILES = sorted(TRANSCRIPTS.glob(f"{KEPT}*.json"))
PARTS = [
    (rung.name, part)
    for rung in facts().values()
    for part, rows in rung.parts.items()
    if rows
]


@pytest.fixture(scope="module")
def recorded() -> Transcript:
    return read(RECORDED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_word_that_was_recorded_is_predicted_today(path: Path) -> None:
    """A rule that changes turns this red, with the row and the first word."""
    found = judge(read(path))
    assert found.stale == ()
    assert [str(m) for m in found.moves.values() if m.verdict == "contradicted"] == []
    assert found.transcript.complete


def on_b200(transcript: Transcript) -> Transcript:
    """The same words, as if a card had given them."""
    known = dict(transcript.facts) | {
        "backend": "device",
        "card": "NVIDIA B200",
        "compute_capability": "10.0",
        "driver": "580.1",
    }
    made = tuple(replace(r, how="measured" if r.how else "") for r in transcript.rungs)
    return replace(transcript, facts=known, rungs=made)


def flipped(transcript: Transcript, rung: str, part: str, word: int) -> Transcript:
    """One bit of one word is another."""

    def change(each: PartAnswer) -> PartAnswer:
        if each.name != part:
            return each
        words = each.words.copy()
        words[word] ^= np.uint32(1 << 7)
        return replace(each, words=words)

    return replace(
        transcript,
        rungs=tuple(
            replace(r, parts=tuple(map(change, r.parts))) if r.name == rung else r
            for r in transcript.rungs
        ),
    )


@pytest.mark.rotating(9)
@pytest.mark.parametrize(("rung", "part"), PARTS)
def test_one_wrong_bit_contradicts_the_row_and_names_it(
    rung: str, part: str, recorded: Transcript, tmp_path: Path
) -> None:
    (answer,) = (r for r in recorded.rungs if r.name == rung)
    (words,) = (p.words for p in answer.parts if p.name == part)
    path = tmp_path / "wrong.json"
    flipped(on_b200(recorded), rung, part, words.size // 2).write(path)
    one = replace(
        read(path), rungs=tuple(r for r in read(path).rungs if r.name == rung)
    )
    found = judge(one).moves
    rows = facts()[rung].parts[part]
    for row in rows:
        assert found[row].verdict == "contradicted"
        assert (found[row].rung, found[row].part) == (rung, part)
        assert f"found {words[words.size // 2] ^ 128:#010x}" in found[row].detail
    others = {row: move for row, move in found.items() if row not in rows}
    assert all(move.verdict == "measured" for move in others.values())


def test_a_card_that_agrees_moves_its_rows(
    recorded: Transcript, tmp_path: Path
) -> None:
    path = tmp_path / "b200.json"
    on_b200(recorded).write(path)
    done = CliRunner().invoke(app, ["fidelity", "--json", "--transcript", str(path)])
    rows = {row["id"]: row for row in json.loads(done.output)}
    said = rows["mma-truncation"]["transcript"]
    assert said == "measured on sm_100 (rung mma-nvfp4, part truncation)"
    assert "transcript" not in rows["mbarrier-phase"]
    text = CliRunner().invoke(app, ["fidelity", "--transcript", str(path)]).output
    assert "measured on sm_100" in text


def test_a_difference_is_bold_in_the_table(
    recorded: Transcript, tmp_path: Path
) -> None:
    path = tmp_path / "b200.json"
    flipped(on_b200(recorded), "mma-nvfp4", "truncation", 8 * 5 + 3).write(path)
    done = CliRunner().invoke(app, ["attest", "--json", "--read", str(path)])
    assert done.exit_code == 1
    row = json.loads(done.output)["rows"]["mma-truncation"]
    assert row["says"].startswith(
        "**contradicted**: rung mma-nvfp4, part truncation, row 5, column 3: predicted"
    )
    text = CliRunner().invoke(app, ["fidelity", "--transcript", str(path)]).output
    assert "contradicted by the transcript" in text


def test_what_was_emulated_or_soft_measures_nothing(recorded: Transcript) -> None:
    assert {m.verdict for m in moves(recorded).values()} == {"emulated"}
    soft = replace(
        on_b200(recorded),
        rungs=tuple(replace(r, how="soft") for r in recorded.rungs),
    )
    assert {m.verdict for m in moves(soft).values()} == {"soft"}


def test_a_contradiction_outweighs_an_agreement(recorded: Transcript) -> None:
    """mma-nan-scale is shown by two rungs."""
    wrong = flipped(on_b200(recorded), "mma-mxf4", "NaN scale", 0)
    move = judge(wrong).moves["mma-nan-scale"]
    assert (move.verdict, move.rung) == ("contradicted", "mma-mxf4")


def test_a_rung_that_hung_leaves_its_rows_open(recorded: Transcript) -> None:
    hung = tuple(
        replace(r, state="hung", parts=()) if r.name == "alloc" else r
        for r in recorded.rungs
    )
    found = moves(replace(recorded, rungs=hung))["alloc-placement"]
    assert str(found) == "no answer: rung alloc hung"


def test_a_rung_that_is_asked_otherwise_says_nothing(recorded: Transcript) -> None:
    old = tuple(
        replace(r, question="0" * 16) if r.name == "alloc" else r
        for r in recorded.rungs
    )
    found = judge(replace(recorded, rungs=old))
    assert found.stale == ("alloc",)
    assert "alloc-placement" not in found.moves


# -- files that are no transcripts -------------------------------------------------

Change = Callable[[dict[str, Any]], None]


def _set(*path: Any, to: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        *way, last = path
        for each in way:
            raw = raw[each]
        raw[last] = to

    return change


def _drop(*path: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        *way, last = path
        for each in way:
            raw = raw[each]
        del raw[last]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("format", to="x"), "no transcript; fp4ref attest --out FILE writes one"),
        (_set("version", to=2), "version 2; this fp4ref reads version 1"),
        (_drop("driver"), "the head: 'driver' is missing"),
        (_set("rungs", to={}), "the head: 'rungs' is dict"),
        (_drop("rungs", 2, "state"), r"rung 3 \(cp\): 'state' is missing"),
        (_set("rungs", 2, "state", to="well"), r"rung 3 \(cp\): state 'well'"),
        (_set("rungs", 2, "name", to="cpp"), "no rung 'cpp'"),
        (
            _set("rungs", 2, "parts", 0, "words", to="!"),
            "part warpx4: its words are dam",
        ),
        (_set("rungs", 2, "parts", 0, "count", to=7), "2048 bytes of 7 words"),
        (_set("rungs", 2, "parts", 0, "digest", to="0"), "do not have its digest"),
        (_drop("rungs", 2, "parts", 0), "part warpx4: missing, not 512 words"),
        (_set("rungs", 2, "parts", 0, "differences", to=[1]), "differences are dam"),
    ],
)
def test_a_damaged_file_is_said_where(
    change: Change, words: str, tmp_path: Path
) -> None:
    raw = json.loads(RECORDED.read_text())
    change(raw)
    path = tmp_path / "t.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(InputError, match=words):
        judge(read(path))


def test_a_file_that_is_cut_off_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(RECORDED.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"cut off or damaged at line \d+"):
        read(path)
    path.write_bytes(b"\x80{}")
    with pytest.raises(InputError, match="byte 0 is no text"):
        read(path)


# -- keeping -----------------------------------------------------------------------


def test_a_kept_transcript_of_a_card_makes_its_rows_measured(
    recorded: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    on_b200(recorded).write(path)
    kept = keep(judge(read(path)), tmp_path)
    assert kept.name == "attest_nvidia_b200.json"
    monkeypatch.setattr(attested, "kept", lambda: (read(kept),))
    rules = {rule.id: rule for rule in fidelity._read_rules()}
    rule = rules["mma-truncation"]
    assert rule.evidence is fidelity.Evidence.MEASURED
    assert "NVIDIA B200, driver 580.1" in rule.source
    assert "rung mma-nvfp4 of fp4ref attest" in rule.source
    assert rules["idesc-reserved"].evidence is fidelity.Evidence.DOCUMENTED
    monkeypatch.undo()
    now = {rule.id: rule for rule in fidelity.RULES}["mma-truncation"]
    assert now.evidence is fidelity.Evidence.PUBLISHED_MODEL


def test_what_contradicts_or_is_a_part_is_not_kept(
    recorded: Transcript, tmp_path: Path
) -> None:
    wrong = flipped(recorded, "alloc", "addresses", 0)
    with pytest.raises(InputError, match="contradicts alloc-placement; mend the rule"):
        keep(judge(wrong), tmp_path)
    with pytest.raises(InputError, match="not climbed to its end"):
        keep(judge(replace(recorded, complete=False)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_reading_needs_no_compiler_and_changes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    shutil.copy(RECORDED, path)
    before = path.read_bytes()
    done = CliRunner().invoke(app, ["attest", "--read", str(path)])
    assert done.exit_code == 0, done.output
    assert path.read_bytes() == before
