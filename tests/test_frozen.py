"""frozen: what a rule says of itself, a layout or a descriptor, stays as it was made.

Of each dataclass of four rooms, but of those below, which are the state of a run.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import fp4ref

ROOMS = ("hardware", "layout", "numerics", "ptx")
STATE = {
    *(
        "CtaPair",
        "NamedBarriers",
        "Ballot",
        "CycleCounter",
        "AsyncOp",
        "_Copy",
        "CopyGroups",
        "_Hold",
    ),
    *("Access", "AsyncAccess", "Commit", "MapFence"),
    *("_Product", "TileReport", "TierReport", "Slabs", "Planner", "Float32Slabs"),
    *("Entry", "Function", "Module", "LaunchContext", "Path", "Step", "_Uses"),
}


def classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(fp4ref.__path__, "fp4ref."):
        if found.name.split(".")[1] in ROOMS:
            module = importlib.import_module(found.name)
            for each in vars(module).values():
                own = getattr(each, "__module__", "") == found.name
                if own and isinstance(each, type) and dataclasses.is_dataclass(each):
                    yield each


FOUND = {each.__name__: each for each in classes()}


@pytest.mark.parametrize("name", sorted(FOUND.keys() - STATE))
def test_it_cannot_be_changed(name: str) -> None:
    made = object.__new__(FOUND[name])
    for field in dataclasses.fields(made):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, None)


def test_the_state_of_a_run_is_all_there() -> None:
    assert FOUND.keys() > STATE
    assert len(FOUND) > 70
