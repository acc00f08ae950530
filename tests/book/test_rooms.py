"""The architecture page is what the import contracts say, and leaves no room out."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import rooms

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
FLOORS = rooms.all_floors()


NO_ROOM = {"fp4ref.data", "fp4ref.__main__"}
"""Files, and what ``python -m fp4ref`` runs."""


def modules_in(package: str) -> set[str]:
    """Full names of what lies in a package, as folders and files."""
    folder = ROOT / package.replace(".", "/")
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return {f"{package}.{name}" for name in files | packages}


def texts(picture: str) -> list[str]:
    return [
        each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")
    ]


@pytest.mark.parametrize("floors", FLOORS, ids=lambda each: each.package)
def test_no_room_is_missing(floors: rooms.Floors) -> None:
    drawn = [name for layer in floors.layers for name in layer]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == modules_in(floors.package) - NO_ROOM


@pytest.mark.parametrize("floors", FLOORS, ids=lambda each: each.package)
def test_picture_and_text_name_every_room_and_what_it_is(floors: rooms.Floors) -> None:
    page, drawn = rooms.page(), texts(rooms.picture(floors))
    for i, layer in enumerate(floors.layers, 1):
        for name in layer:
            assert floors.short(name) in drawn
            assert rooms.purpose(name)
            assert f"| {i} | `{floors.short(name)}` | {rooms.purpose(name)} |" in page
    assert rooms.alt(floors) in page
    assert f"/_generated/{floors.file}" in page


def test_the_package_comes_first_and_every_contract_is_there() -> None:
    assert FLOORS[0].package == "fp4ref"
    assert {"fp4ref.gemm", "fp4ref.ptx", "fp4ref.trace"} < {f.package for f in FLOORS}
    kinds = [contract["type"] for contract in rooms.contracts()]
    assert set(kinds) == {"layers", "forbidden"}
    forbidden = [c for c in rooms.contracts() if c["type"] == "forbidden"]
    assert all(f"- {contract['name']}: " in rooms.page() for contract in forbidden)


def test_a_new_layer_changes_the_page() -> None:
    written = rooms.contracts()
    gemm = next(c for c in written if c.get("containers") == ["fp4ref.gemm"])
    before = rooms.page(written)
    gemm["layers"].insert(0, "(cleanup) | config : pipeline")
    after = rooms.page(written)
    assert before != after
    (floors,) = [f for f in rooms.all_floors(written) if f.package == "fp4ref.gemm"]
    added = tuple(f"fp4ref.gemm.{name}" for name in ("cleanup", "config", "pipeline"))
    assert floors.layers[0] == added
    assert {"cleanup", "config", "pipeline"} <= set(texts(rooms.picture(floors)))


def test_many_rooms_stand_in_rows_inside_the_picture() -> None:
    names = tuple(f"fp4ref.room_{i}" for i in range(9))
    picture = ElementTree.fromstring(rooms.picture(rooms.Floors("fp4ref", (names,))))
    boxes = [each for each in picture.iter(f"{SVG}rect") if each.get("stroke")]
    assert len(boxes) == 9
    assert len({box.get("y") for box in boxes}) == 3
    ends = [int(box.get("x", "")) + int(box.get("width", "")) for box in boxes]
    assert max(ends) <= 690
    assert picture.get("role") == "img"


def test_no_other_page_lists_the_rooms() -> None:
    """Only the generated page names what stands above what."""
    pages = [ROOT / "README.md", *(ROOT / "book").glob("*.md")]
    for path in pages:
        rows = [r for r in path.read_text("utf-8").splitlines() if r.startswith("| `")]
        cells = [row.split("`")[1].strip("/").replace("/", ".") for row in rows]
        named = {cell for cell in cells if cell in modules_in("fp4ref")}
        assert not named, f"{path.name} lists {sorted(named)}; architecture.md draws it"
