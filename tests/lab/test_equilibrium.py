"""The two models to beat: the document's own arithmetic, and no change at all."""

from __future__ import annotations

import pytest

from fp4ref.lab.equilibrium import (
    amplification,
    deficit,
    nothing_changes,
    wait_by_deficit,
)
from fp4ref.lab.records import RUN_TIME, records
from fp4ref.lessons.truths.optimisation_notes import wait_after_saving_300


def test_the_documents_baseline() -> None:
    """A deficit of 257 cycles, a wait of 1,056, a factor that rounds to 4.1."""
    assert deficit(records().cycles) == 257
    assert round(amplification(), 1) == 4.1
    found = wait_by_deficit(())
    assert round(found["epi wait"]) == 1056
    assert round(found["tile"]) == 6067


def test_saving_300_cycles_of_the_k_loop_is_a_regression_as_the_document_says() -> None:
    found = wait_by_deficit(("unrolled_k_loop",))
    assert found["K-loop"] == 4154 - 300
    assert round(found["epi wait"]) == wait_after_saving_300() == 2289
    assert round(found["tile"]) == 4711 + 2289
    assert found["tile"] > records().cycles["tile"]


def test_at_the_documents_pair_of_changes() -> None:
    """F22 with 200 cycles less and F28 with 300: a deficit of 357."""
    found = wait_by_deficit(("bf16_arithmetic", "unrolled_k_loop"))
    assert found["tile"] == pytest.approx(5011 - 300 + 357 * 1056 / 257)


def test_an_epilogue_that_is_ahead_is_not_waited_for() -> None:
    assert deficit({"ml wait": 0, "phase 1": 10, "TMA0 wait": 5, "K-loop": 6}) == 0
    assert deficit({"ml wait": 2, "phase 1": 10, "TMA0 wait": 5, "K-loop": 6}) == 1


def test_two_tiles_for_one_count_twice_in_the_run_time() -> None:
    found = wait_by_deficit(("tile_of_128_columns",))
    assert found[RUN_TIME] == 2 * found["tile"]
    assert found["K-loop"] == records().cycles["K-loop"] / 2


def test_a_switch_of_which_nothing_was_expected_changes_nothing() -> None:
    assert wait_by_deficit(("l2_promotion",)) == wait_by_deficit(())


@pytest.mark.parametrize("id", list(records()))
def test_nothing_changes(id: str) -> None:
    found = nothing_changes(records().switches(id))
    assert found == records().cycles | {RUN_TIME: records().run_time}
