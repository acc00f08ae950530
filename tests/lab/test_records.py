"""Records of document 003: whole, in order; damaged ones named with file and line."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.records import CYCLES, TEMPLATE, read, records
from fp4ref.lab.workload import workloads
from fp4ref.lessons.truths import optimisation_notes

TEXT = resources.files("fp4ref.data").joinpath("lab_records.toml").read_text("utf-8")
# What models are compared by. It was written down before any model was fitted.
COMPARED = {
    "F12": ("run time", 0.543, 0.7019),
    "F17": ("phase 1", 4129, 4129 * 1.19),
    "F19a": ("K-loop", 4154, 4154 + 170),
    "F19b": ("K-loop", 4154, 4154 * (1 - 0.126)),
    "F20": ("run time", 0.543, 0.543),
    "F21": ("TMA0 wait", 794, 787),
    "F22": ("run time", 0.543, 0.536),
    "F23C": ("run time", 0.536, 0.759),
    "F25": ("phase 1", 4129, 4339),
    "F28": ("run time", 0.536, 0.536),
    "TN128": ("run time", 0.543, 0.543 * 1.114),
}


def test_the_list_of_compared_figures_is_the_one_fixed_before_fitting() -> None:
    found = {row.id: row.compared for row in records().compared}
    assert set(found) == set(COMPARED)
    for id, figure in found.items():
        assert figure is not None
        what, before, after = COMPARED[id]
        assert figure.what == what
        assert (figure.before, figure.after) == pytest.approx((before, after))


def test_every_experiment_of_the_document_is_there_with_its_template() -> None:
    numbers = "F3 F12 F13 F17 F19a F19b F20 F21 F22 F23C F24 F25 F26 F27 F28 TN128"
    assert list(records()) == numbers.split()
    for row in records().values():
        assert all(getattr(row, line) for line in TEMPLATE)
        assert bool(row.figures) == (row.id not in ("F3", "F26", "F27"))


def test_f24_is_open_and_f26_and_f27_were_never_run() -> None:
    states = {row.id: row.state for row in records().values()}
    assert [id for id in states if states[id] == "open"] == ["F24"]
    assert [id for id in states if states[id] == "never run"] == ["F26", "F27"]
    for id in ("F24", "F26", "F27"):
        assert records()[id].compared is None


def test_the_baseline_adds_up_as_the_document_has_it() -> None:
    cycles = records().cycles
    assert set(cycles) == set(CYCLES)
    busy = cycles["TMA0 wait"] + cycles["K-loop"]
    assert busy == optimisation_notes._W1_CYCLES
    epilogue = cycles["ml wait"] + cycles["phase 1"]
    assert epilogue == optimisation_notes._EPILOGUE_CYCLES
    assert cycles["epi wait"] == optimisation_notes._WAIT_CYCLES
    assert busy + cycles["epi wait"] == cycles["tile"]
    assert cycles["phase 2B"] == optimisation_notes._PHASE_2B_CYCLES


def test_a_run_time_of_f12_is_its_tflops() -> None:
    found = records()["F12"].compared
    assert found is not None
    assert found.after is not None
    flop = workloads()["003"].flop
    assert flop / 1560e12 == pytest.approx(found.after / 1000, abs=5e-8)


def test_f25s_figure_is_the_mean_of_its_four_warps() -> None:
    record = records()["F25"]
    named = re.findall(r"\d,\d{3}", record.result)
    assert record.compared is not None
    assert record.compared.after == sum(int(n.replace(",", "")) for n in named) / 4


def test_the_order_is_the_documents_and_keeps_the_dependencies() -> None:
    order = records().order
    assert order == ("F25", "F21", "F22", "F23C", "F28", "F24")
    for at, id in enumerate(order):
        assert set(records()[id].depends) <= set(order[:at])


def test_switches_are_those_of_the_base_and_its_own() -> None:
    assert records().switches("F23C") == ("bf16_arithmetic", "two_epilogue_warps")
    assert records().base_switches("F23C") == ("bf16_arithmetic",)
    assert records().switches("F12") == ("six_stages", "tile_of_128_columns")
    assert records().base_switches("F12") == ()
    with pytest.raises(InputError, match=r"^record 'F1': there is none; there are F3,"):
        records().switches("F1")


def line_of(id: str) -> int:
    """Line of the head of a record."""
    before = TEXT[: TEXT.index(f'id = "{id}"')]
    return before.count("\n")


@pytest.mark.parametrize(
    ("old", "new", "id", "said"),
    [
        ('id = "F12"', 'id = "F3"', "F12", "F3: there is one already"),
        ('state = "open"', 'state = "soon"', "F24", "F24: state 'soon'; need done"),
        ('verdict = "open"', 'verdict = "?"', "F24", "F24: verdict '?'; need go,"),
        ('depends = ["F21"]', 'depends = ["F1"]', "F26", "F26: 'F1': there is no"),
        ('depends = ["F21"]', "depends = 21", "F26", "F26: depends: 21; need a list"),
        ('rests_on = ["F19a"]', 'rests_on = ["F24"]', "F19b", "F19b: depends on it"),
        ("place = 5", "place = 2", "F28", "F28: place 2: it depends on F22, which has"),
        ("place = 5", "place = true", "F28", "F28: place: True; need a whole number"),
        ("factor = 1.19", "factor = -1.19", "F17", "F17: figure 'phase 1': factor = -"),
        ("factor = 1.19", "faktor = 1.19", "F17", "F17: figure 'phase 1': need what,"),
        ("factor = 1.19", "factor = inf", "F17", "F17: figure 'phase 1': factor = inf"),
        ("change = 170", "", "F19a", "F19a: figure 'K-loop': compared needs"),
        ("change = 170", "change = -9e3", "F19a", "F19a: figure 'K-loop': change = -4"),
        ("before = 794", "before = 0", "F21", "F21: figure 'TMA0 wait': before = 0"),
        ("before = 794", "", "F21", "F21: figure 'TMA0 wait': compared needs before"),
        ("factor = 3.0", "factor = 3.0\ncompared = true", "F19b", "F19b: two compared"),
        ('kind = "rate"', 'kind = "heat"', "F13", "F13: figure 'L1 busy': kind 'heat'"),
        ('title = "B prom', 'titel = "B prom', "F21", "F21: missing: ['title']; unkn"),
        ('"TMA0 wait" = -20', '"TMA" = -20', "F20", "F20: expected: need changes of"),
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused_with_file_and_line(
    old: str, new: str, id: str, said: str
) -> None:
    start = TEXT.rindex("[[record]]", 0, TEXT.index(f'id = "{id}"'))
    assert old in TEXT[start:]
    damaged = TEXT[:start] + TEXT[start:].replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        read(damaged, "mine.toml")
    assert str(caught.value).startswith(f"mine.toml:{line_of(id)}: {said}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"tile" = 6067', "", "baseline: need cycles of TMA0 wait, K-loop"),
        ('"tile" = 6067', '"tile" = -1', "baseline: tile = -1: need more than zero"),
        ("run_time = 0.543", "", "baseline: run_time = None: need a number"),
        ('source = "document 003', 'quelle = "document 003', "baseline: source: need"),
    ],
)
def test_a_damaged_baseline_is_refused_with_file_and_line(
    old: str, new: str, said: str
) -> None:
    line = TEXT[: TEXT.index("[baseline]")].count("\n") + 1
    with pytest.raises(InputError) as caught:
        read(TEXT.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(f"mine.toml:{line}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT[: len(TEXT) // 2] + "=", "mine.toml: no TOML: "),
        ("", "mine.toml:1: record: write each as a table"),
        ('record = "F3"', "mine.toml:1: record: write each as a table"),
    ],
)
def test_a_file_that_holds_no_records_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text, "mine.toml")
    assert str(caught.value).startswith(said)
