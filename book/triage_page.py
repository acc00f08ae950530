"""triage_page: where a wrong D differs, in a picture and in words; the mistakes."""

from __future__ import annotations

from functools import cache

import numpy as np
from drawing import WIDTH, figure, svg, text
from numpy.typing import NDArray
from wording import row

import fp4ref
from fp4ref.evidence.triage import MISTAKES, Triage

FILE = "triage.svg"
SIZE, K, BLOCK = 256, 256, 32
"""Rows and columns of D, its K, and the side of a square of the picture."""
_LEFT, _TOP, _CELL = 210, 40, 32


@cache
def example() -> tuple[Triage, NDArray[np.float64]]:
    """The report on a D of which one half of B was loaded twice, and its squares.

    Returns
    -------
    Triage
    float64 (8, 8)
        Which part of each square differs.
    """
    rng = np.random.default_rng(0)
    a, b = (fp4ref.quantize(rng.standard_normal((SIZE, K), np.float32)) for _ in "ab")
    good = fp4ref.oracle.expected(a, b).d
    taken = [n - 64 if n % 128 >= 64 else n for n in range(SIZE)]
    wrong = good[:, taken]
    squares = (wrong != good).reshape(SIZE // BLOCK, BLOCK, -1, BLOCK)
    return fp4ref.triage(a, b, wrong), squares.mean(axis=(1, 3))


def columns() -> list[str]:
    """Columns of each column of squares, in words, with what differs there."""
    _, part = example()
    return [
        f"{BLOCK * i} to {BLOCK * i + BLOCK - 1}: {mean:.0%}"
        for i, mean in enumerate(part.mean(axis=0))
    ]


def picture() -> str:
    """D as squares, red where it differs, with the tiles framed."""
    _, part = example()
    parts = [
        f'<rect x="{_LEFT + _CELL * j}" y="{_TOP + _CELL * i}" width="{_CELL}" '
        f'height="{_CELL}" fill="{"#b91c1c" if share > 0.5 else "#e5f4e3"}" '
        'stroke="#f8fafc"/>'
        for i, line in enumerate(part.tolist())
        for j, share in enumerate(line)
    ]
    side = 128 // BLOCK * _CELL
    parts += [
        f'<rect x="{_LEFT + side * j}" y="{_TOP + side * i}" width="{side}" '
        f'height="{side}" fill="none" stroke="#0f172a" stroke-width="2"/>'
        for i in range(SIZE // 128)
        for j in range(SIZE // 128)
    ]
    for n in range(0, SIZE, 64):
        parts.append(text(_LEFT + n // BLOCK * _CELL, _TOP - 10, str(n)))
    for m in range(0, SIZE, 128):
        middle = _TOP + m // BLOCK * _CELL + side / 2
        parts.append(text(_LEFT - 12, middle, f"rows {m} to {m + 127}", anchor="end"))
    end = _TOP + SIZE // BLOCK * _CELL + 24
    parts.append(text(WIDTH / 2, end, "columns; a frame is a tile of 128 x 128"))
    return svg(end + 16, alt(), parts)


def alt() -> str:
    """What the picture shows."""
    return (
        f"D of {SIZE} x {SIZE} in four tiles. In each, columns 64 to 127 differ and "
        "columns 0 to 63 are right, in every row."
    )


def page() -> str:
    """The picture, its text, the report and the list of mistakes."""
    found, _ = example()
    listed = "; ".join(columns())
    heads = ("mistake", "what it is", "where to look")
    lines = [
        figure(FILE, alt()),
        "",
        f"Part of each 32 columns that differs, all rows: {listed}.",
        "",
        "```text",
        found.report(),
        "```",
        "",
        "## The mistakes it knows",
        "",
        row(*heads),
        row(*["---"] * len(heads)),
        *(row(each.name, each.what, each.look) for each in MISTAKES),
    ]
    return "\n".join(lines) + "\n"
