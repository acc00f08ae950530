"""lab_page: the laboratory's tables, and the banks that a store meets, drawn."""

from __future__ import annotations

from functools import cache

from drawing import figure, svg, text
from evidence_links import linked
from wording import row

from fp4ref.lab.banks import BANKS
from fp4ref.lab.report import by_bank, tables
from fp4ref.lab.request import Request
from fp4ref.lab.staging import STAGINGS
from fp4ref.lab.table import Table

FILE = "lab_banks.svg"
_LEFT, _CELL, _ROW = 150, 16, 22
_FILL = {0: "#ffffff", 1: "#dbeafe"}
_CONFLICT = "#fecaca"
_RIGHT = ("SMEM", "TMEM", "L2", "GMEM", "bytes", "tiles", "stages", "together")


def picture() -> str:
    """One field for each staging: a row a phase, a column a bank."""
    drawn, y = [], 24
    for staging in STAGINGS:
        access = staging.worst_write
        title = f"{staging.name}: {access.passes} passes"
        drawn.append(text(_LEFT, y, title, bold=True, anchor="start"))
        y += 8
        for phase in access.phases:
            lanes = f"lanes {phase.lanes[0]}-{phase.lanes[-1]}"
            drawn.append(text(_LEFT - 10, y + 16, lanes, anchor="end"))
            for bank, words in enumerate(phase.words):
                drawn.append(_cell(_LEFT + _CELL * bank, y, words))
            y += _ROW
        y += 30
    axis = range(0, BANKS, 4)
    drawn += [text(_LEFT + _CELL * (b + 0.5), y - 8, str(b)) for b in axis]
    drawn.append(text(_LEFT - 10, y - 8, "bank", anchor="end"))
    return svg(y + 6, alt(), drawn)


def _cell(x: int, y: int, words: int) -> str:
    fill = _FILL.get(words, _CONFLICT)
    cell = (
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_ROW}" fill="{fill}" '
        'stroke="#94a3b8"/>'
    )
    if not words:
        return cell
    return cell + text(x + _CELL / 2, y + 16, str(words), bold=words > 1)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [f"{s.name}: {s.worst_write.passes} passes" for s in STAGINGS]
    return (
        "How many words each bank gives to each phase of the worst store, for "
        f"{len(STAGINGS)} layouts. {'; '.join(each)}."
    )


def text_twin() -> str:
    """The picture in signs."""
    blocks = [f"{s.name}\n{by_bank(s.worst_write)}" for s in STAGINGS]
    return "\n".join(["```text", "\n\n".join(blocks), "```", ""])


def banks() -> str:
    """The picture, its twin, and the tables of passes and bytes."""
    found = _tables()
    parts = [
        figure(FILE, alt()),
        "",
        "The same in signs, of each layout the worst of 16 stores; a dot is no word:",
        "",
    ]
    parts += [text_twin(), *written(found["staging"]), *written(found["smem"])]
    return "\n".join([*parts, *written(found["kernel_banks"])])


def bounds() -> str:
    """The tables of bytes, intervals and times."""
    found = _tables()
    names = ("bounds", "resources", "bytes", "intervals")
    return "\n".join(line for name in names for line in written(found[name]))


def clock() -> str:
    """The tables of the machine's clock."""
    found = _tables()
    names = "sizes", "shares", "stalls", "path", "machines"
    tables = (found["clock"], *(found[f"clock_{name}"] for name in names))
    return "\n".join(line for table in tables for line in written(table))


def compiled() -> str:
    """The tables of what was compiled; the loop itself is for `fp4ref lab`."""
    found = _tables()
    names = "sass_roles", "sass_kinds", "mma_ten_steps", "sass_unroll", "mma_steps"
    return "\n".join(line for name in names for line in written(found[name]))


def figures() -> str:
    """Every published figure with its source."""
    found = _tables()["parameters"]
    lines = [row("parameter", "value (range)", "card, trust", "source, remark")]
    lines.append(row(*["---"] * 4))
    for cells, each in zip(found.cells, found.rows, strict=True):
        name, value, unit, trust = cells
        source = f"{linked(each['source'])}. {each['remark']}"
        lines.append(row(f"`{name}`", f"{value} {unit}", trust, source))
    return "\n".join([f"*{found.kind}.* {found.note}", "", *lines, ""])


@cache
def _tables() -> dict[str, Table]:
    return {table.id: table for table in tables(Request())}


def written(table: Table) -> list[str]:
    """Return a table as lines of Markdown."""
    rule = ["---:" if name in _RIGHT else "---" for name in table.headings]
    lines = [f"**{table.title}** ({table.kind})", "", table.note, ""]
    lines += [row(*table.headings), row(*rule), *(row(*c) for c in table.cells)]
    return [*lines, ""]
