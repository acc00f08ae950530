"""evidence_links: the one place where the name of a source becomes a link.

A source is plain text of the package, such as ``PTX ISA: tcgen05.cp``, a file of
CUTLASS or an arXiv number. Its words stay; what is known of them becomes a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from wording import plain

from fp4ref.evidence.addresses import KNOWN, cutlass, ptx
from fp4ref.frames import FRAMES
from fp4ref.lessons.errata import ERRATA

_FILE = r"(?P<file>(?:\w+/)*\w+\.(?:hpp|h|inl))(?::(?P<line>\d+))?\b"
_PAPER = r"arXiv[ :](?P<paper>\d{4}\.\d{5})"
_ISSUE = r"CUTLASS issue (?P<issue>\d+)"
_TEXTS = "|".join((_FILE, _PAPER, _ISSUE))


def linked(text: str, escape: Callable[[str], str] = plain) -> str:
    """Return `text` as Markdown, with a link on each source that is known.

    Parameters
    ----------
    escape
        What is done with the words; the identity if `text` is Markdown already.
    """
    pieces = re.split("(; )", text)
    return "".join(_piece(piece, escape) for piece in pieces)


def linked_path(path: str) -> str:
    """Return a path of CUTLASS as code that is a link."""
    return f"[`{path}`]({cutlass(path)})"


@cache
def files() -> tuple[str, ...]:
    """Every file of CUTLASS that a source names, by its whole path."""
    rows = [*FRAMES.values(), *ERRATA.values()]
    texts = [row.source for row in rows] + [frame.cutlass for frame in FRAMES.values()]
    named = {p for text in texts for p in re.findall(r"include/[\w/.]+\.\w+", text)}
    return tuple(sorted(named | set(KNOWN["cutlass"]["files"])))


def _piece(text: str, escape: Callable[[str], str]) -> str:
    """Link what one of the parts between semicolons names."""
    pattern = _pattern(text.startswith("PTX"))
    done, at = [], 0
    for found in pattern.finditer(text):
        address = _address(found)
        if address:
            done.append(escape(text[at : found.start()]))
            done.append(f"[{escape(found[0])}]({address})")
            at = found.end()
    return "".join([*done, escape(text[at:])])


@cache
def _pattern(is_ptx: bool) -> re.Pattern[str]:
    """Everything that may be a link; sections only where PTX is the source."""
    projects = rf"(?P<project>{_any_of(KNOWN['projects'])})\b"
    sections = rf"(?<=[,:] )(?P<section>{_any_of(KNOWN['ptx']['sections'])})(?!\.?\w)"
    return re.compile("|".join([_TEXTS, projects, *([sections] if is_ptx else [])]))


def _any_of(names: dict[str, str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _address(found: re.Match[str]) -> str:
    """Address of what was found; empty if it is not known."""
    groups = found.groupdict()
    if groups.get("section"):
        return ptx(groups["section"])
    if groups["paper"]:
        return f"https://arxiv.org/abs/{groups['paper']}"
    if groups["issue"]:
        return f"{KNOWN['cutlass']['address']}/issues/{groups['issue']}"
    if groups["project"]:
        return str(KNOWN["projects"][groups["project"]])
    name = groups["file"]
    paths = [path for path in files() if path == name or path.endswith(f"/{name}")]
    return cutlass(paths[0], groups["line"]) if len(paths) == 1 else ""
