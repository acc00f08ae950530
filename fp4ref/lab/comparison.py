"""comparison: what three models predict of the compared records, and how far off.

A predictor is asked for a kernel and for the kernel that it came from, and the recorded
figure *before* is multiplied by the ratio. The error is the distance from the recorded
figure over that figure. A predictor that has nothing to say is counted as *nothing
changes*, and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fp4ref.lab.equilibrium import Predictor, nothing_changes, wait_by_deficit
from fp4ref.lab.records import CYCLES, Figure, Record, records

NOTHING: Final = "nothing changes"
DEFICIT: Final = "wait by deficit"
SIGNS: Final = ("F19b", "F22", "F23C", "TN128")
"""Records whose sign a model must have."""
BASELINE_MARK: Final = 0.1
FAILURE_MARK: Final = 0.03
"""An error above it is a failure that is listed with its reason."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """What one model says of one record.

    Attributes
    ----------
    value
        In the figure's unit.
    said
        Whether the model had something to say.
    """

    value: float
    error: float
    said: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """One record and what each model says of it, by the model's name."""

    record: Record
    figure: Figure
    predicted: dict[str, Predicted]

    def sign_is_right(self, model: str) -> bool:
        """Whether a model says longer where the record is longer, and shorter so."""
        assert self.figure.before is not None
        assert self.figure.after is not None
        found = self.predicted[model].value - self.figure.before
        return found * (self.figure.after - self.figure.before) > 0


def compare(models: Mapping[str, Predictor]) -> tuple[Compared, ...]:
    """Return every compared record with what each model says."""
    rows = []
    for record in records().compared:
        figure = record.compared
        assert figure is not None
        rows.append(
            Compared(
                record,
                figure,
                {name: predict(record, figure, each) for name, each in models.items()},
            )
        )
    return tuple(rows)


def predict(record: Record, figure: Figure, model: Predictor) -> Predicted:
    """Return what a model says of one figure of a record that has both its ends."""
    assert figure.before is not None
    assert figure.after is not None
    found = records()
    new, old = (
        model(found.switches(record.id)),
        model(found.base_switches(record.id)),
    )
    said = bool(new and old and figure.what in new and figure.what in old)
    ratio = 1.0
    if said:
        assert new is not None
        assert old is not None
        ratio = new[figure.what] / old[figure.what]
    value = figure.before * ratio
    return Predicted(value, abs(value - figure.after) / figure.after, said)


def all_models(name: str, model: Predictor) -> dict[str, Predictor]:
    """Return a model and the two that it must beat."""
    return {NOTHING: nothing_changes, DEFICIT: wait_by_deficit, name: model}


def summed(rows: Iterable[Compared], model: str) -> float:
    """Return the summed relative error of a model."""
    return sum(row.predicted[model].error for row in rows)


def without_worst(rows: Iterable[Compared], model: str) -> float:
    """Return the same without the record on which this model is worst."""
    errors = sorted(row.predicted[model].error for row in rows)
    return sum(errors[:-1])


def baseline_errors(model: Predictor) -> dict[str, tuple[float, float]]:
    """Return a model's cycle counts of the baseline, each with its relative error.

    The error has a sign: a positive one is too long.
    """
    found = model(()) or {}
    cycles = records().cycles
    return {
        name: (found[name], found[name] / cycles[name] - 1)
        for name in CYCLES
        if name in found
    }
