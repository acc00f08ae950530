"""The comparison: what must hold, what fails, and that the harness can tell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.comparison import (
    BASELINE_MARK,
    DEFICIT,
    FAILURE_MARK,
    NOTHING,
    SIGNS,
    Compared,
    all_models,
    baseline_errors,
    compare,
    summed,
    without_worst,
)
from fp4ref.lab.pair_model import (
    NAME,
    REASONS,
    USED,
    interval,
    left_out,
    traced_kernel,
)
from fp4ref.lab.records import CYCLES, RUN_TIME, records
from fp4ref.parameters import published


@pytest.fixture(scope="module")
def found() -> tuple[Compared, ...]:
    return compare(all_models(NAME, traced_kernel()))


def test_the_model_beats_both_others(found: tuple[Compared, ...]) -> None:
    assert len(found) == 11
    total = summed(found, NAME)
    assert total < summed(found, NOTHING)
    assert total < summed(found, DEFICIT)
    assert without_worst(found, NAME) < without_worst(found, NOTHING)
    assert without_worst(found, NAME) < without_worst(found, DEFICIT)


def test_nothing_changes_has_the_error_of_the_change(
    found: tuple[Compared, ...],
) -> None:
    errors = {each.record.id: each.predicted[NOTHING].error for each in found}
    assert errors["F23C"] == pytest.approx((0.759 - 0.536) / 0.759)
    assert errors["F28"] == 0
    assert errors["F19b"] == pytest.approx(0.126 / 0.874)


def test_the_signs_are_right(found: tuple[Compared, ...]) -> None:
    asked = [each for each in found if each.record.id in SIGNS]
    assert len(asked) == len(SIGNS)
    assert all(each.sign_is_right(NAME) for each in asked)
    assert not any(each.sign_is_right(NOTHING) for each in asked)


def test_the_baseline_is_within_ten_per_cent() -> None:
    errors = baseline_errors(traced_kernel())
    assert set(errors) == set(CYCLES)
    assert all(abs(off) <= BASELINE_MARK for _, off in errors.values())


def test_every_failure_has_its_reason_and_no_reason_is_for_nothing(
    found: tuple[Compared, ...],
) -> None:
    failed = {e.record.id for e in found if e.predicted[NAME].error > FAILURE_MARK}
    assert failed == set(REASONS)


def test_a_model_that_says_nothing_is_counted_as_no_change_and_marked() -> None:
    def silent(switches: tuple[str, ...]) -> Mapping[str, float] | None:
        return None if switches else {"tile": 1.0}

    rows = compare({"silent": silent, NOTHING: all_models("x", silent)[NOTHING]})
    assert summed(rows, "silent") == summed(rows, NOTHING)
    assert not any(each.predicted["silent"].said for each in rows)


def test_a_model_is_asked_for_the_base_of_a_record_too() -> None:
    asked: list[tuple[str, ...]] = []

    def curious(switches: tuple[str, ...]) -> Mapping[str, float]:
        asked.append(switches)
        return records().cycles | {RUN_TIME: 1.0 + len(switches)}

    (row,) = [e for e in compare({"it": curious}) if e.record.id == "F23C"]
    assert ("bf16_arithmetic",) in asked
    assert ("bf16_arithmetic", "two_epilogue_warps") in asked
    assert row.predicted["it"].value == pytest.approx(0.536 * 3 / 2)


def test_a_wrong_model_has_the_wrong_sign() -> None:
    def wrong(switches: tuple[str, ...]) -> Mapping[str, float]:
        (cycles,) = (records().cycles,)
        factor = 1.0 - 0.1 * ("two_epilogue_warps" in switches)
        return cycles | {RUN_TIME: factor}

    (row,) = [e for e in compare({"it": wrong}) if e.record.id == "F23C"]
    assert not row.sign_is_right("it")


def test_leaving_out_a_source_changes_the_sum_or_the_baseline() -> None:
    whole = baseline_errors(traced_kernel())
    every = left_out()
    assert len(every) == 9
    for what, model in every.items():
        off = baseline_errors(model)
        moved = [abs(off[name][1] - whole[name][1]) for name in CYCLES]
        assert max(moved) > 0.05, what


def test_every_source_that_the_model_takes_can_be_left_out() -> None:
    assert set(USED) <= set(published())


def test_f24_has_a_prediction_within_an_interval() -> None:
    base = records().base_switches("F24")
    for what in (RUN_TIME, "K-loop"):
        found = interval(records().switches("F24"), base, what)
        assert found.low <= found.value <= found.high
        assert found.low < found.high
        moved = {n for n in USED if published()[n].low != published()[n].high}
        assert moved <= set(found.by_figure)
        assert min(min(ends) for ends in found.by_figure.values()) == found.low


def test_what_the_model_does_not_know_has_no_interval() -> None:
    with pytest.raises(InputError, match=r"^six_epilogue_warps: the model knows"):
        interval(("six_epilogue_warps",), ())
