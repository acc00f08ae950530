"""wording: anchors, links and signs that several pages use."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fp4ref.frames import Frame, Verdict

VERDICTS = {
    Verdict.RIGHT: "✓ right",
    Verdict.NEARLY: "≈ nearly right",
    Verdict.WRONG: "✗ wrong",
}
"""A sign and a word, so that colour is not needed."""

FILTER = """```{raw} html
<div class="fp4-filter" data-filter></div>
```"""
"""Where ``static/book.js`` puts the field that picks entries; it folds them too."""


def anchor(text: str) -> str:
    """Return `text` as both engines write an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def frame_anchor(id: str) -> str:
    """Return ``frame-6-6-4`` for frame 6.6.4."""
    return f"frame-{anchor(id)}"


def frame_link(frame: Frame) -> str:
    """Return a link to an entry of the frame index."""
    return f"[{frame.id}](#{frame_anchor(frame.id)})"


def code_anchor(emulator: str) -> str:
    """Return the anchor of a function on the page of code."""
    return f"code-{anchor(emulator.removeprefix('fp4ref.'))}"


def errata_anchor(id: str) -> str:
    """Return ``errata-1-1b`` for entry 1.1b."""
    return f"errata-{anchor(id)}"


def index_entries(names: Iterable[str], *, main: bool = False) -> str:
    """Return a directive by which the search finds this place under each name.

    Parameters
    ----------
    main
        Show this place before others with the same name.
    """
    plain_names = [name for name in names if ":" not in name]  # it separates fields
    entries = ", ".join(f"!{name}" if main else name for name in plain_names)
    return f"```{{index}} {entries}\n```"


def row(*cells: str) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def stacked_table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table, headings first, whose cells a narrow page can stack."""
    lines = [":::{list-table}", ":header-rows: 1", ":class: stacked", ""]
    for first, *others in rows:
        lines += [f"* - {first}", *(f"  - {other}" for other in others)]
    return "\n".join([*lines, ":::"])


def plain(text: str) -> str:
    """Escape what Markdown would read as markup in prose of the package.

    Underscores, stars, brackets and angle brackets stay as they are written.
    """
    return re.sub(r"([\\*_<>\[\]`$|{}])", r"\\\1", text)
