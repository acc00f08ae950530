"""The command line and every file that it reads, against arguments of any kind."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

if sys.platform == "win32":
    pytest.skip("the worker limits its memory by setrlimit", allow_module_level=True)

from fuzz_cases import Case
from fuzz_files import PTX
from fuzz_run import Tally, fuzz
from fuzz_worker import MOST_NBYTES, problems_of

from fp4ref.ptx import Program, parse

SOAK_RUNS = 20_000
PARTS = 4


def check(tally: Tally, runs: int) -> None:
    print(f"{tally.runs} runs, {tally.worked} past the argument checks")
    print(dict(tally.statuses), dict(tally.kinds.most_common()), tally.peak)
    assert not tally.problems, "\n\n".join(tally.problems[:10])
    assert tally.runs == runs
    assert 2 * tally.worked >= tally.runs
    assert 0 < tally.peak < MOST_NBYTES


def test_a_hundred_of_today(rotating_seed: int) -> None:
    check(fuzz(rotating_seed, 0, 100), 100)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_twenty_thousand(rotating_seed: int, part: int) -> None:
    runs = SOAK_RUNS // PARTS
    tally = fuzz(rotating_seed, part * runs, runs)
    check(tally, runs)
    assert set(tally.statuses) == {0, 1, 2}
    for kind in ("walk", "compare", "frames", "doctor", "sass", "fidelity"):
        assert tally.kinds[f"fp4ref {kind}"] > runs // 400, kind
    for kind in ("ptx", "classroom grade"):
        assert tally.kinds[kind] > runs // 50, kind


def test_what_is_mutated_is_right_before() -> None:
    module = parse(PTX)
    assert [Program.of(module, entry) for entry in module.entries]


def result(status: int, stdout: str = "", stderr: str = "") -> SimpleNamespace:
    return SimpleNamespace(
        exit_code=status, stdout=stdout, stderr=stderr, output=stdout + stderr
    )


@pytest.mark.parametrize(
    ("words", "seen", "problem"),
    [
        (["doctor"], result(3), "exit status 3"),
        (["doctor"], result(0, "Traceback (most recent call last)"), "a traceback"),
        (["doctor"], result(0, "", "a.py:3: UserWarning: x"), "a warning of the code"),
        (["walk"], result(0, "", "invalid value encountered in add"), "a warning"),
        (["walk"], result(2), "no sentence"),
        (["walk"], result(1, "DIFFERENT"), "a walk differs"),
        (["compare", "--json"], result(0, '{"ok": false}'), "ok is False"),
        (["compare", "--json"], result(0, '{"ok": NaN}'), "NaN is no JSON"),
    ],
)
def test_each_rule_can_fail(
    words: list[str], seen: SimpleNamespace, problem: str
) -> None:
    case = Case("fp4ref", tuple(words))
    assert problem in "\n".join(problems_of(case, seen))


def test_lost_and_left_files_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"other")
    Path(".fp4ref-1.part").write_bytes(b"")
    found = list(problems_of(Case("fp4ref", ("walk",), {"a": b"mine"}), result(0)))
    assert found == ["a was overwritten", ".fp4ref-1.part was left behind"]


def test_a_seed_repeats_its_cases() -> None:
    from fuzz_cases import walk_file

    assert walk_file(random.Random("1:7")) == walk_file(random.Random("1:7"))
    assert walk_file(random.Random("1:7")) != walk_file(random.Random("1:8"))
