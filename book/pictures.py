"""pictures: the two drawings of the architecture page, each with its text twin.

Picture and text come from the same data. Colours are fixed on a light ground, so that a
picture is readable in a dark page too.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

from wording import plain, row

ROOT = Path(__file__).parents[1]

EXECUTIONS = (
    ("emulator", "fp4ref/gemm", "the kernel as Python warps", "fp4ref/hardware"),
    ("ptx", "compiled PTX", "ours, CUTLASS's, Triton's", "fp4ref/hardware"),
    ("device", "kernel/ on a GPU", "through cuda-python", "the GPU"),
)
"""Name, what runs, in words, and the machine under it."""

MACHINE = "fp4ref/hardware: TMA, mbarriers, TMEM, tcgen05, CLC, several SMs"
TRACE = "fp4ref/trace: what every unit did, and memory at any step"
COMPARE = "fp4ref/compare: the first byte that differs, in matrix coordinates"

_FONT = 'font-family="system-ui, sans-serif"'
_BOX = {"plain": "#ffffff", "machine": "#dbeafe", "result": "#e5f4e3"}


def executions_svg() -> str:
    """Three columns that end in one trace and one comparison."""
    parts = []
    for i, (name, runs, words, _) in enumerate(EXECUTIONS):
        x = 10 + 230 * i
        parts.append(_box(x, 10, 220, 74, [f"backend={name}", runs, words]))
        parts.append(_arrow(x + 110, 84, 108))
    parts.append(_box(10, 108, 450, 50, _two_lines(MACHINE), "machine"))
    parts.append(_box(470, 108, 220, 50, ["the GPU", "with tcgen05"], "machine"))
    parts += [_arrow(x, 158, 182) for x in (235, 580)]
    parts.append(_box(10, 182, 680, 44, _two_lines(TRACE), "result"))
    parts.append(_arrow(350, 226, 250))
    parts.append(_box(10, 250, 680, 44, _two_lines(COMPARE), "result"))
    return _svg(700, 304, executions_alt(), parts)


def executions_alt() -> str:
    """One sentence for readers who do not see the picture."""
    names = [f"{name} ({runs})" for name, runs, _, _ in EXECUTIONS]
    return (
        f"Three executions of one kernel, {', '.join(names)}: the first two run on "
        "fp4ref/hardware, the third on a GPU. Each leaves a trace, and any two traces "
        "can be compared."
    )


def executions_text() -> str:
    """The picture and its text twin, as part of a page."""
    lines = [row("execution", "what runs", "on"), row("---", "---", "---")]
    for name, runs, words, machine in EXECUTIONS:
        lines.append(row(f'`backend="{name}"`', f"{runs}: {words}", machine))
    after = [f"- {plain(text)}" for text in (MACHINE, TRACE, COMPARE)]
    picture = _figure("executions.svg", executions_alt())
    return "\n".join([picture, "", *lines, "", *after]) + "\n"


def layers() -> list[list[tuple[str, str]]]:
    """Layers of the package from the top, each with its modules and their purpose.

    The order is the contract in pyproject.toml that the tests check.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    declared = next(c for c in contracts if c["name"] == "imports point down")["layers"]
    return [[_purpose(name.strip()) for name in layer.split("|")] for layer in declared]


def _purpose(module: str) -> tuple[str, str]:
    """Name of a module, and the first line of its docstring."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    first = docstring.partition("\n")[0]
    return module.removeprefix("fp4ref."), first.partition(": ")[2]


def layers_svg() -> str:
    """One band for each layer; imports point down."""
    parts, y = [], 10
    for layer in layers():
        width = (680 - 10 * (len(layer) - 1)) // len(layer)
        for i, (name, _) in enumerate(layer):
            fill = "machine" if name in ("hardware", "gemm", "ptx") else "plain"
            parts.append(_box(10 + i * (width + 10), y, width, 30, [name], fill))
        y += 38
    return _svg(700, y + 2, layers_alt(), parts)


def layers_alt() -> str:
    """One sentence for readers who do not see the picture."""
    bands = [", ".join(name for name, _ in layer) for layer in layers()]
    return f"Layers of the package from top to bottom: {'; '.join(bands)}."


def layers_text() -> str:
    """The picture and its text twin, as part of a page."""
    lines = [row("layer", "module", "what it is"), row("---:", "---", "---")]
    for i, layer in enumerate(layers(), 1):
        for name, purpose in layer:
            lines.append(row(str(i), f"`{name}`", purpose.replace("``", "`")))
    picture = _figure("layers.svg", layers_alt())
    return "\n".join([picture, "", *lines]) + "\n"


def _figure(name: str, alt: str) -> str:
    lines = [f":::{{image}} /_generated/{name}", f":alt: {alt}", ":width: 700px", ":::"]
    return "\n".join(lines)


def _svg(width: int, height: int, alt: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#f8fafc"/>'
    return "\n".join(
        [head, f"<title>{escape(alt)}</title>", ground, *parts, "</svg>\n"]
    )


def _two_lines(text: str) -> list[str]:
    name, _, words = text.partition(": ")
    return [name, words]


def _box(
    x: int, y: int, width: int, height: int, lines: list[str], fill: str = "plain"
) -> str:
    middle = x + width / 2
    first = y + height / 2 - 9 * (len(lines) - 1) + 5
    texts = [
        f'<text x="{middle:g}" y="{first + 18 * i:g}" text-anchor="middle" {_FONT} '
        f'font-size="14" font-weight="{600 if i == 0 else 400}" fill="#0f172a">'
        f"{escape(line)}</text>"
        for i, line in enumerate(lines)
    ]
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
        f'fill="{_BOX[fill]}" stroke="#475569"/>'
    )
    return "\n".join([frame, *texts])


def _arrow(x: int, top: int, bottom: int) -> str:
    return (
        f'<path d="M{x} {top}V{bottom - 1}M{x - 5} {bottom - 8}L{x} {bottom - 1}'
        f'L{x + 5} {bottom - 8}" fill="none" stroke="#475569" stroke-width="1.5"/>'
    )
