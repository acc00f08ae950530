"""source_line: an event names the statement that means it."""

from __future__ import annotations

import pytest
from on_machine import launch, machine

STEP = "def step(warp):\n    warp.note('here')\n"


def sources(marker) -> list[str]:
    """Source of a note that another module's function leaves."""
    module = {} if marker is None else {"SOURCE_IS_CALLER": marker}
    exec(compile(STEP, "small_steps.py", "exec"), module)

    def body(warp):
        module["step"](warp)
        yield from ()

    on = machine(trace=True)
    launch(on, body)
    return [e.source for e in on.recorder.trace.select(operation="here")]


@pytest.mark.parametrize("marker", [None, False])
def test_a_module_is_named_by_itself(marker) -> None:
    assert sources(marker) == ["small_steps.py:2"]


def test_a_module_may_leave_its_place_to_its_callers() -> None:
    [source] = sources(True)
    line = sources.__code__.co_firstlineno + 6
    assert source == f"test_source_line.py:{line}"
