"""imports: inside a room no module needs, by any way round, itself."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

ROOMS = ("hardware", "gemm", "numerics", "ptx")


@pytest.fixture
def imports() -> grimp.ImportGraph:
    """Who imports whom; imports for types only count too."""
    return grimp.build_graph("fp4ref", cache_dir=None)


def in_order(imports: grimp.ImportGraph, room: str) -> list[str]:
    """Modules of a room, each after those it imports; raises where there is none."""
    inside = {m for m in imports.modules if m.startswith(f"fp4ref.{room}.")}
    needs = {m: imports.find_modules_directly_imported_by(m) & inside for m in inside}
    return list(TopologicalSorter(needs).static_order())


@pytest.mark.parametrize("room", ROOMS)
def test_no_circle(imports: grimp.ImportGraph, room: str) -> None:
    assert len(in_order(imports, room)) >= 10


def test_a_circle_is_seen(imports: grimp.ImportGraph) -> None:
    imports.add_import(
        importer="fp4ref.hardware.in_flight", imported="fp4ref.hardware.tmem"
    )
    with pytest.raises(CycleError):
        in_order(imports, "hardware")
