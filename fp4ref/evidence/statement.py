"""statement: the whole statement at a line of the emulator or of the CUDA kernel.

An event knows ``file:line``. A call that is written over several lines says nothing in
its first one, so the lines of the statement are joined. Comments are left out.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fp4ref.cuda_kernel.sources import kernel_root

_PACKAGE_PARENT = Path(__file__).parents[2]
_OPEN, _CLOSE = "([{", ")]}"
_MOST_LINES = 40
"""Of a CUDA statement; further away there is a mistake."""


@dataclass(frozen=True, slots=True)
class Line:
    """A statement: ``file:line`` and its text in one line."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}  {self.text}"


@cache
def line(place: str) -> Line:
    """Read the statement at ``file:line`` of the emulator or the kernel.

    Of a compound statement (``with``, ``for``, ``match``) the header is shown. The
    text is empty if there is no such file or line.
    """
    name, _, number = place.rpartition(":")
    path = _PACKAGE_PARENT / name
    if not name.endswith(".py"):
        found = list((kernel_root() / "kernel").rglob(Path(name).name))
        path = found[0] if found else path
    if not number or not path.is_file():
        return Line(place, "")
    find = _python_statements if path.suffix == ".py" else _cuda_statements
    return Line(place, find(path).get(int(number), ""))


@cache
def _python_statements(path: Path) -> dict[int, str]:
    """Return the text of the innermost statement at each line of a Python file."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    found: dict[int, str] = {}
    # A statement comes before those that it contains.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            last = max(_last_line(node), node.lineno)
            joined = _joined(lines[node.lineno - 1 : last])
            found |= dict.fromkeys(range(node.lineno, last + 1), joined)
    return found


def _last_line(node: ast.stmt) -> int:
    """Return the last line of a statement, or of the header of a compound one."""
    if isinstance(node, ast.Match):
        return node.cases[0].pattern.lineno - 1
    body: list[ast.stmt] | None = getattr(node, "body", None)
    return body[0].lineno - 1 if body else node.end_lineno or node.lineno


@cache
def _cuda_statements(path: Path) -> dict[int, str]:
    """Return the text of the statement at each line of a CUDA file."""
    text = path.read_text("utf-8")
    lines = [re.sub(r"//.*", "", each).strip() for each in text.splitlines()]
    return {
        number: _joined(_cuda_span(lines, number - 1))
        for number in range(1, len(lines) + 1)
        if lines[number - 1]
    }


def _cuda_span(lines: list[str], at: int) -> list[str]:
    """Return the lines of the statement that line `at` belongs to."""
    first = last = at
    while first > 0 and not _ends(lines[first - 1]):
        first -= 1
    while _depth(lines[first : last + 1]) > 0 or not _ends(lines[last]):
        if last + 1 == len(lines) or last - first == _MOST_LINES:
            break
        last += 1
        while first > 0 and _depth(lines[first : last + 1]) < 0:
            first -= 1
    return lines[first : last + 1]


def _ends(line: str) -> bool:
    """Whether a statement of CUDA ends with this line, or none is in it."""
    return not line or line.startswith("#") or line[-1] in ";{}:"


def _depth(lines: list[str]) -> int:
    """Count the brackets that the lines leave open, but not a block's at the end."""
    text = re.sub(r'"(?:\\.|[^"\\])*"', "", " ".join(lines))
    text = re.sub(r"\)\s*\{$", ")", text)
    return sum((c in _OPEN) - (c in _CLOSE) for c in text)


def _joined(lines: list[str]) -> str:
    """Join the lines of one statement, without the comma before a closing bracket."""
    joined = ""
    for part in filter(None, (each.strip() for each in lines)):
        if joined and part[0] in _CLOSE:
            joined = joined.removesuffix(",") + part
        elif not joined or joined[-1] in "([":
            joined += part
        else:
            joined += " " + part
    return joined
