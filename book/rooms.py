"""rooms: every layer contract of pyproject.toml, drawn, with a text twin.

The contracts are what the tests check, so the page cannot say another order than the
one that holds.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawing import WIDTH, band, box, figure, svg
from wording import row

ROOT = Path(__file__).parents[1]
PACKAGE = "fp4ref"

_ACROSS = 4
"""Most rooms beside each other."""


@dataclass(frozen=True, slots=True)
class Floors:
    """One contract for one package: its layers from the top, each with its rooms.

    Attributes
    ----------
    package
        What contains the rooms: ``fp4ref`` or ``fp4ref.gemm``.
    layers
        Full names of modules.
    """

    package: str
    layers: tuple[tuple[str, ...], ...]

    @property
    def file(self) -> str:
        """Name of the picture."""
        return f"rooms_{self.package.rpartition('.')[2]}.svg"

    def short(self, module: str) -> str:
        """Name of a room inside its package."""
        return module.removeprefix(f"{self.package}.")


def contracts(source: Path = ROOT / "pyproject.toml") -> list[dict[str, Any]]:
    """Return import-linter's contracts as they are written."""
    project = tomllib.loads(source.read_text("utf-8"))
    found: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return found


def all_floors(written: list[dict[str, Any]] | None = None) -> list[Floors]:
    """Return the floors of the package, then those inside each of its rooms."""
    found = []
    for contract in contracts() if written is None else written:
        if contract["type"] != "layers":
            continue
        for container in contract.get("containers", [""]):
            prefix = f"{container}." if container else ""
            layers = tuple(
                tuple(prefix + name for name in re.findall(r"[\w.]+", layer))
                for layer in contract["layers"]
            )
            found.append(Floors(container or PACKAGE, layers))
    return sorted(found, key=lambda floors: floors.package != PACKAGE)


def purpose(module: str) -> str:
    """Return the first line of a module's docstring, without its name."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    first = docstring.partition("\n")[0]
    return (first.partition(": ")[2] or first).replace("``", "`")


def picture(floors: Floors) -> str:
    """One band for each layer; imports point down."""
    parts, y = [], 8
    for layer in floors.layers:
        rows = [layer[i : i + _ACROSS] for i in range(0, len(layer), _ACROSS)]
        parts.append(band(y, 36 * len(rows) + 6))
        y += 6
        for names in rows:
            width = (WIDTH - 20 - 10 * (len(names) - 1)) // len(names)
            for i, name in enumerate(names):
                x = 10 + i * (width + 10)
                parts.append(box(x, y, width, 30, [floors.short(name)]))
            y += 36
        y += 6
    return svg(y + 2, alt(floors), parts)


def alt(floors: Floors) -> str:
    """One sentence for readers who do not see the picture."""
    bands = [", ".join(floors.short(name) for name in layer) for layer in floors.layers]
    return f"Layers of {floors.package} from top to bottom: {'; '.join(bands)}."


def table(floors: Floors) -> str:
    """The text twin: each room with what it is."""
    lines = [row("layer", "room", "what it is"), row("---:", "---", "---")]
    for i, layer in enumerate(floors.layers, 1):
        lines += [
            row(str(i), f"`{floors.short(name)}`", purpose(name)) for name in layer
        ]
    return "\n".join(lines)


def forbidden(written: list[dict[str, Any]] | None = None) -> str:
    """Return one line for each contract that forbids an import."""
    lines = []
    for contract in contracts() if written is None else written:
        if contract["type"] == "forbidden":
            who = ", ".join(f"`{name}`" for name in contract["source_modules"])
            what = ", ".join(f"`{name}`" for name in contract["forbidden_modules"])
            lines.append(f"- {contract['name']}: {who} never import {what}.")
    return "\n".join(lines)


def page(written: list[dict[str, Any]] | None = None) -> str:
    """Every contract, as part of a page."""
    blocks = []
    for floors in all_floors(written):
        inside = floors.package != PACKAGE
        blocks.append(f"### Inside `{floors.package}`" if inside else "### The package")
        blocks += [figure(floors.file, alt(floors)), table(floors)]
    return "\n\n".join([*blocks, "### Never imported", forbidden(written)]) + "\n"


def pictures() -> dict[str, str]:
    """Every picture by its path from ``book/``."""
    return {f"_generated/{f.file}": picture(f) for f in all_floors()}
