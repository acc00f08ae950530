"""traced_machine: one recorder a launch, and what a trace says of its machine."""

from __future__ import annotations

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import InputError
from fp4ref.execution.traced_machine import TracedMachine


def test_a_new_recorder_for_a_new_launch() -> None:
    traced = TracedMachine(2, "eager", "ptx", trace=True)
    first = traced.trace({"launch": 1})
    traced.record_anew()
    second = traced.trace({"launch": 2})
    assert first is not second
    assert (first.meta, second.meta) == ({"launch": 1}, {"launch": 2})


def test_nothing_is_recorded_where_no_trace_is_wanted() -> None:
    traced = TracedMachine(2, "eager", "ptx", trace=False)
    traced.record_anew()
    assert traced.machine.recorder is None
    assert traced.trace({}) is None


def test_the_meta_names_the_machine() -> None:
    traced = TracedMachine(3, 7, "shipped", trace=True)
    traced.machine.gmem.allocate("A", 256)
    meta = traced.meta()
    assert list(meta) == ["schedule", "ordering", "sms", "cluster", "allocations"]
    assert (meta["ordering"], meta["sms"]) == ("shipped", 3)
    assert meta["schedule"] == traced.machine.schedule.name
    [(name, _, nbytes)] = meta["allocations"]
    assert (name, nbytes) == ("A", 256)


@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_every_backend_records_on_this_machine(tiny_pair, backend) -> None:
    run = fp4ref.run(*tiny_pair, backend=backend, sms=1)
    assert run.trace.meta is run.meta
    assert ("kernel" in run.meta) == (backend == "ptx")


@pytest.fixture
def tiny_pair():
    x = np.ones((1, 32), np.float32)
    return fp4ref.quantize(x), fp4ref.quantize(x)


def test_bad_machines_are_refused() -> None:
    with pytest.raises(InputError):
        TracedMachine(0, "eager", "ptx", trace=True)
    with pytest.raises(InputError):
        TracedMachine(1, "soon", "ptx", trace=True)
