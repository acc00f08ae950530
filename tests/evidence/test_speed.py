"""speed: one run, ratios to NumPy in it, and a reason for what did not run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.evidence import speed, speed_pairs
from fp4ref.evidence.speed import PROGRAMS, Pair, Program, Work, measure

TWO_SIZES = ["--size", "64", "--size", "128"]


def fails(pair: Pair) -> None:
    raise ValueError("no such kernel\nand more")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy, `matmul`, one that is not installed and one that fails."""
    named = {program.name: program for program in PROGRAMS}
    absent = replace(named["torchao"], package="no_such_package")
    failing = Program("failing", 4096, fails, "json")
    small = replace(named["fp4ref.matmul"], most=64)
    chosen = (named["NumPy float32"], small, absent, failing)
    monkeypatch.setattr(speed, "PROGRAMS", chosen)


@pytest.mark.usefixtures("few")
def test_each_has_its_figures_or_its_reason() -> None:
    found = {(each.program, each.size): each for each in measure((128, 64))}
    assert set(found) == {
        ("NumPy float32", 64),
        ("fp4ref.matmul", 64),
        ("torchao", 64),
        ("failing", 64),
        ("NumPy float32", 128),
    }
    first, second = found["NumPy float32", 64], found["NumPy float32", 128]
    assert (first.ratio, second.ratio, first.growth) == (1, 1, None)
    assert second.growth == second.seconds / first.seconds
    ours = found["fp4ref.matmul", 64]
    assert ours.ratio == ours.seconds / first.seconds
    said = found["torchao", 64].why_not
    assert said == "not installed: pip install torch torchao"
    assert found["failing", 64].why_not == "failed: no such kernel"


def test_a_first_run_that_compiles_is_not_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock says 9 seconds for the first run, 1 for each other."""
    readings = iter([0.0, 9.0, 10.0, 11.0])
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(readings))
    work = Program("ours", 64, lambda pair: Work(events=3))
    assert speed._shortest(work, None) == (1.0, Work(events=3))


def test_every_outside_program_says_how_to_get_it() -> None:
    for program in PROGRAMS:
        assert bool(program.package) == bool(program.remedy)


@pytest.mark.parametrize("size", [0, 100, 1 << 20])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="size"):
        list(measure((size,)))


@pytest.mark.usefixtures("few")
def test_the_command_prints_a_table_or_json() -> None:
    runner = CliRunner()
    said = runner.invoke(app, ["bench", "--size", "64"], env={"COLUMNS": "120"})
    assert said.exit_code == 0, said.output
    assert "torchao: not installed: pip install torch torchao" in said.output
    found = json.loads(runner.invoke(app, ["bench", "--size", "64", "--json"]).output)
    assert [each["program"] for each in found][:2] == ["NumPy float32", "fp4ref.matmul"]
    assert runner.invoke(app, ["bench", "--size", "100"]).exit_code == 2


@pytest.mark.outside
def test_mma_sim_multiplies_to_our_bits() -> None:
    pytest.importorskip("mmasim", reason="pip install mmasim")
    pair = speed._pair(128)
    ours = speed.matmul(pair.a, pair.b)
    found = speed._mmasim(pair).d
    assert np.array_equal(found.view(np.uint32), ours.view(np.uint32))


def test_bits_are_equal_where_the_product_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And one wrong bit is seen."""
    named = {program.name: program for program in PROGRAMS}
    chosen = [named[name] for name in ("NumPy float32", "emulator", "ptx, traced")]

    def wrong(pair: Pair) -> Work:
        d = speed.matmul(pair.a, pair.b).copy()
        d.view(np.uint32)[5, 7] ^= 1
        return Work(d)

    monkeypatch.setattr(speed, "PROGRAMS", (*chosen, Program("wrong", 64, wrong)))
    found = {each.program: each for each in measure((64,))}
    bits = {name: each.same_bits for name, each in found.items()}
    assert bits == {
        "NumPy float32": None,
        "emulator": True,
        "ptx, traced": True,
        "wrong": False,
    }
    traced = found["ptx, traced"]
    assert traced.events_per_second == traced.events / traced.seconds


@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_traced_events_are_linear_in_tiles(backend: speed.BackendName) -> None:
    """Through 2 and 8 tiles goes a line; others lie on it within 5 %."""

    def events(tiles: int) -> int:
        codes = np.full((128 * tiles, 256), 2, np.uint8)
        scales = np.full((128 * tiles, 16), 0x38, np.uint8)
        a = speed.BlockScaled(codes, scales)
        b = speed.BlockScaled(codes[:128], scales[:128])
        return speed._traced(backend)(speed.Pair(codes, codes, a, b)).events

    first, last = events(2), events(8)
    for tiles in (4, 5):
        line = first + (last - first) * (tiles - 2) / 6
        assert events(tiles) == pytest.approx(line, rel=0.05)
    assert last > 3 * first


def test_turns_are_measured_in_processes_with_so_many_threads() -> None:
    """As a user runs it: the command, its process and the figures."""
    asked = ["bench", "--threads", "2", "--size", "64", "--json"]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    works = ["matmul, ordinary", "matmul, wide", "matmul, any scale", "quantize"]
    assert [(each["threads"], each["work"]) for each in found] == [
        (2, work) for work in works
    ]
    for each in found:
        if each["work"] == "quantize":
            assert each["size"] == 256
            assert each["memory"] > 0
        else:
            assert each["ratio"] == each["numpy_seconds"] / each["seconds"]
            assert sum(each["shares"].values()) == pytest.approx(1)
    table = CliRunner().invoke(app, asked[:-1], env={"COLUMNS": "80"}).output
    assert "matmul, ordinary" in table
    assert "…" not in table, "a column is cut"


def test_tables_give_the_values_that_dequantize_gives() -> None:
    q = speed_pairs.ordinary(np.random.default_rng(3), 64)
    plain = speed.BlockScaled(q.codes, q.scales)
    assert np.array_equal(speed_pairs.by_tables(q), plain.dequantize())


@pytest.mark.parametrize("wrong", [["0"], ["1", "--size", "100"], ["1", *TWO_SIZES]])
def test_other_threads_and_sizes_are_refused(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", "--threads", *wrong]).exit_code == 2
