"""removals: the page of what notices that an operation is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wording import anchor, row

from fp4ref.evidence.removals import REASONS, Outcome, Row, recorded

FORMS = {"emulator": "emulator", "ptx": "compiled text"}


def page() -> str:
    """Return the counts, the reasons, and the table of all operations."""
    rows = list(recorded().values())
    blocks = [
        _counts(rows),
        "## Not missed, and why",
        *_reasons(),
        "## All",
        _all(rows),
    ]
    return "\n\n".join(blocks) + "\n"


def _counts(rows: Sequence[Row]) -> str:
    lines = [row("", "removals", "caught", "not missed"), row("---", *["---:"] * 3)]
    for form, words in FORMS.items():
        mine = [each for each in rows if each.removal.form == form]
        left = sum(each.survives for each in mine)
        lines.append(row(words, str(len(mine)), str(len(mine) - left), str(left)))
    return "\n".join(lines)


def _reasons() -> list[str]:
    reasons = {reason.name: reason for reason in REASONS.values()}
    blocks = []
    for reason in reasons.values():
        sites = "\n".join(f"- `{site}`" for site in reason.sites)
        blocks += [f"(reason-{anchor(reason.name)})=\n{sites}", reason.text]
    return blocks


def _all(rows: Sequence[Row]) -> str:
    """Return a row for each operation, what noticed it in both forms."""
    names = dict.fromkeys(each.removal.name for each in rows)
    lines = [row("operation", *FORMS.values()), row("---", "---", "---")]
    for name in names:
        mine = [each for each in rows if each.removal.name == name]
        cells = [_cell([r for r in mine if r.removal.form == form]) for form in FORMS]
        lines.append(row(f"`{name}`", *cells))
    return "\n".join(lines)


def _cell(rows: Sequence[Row]) -> str:
    """Return what noticed, once for all copies that came to the same."""
    counts = Counter(
        (each.removal.variant, _words(each.ptx, each.removal.name), _shipped(each))
        for each in rows
    )
    parts = []
    for (variant, words, shipped), count in counts.items():
        many = f" ({count} instructions)" if count > 1 else ""
        what = f"{variant}: {words}" if variant != "left out" else words
        parts.append(what + many + shipped)
    return "; ".join(parts) or "no such operation"


def _words(outcome: Outcome, name: str) -> str:
    """Return an outcome for a table."""
    if outcome.by == "nothing":
        return f"[not missed](#reason-{anchor(REASONS[name].name)})"
    if outcome.by == "not reached":
        return f"[not reached](#reason-{anchor(REASONS[name].name)})"
    what = outcome.what.removeprefix("RaceFault: ")
    if outcome.by == "review":
        return f"[review](#reason-{anchor(REASONS[name].name)}): {what}"
    return what if outcome.by == "fault" else f"{outcome.by}: {what}"


def _shipped(each: Row) -> str:
    """Return what the other ordering says, where it is something else."""
    other = each.shipped
    if other is None or (other.by, other.what) == (each.ptx.by, each.ptx.what):
        return ""
    if other.by == "fault":
        return f"; shipped: {_words(other, each.removal.name)}"
    return "; shipped: an advisory" if other.by == "advisory" else "; shipped: passes"
