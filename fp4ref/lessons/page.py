"""page: text and HTML of what a cell shows, readable in light and dark themes.

The HTML carries its own styles. Colours are JupyterLab's where its variables exist,
and follow the page's colour scheme elsewhere; code has a surface of its own, so that
text and ground always belong together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from pygments import lex
from pygments.lexers import get_lexer_by_name

_FONT = "var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"


def _colour(variable: str, light: str, dark: str) -> str:
    return f"var(--jp-{variable},light-dark({light},{dark}))"


_SURFACE = (
    f"background:{_colour('cell-editor-background', '#f6f8fa', '#161b22')};"
    f"color:{_colour('mirror-editor-variable-color', '#1f2328', '#e6edf3')}"
)

_TOKENS = {
    "Token.Comment.Preproc": _colour("mirror-editor-meta-color", "#8a3800", "#ffa657"),
    "Token.Comment": _colour("mirror-editor-comment-color", "#57606a", "#9ea7b3"),
    "Token.Keyword": _colour("mirror-editor-keyword-color", "#a0111f", "#ff7b72"),
    "Token.Operator.Word": _colour("mirror-editor-keyword-color", "#a0111f", "#ff7b72"),
    "Token.Literal.Number": _colour("mirror-editor-number-color", "#0349b4", "#79c0ff"),
    "Token.Literal.String": _colour("mirror-editor-string-color", "#0a3069", "#a5d6ff"),
    "Token.Name.Function": _colour("mirror-editor-def-color", "#622cbc", "#d2a8ff"),
    "Token.Name.Class": _colour("mirror-editor-def-color", "#622cbc", "#d2a8ff"),
    "Token.Name.Decorator": _colour("mirror-editor-meta-color", "#8a3800", "#ffa657"),
    "Token.Name.Builtin": _colour("mirror-editor-builtin-color", "#0349b4", "#79c0ff"),
}
"""Colours of the kinds of token, each 4.5:1 or more against its surface."""

PASSED = _colour("success-color1", "#1a7f37", "#3fb950")
FAILED = _colour("warn-color1", "#9a6700", "#d29922")
PLAIN = _colour("border-color1", "#8c959f", "#6e7681")


@dataclass(frozen=True)
class Page:
    """What a cell shows: HTML where there is a page, text elsewhere."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def inline(text: str) -> str:
    """Return HTML of a sentence; text between backquotes becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def note(label: str, lines: list[str], colour: str = PLAIN, role: str = "note") -> str:
    """Return HTML of a short message; its label says in words what the edge colours."""
    first, *rest = lines or [""]
    paragraphs = [f"<strong>{inline(label)}</strong> {inline(first)}"]
    paragraphs += [inline(line) for line in rest]
    body = "".join(f'<p style="margin:0.2em 0">{each}</p>' for each in paragraphs)
    style = f"border-left:4px solid {colour};padding:0.1em 0.8em;margin:0.3em 0"
    return f'<div role="{role}" style="{style}">{body}</div>'


def code(caption: str, text: str, language: str) -> str:
    """Return HTML of highlighted source under its caption."""
    name = escape(caption, quote=True)
    pre = f"{_SURFACE};font-family:{_FONT};font-size:0.85em;line-height:1.45;"
    pre += "overflow-x:auto;padding:0.6em 0.8em;margin:0;white-space:pre"
    return (
        '<figure style="margin:0.3em 0;min-width:0">'
        '<figcaption style="font-size:0.85em;text-align:left">'
        f"<code>{name}</code></figcaption>"
        f'<pre role="region" aria-label="{name}" tabindex="0" style="{pre}">'
        f"{highlight(text, language)}</pre></figure>"
    )


def columns(*parts: str) -> str:
    """Return HTML of parts beside each other, below each other on a narrow page."""
    grid = "display:grid;gap:0.8em;"
    grid += "grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))"
    return f'<div style="{grid}">{"".join(parts)}</div>'


def table(caption: str, rows: dict[str, str]) -> str:
    """Return HTML of a small table, a heading at the left of each row."""
    cell = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0"
    text_cell = f"{cell};overflow-wrap:anywhere"
    body = "".join(
        f'<tr><th scope="row" style="{cell}">{inline(name)}</th>'
        f'<td style="{text_cell}">{inline(text)}</td></tr>'
        for name, text in rows.items()
    )
    bold = "text-align:left;font-weight:bold"
    return (
        f'<table><caption style="{bold}">{inline(caption)}</caption>'
        f"<tbody>{body}</tbody></table>"
    )


def highlight(text: str, language: str) -> str:
    """Return HTML of source in colours."""
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    parts = []
    for token, value in lex(text, lexer):
        words = escape(value, quote=False)
        colour = next((c for name, c in _TOKENS.items() if _is(token, name)), None)
        if colour is None or not value.strip():
            parts.append(words)
        else:
            parts.append(f'<span style="color:{colour}">{words}</span>')
    return "".join(parts)


def _is(token: object, name: str) -> bool:
    return f"{token}.".startswith(f"{name}.")
