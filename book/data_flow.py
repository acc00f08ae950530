"""data_flow: how A, B, the scales and D move, drawn for notebook 00.

``python book/data_flow.py`` writes ``notebooks/data_flow.svg``. The picture has a
ground of its own, light or dark as the reader's system wants, and fits a phone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

PATH = Path(__file__).parents[1] / "notebooks" / "data_flow.svg"
WIDTH, HEIGHT = 360, 424

MEMORIES = {
    "global memory": (8, 62, 344),
    "shared memory": (112, 62, 344),
    "tensor memory": (248, 62, 230),
    "registers": (352, 62, 344),
}
"""Top, height and width of each."""

COLUMNS = {"A, B": 18, "scales": 130, "D": 242}
"""Left edge of each operand's boxes."""

MMA = (18, 197)
"""Left and top of the box of the MMA, which stands between two memories."""


class Move(NamedTuple):
    """What one operation brings from one memory to another.

    Attributes
    ----------
    operation, label
        The PTX name, as far as all forms share it, and the name in the picture.
    source, target
        Memories.
    operand
        What is read.
    path
        Of the arrow, up to its head.
    label_at
        Left end of the label; None where a box has the name.
    """

    operation: str
    label: str
    operand: str
    source: str
    target: str
    path: str
    label_at: tuple[int, int] | None


FLOW = (
    Move("cp.async.bulk.tensor", "TMA", "A, B", "global memory", "shared memory",
         "M68 70V112", (75, 96)),
    Move("cp.async.bulk.tensor", "TMA", "scales", "global memory", "shared memory",
         "M180 70V112", (187, 96)),
    Move("tcgen05.cp", "tcgen05.cp", "scales", "shared memory", "tensor memory",
         "M180 174V248", (187, 216)),
    Move("tcgen05.mma", "tcgen05.mma", "A, B", "shared memory", "tensor memory",
         "M68 174V197", None),
    Move("tcgen05.mma", "tcgen05.mma", "scales", "tensor memory", "tensor memory",
         "M150 248V211H118", None),
    Move("tcgen05.ld", "tcgen05.ld", "D", "tensor memory", "registers",
         "M68 310V352", (75, 336)),
    Move("st.shared", "st.shared", "D", "registers", "shared memory",
         "M292 352V174", (216, 336)),
    Move("cp.async.bulk.tensor", "TMA", "D", "shared memory", "global memory",
         "M292 112V70", (299, 96)),
)  # fmt: skip

BOXES = (
    ("global memory", ("A, B", "scales", "D")),
    ("shared memory", ("A, B", "scales", "D")),
    ("tensor memory", ("D", "scales")),
    ("registers", ("D",)),
)
"""What lies where; D is summed and read in the first column."""

STYLE = """
text{font:13px system-ui,sans-serif;fill:#0f172a}.name{font-weight:600}.op{font:12.5px \
ui-monospace,monospace}.ground{fill:#f8fafc}.memory{fill:#dbeafe;stroke:#475569}\
.box{fill:#fff;stroke:#475569}.unit{fill:#fde3d3;stroke:#9a3412}\
.arrow{fill:none;stroke:#334155;stroke-width:1.6}.head{fill:#334155}
@media (prefers-color-scheme:dark){text{fill:#e8ecf1}.ground{fill:#171b21}\
.memory{fill:#22344a;stroke:#8b98a8}.box{fill:#171b21;stroke:#8b98a8}\
.unit{fill:#5a321d;stroke:#f2b38f}.arrow{stroke:#c6cfda}.head{fill:#c6cfda}}
"""


def description() -> str:
    """Return the picture in words: one clause for each move."""
    clauses = [
        f"{move.label} {'reads' if move.operation == 'tcgen05.mma' else 'moves'} "
        f"{move.operand} from {move.source}"
        + (f" to {move.target}" if move.operation != "tcgen05.mma" else "")
        for move in FLOW
    ]
    return f"Data flow: {', '.join(clauses)}; tcgen05.mma sums D in tensor memory."


def svg() -> str:
    """Return the picture."""
    words = escape(description())
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="t d">'
    )
    parts = [head, '<title id="t">How A, B, the scales and D move</title>']
    parts += [f'<desc id="d">{words}</desc>', f"<style>{STYLE}</style>"]
    parts.append(_rect("ground", 0, 0, WIDTH, HEIGHT))
    for memory, (top, height, width) in MEMORIES.items():
        parts.append(_rect("memory", 8, top, width, height))
        parts.append(_text("name", 18, top + 17, memory))
    for memory, names in BOXES:
        top = MEMORIES[memory][0] + 24
        for name in names:
            summed = name == "D" and memory in ("tensor memory", "registers")
            left = COLUMNS["A, B" if summed else name]
            width = 324 if memory == "registers" else 100
            parts.append(_rect("box", left, top, width, 30))
            parts.append(_text("mid", left + width // 2, top + 20, name))
    left, top = MMA
    parts.append(_rect("unit", left, top, 100, 28))
    parts.append(_text("op mid", left + 50, top + 18, "tcgen05.mma"))
    parts += [_arrow("M68 225V248"), *(_arrow(move.path) for move in FLOW)]
    for move in FLOW:
        if move.label_at:
            parts.append(_text("op", *move.label_at, move.label))
    return "\n".join([*parts, "</svg>\n"])


def _rect(kind: str, x: int, y: int, width: int, height: int) -> str:
    size = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect class="{kind}" {size} rx="6"/>'


def _text(kind: str, x: int, y: int, words: str) -> str:
    anchor = ' text-anchor="middle"' if "mid" in kind.split() else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{anchor}>{escape(words)}</text>'


def _arrow(path: str) -> str:
    """Draw a path of M, V and H, and a head at its end."""
    numbers = path.replace("M", "").replace("V", " V").replace("H", " H").split()
    x, y, way = int(numbers[0]), int(numbers[1]), (0, 1)
    for move in numbers[2:]:
        to = int(move[1:])
        if move[0] == "V":
            way, y = (0, 1 if to > y else -1), to
        else:
            way, x = (1 if to > x else -1, 0), to
    dx, dy = way
    back = [(x - 8 * dx + 4 * s * dy, y - 8 * dy + 4 * s * dx) for s in (1, -1)]
    corners = " ".join(f"{a},{b}" for a, b in [(x, y), *back])
    line = f'<path class="arrow" d="{path}"/>'
    return f'{line}<polygon class="head" points="{corners}"/>'


if __name__ == "__main__":
    PATH.write_text(svg(), "utf-8")
