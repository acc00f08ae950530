"""tiers: which road a tile of `matmul` takes, drawn, and what three products took."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from drawing import WIDTH, arrow_down, box, figure, svg, text
from wording import row

import fp4ref
from fp4ref.numerics.tier_report import Tier, TierReport

FILE = "tiers.svg"
M, N, K = 128, 128, 512
_QUESTIONS = (
    (["the largest sum of a slab", "fits 24 bits of its unit?"], Tier.FLOAT32),
    (
        ["times scales, in float64:", "can a lost bit change D?"],
        Tier.FLOAT64,
    ),
)
_LAST = (["an output that it can change,", "zero, tiny, Inf or NaN"], Tier.INTEGER)


class Shown(NamedTuple):
    """One product of the table."""

    name: str
    report: TierReport


def picture() -> str:
    """Two questions above each other, each with its tier on the right."""
    drawn = []
    y = 20
    for number, (lines, tier) in enumerate((*_QUESTIONS, _LAST)):
        drawn.append(box(20, y, 400, 52, lines, "machine"))
        answer = ("yes", "no", "")[number]
        drawn.append(text(450, y + 30, answer))
        drawn.append(box(490, y, 190, 52, [tier.value], "result"))
        if number < 2:
            drawn.append(arrow_down(220, y + 52, y + 76))
            drawn.append(text(250, y + 69, ("no", "yes")[number]))
        y += 76
    drawn.append(
        text(WIDTH / 2, y + 6, "every road gives the bits of the integer model")
    )
    return svg(y + 20, alt(), drawn)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    return (
        f"If the largest sum of a slab fits 24 bits: {Tier.FLOAT32.value}; if not, and "
        f"no lost bit can change D: {Tier.FLOAT64.value}; if it can: "
        f"{Tier.INTEGER.value}."
    )


@cache
def shown() -> tuple[Shown, ...]:
    """Multiply a pair of each kind."""
    rng = np.random.default_rng(0)

    def quantised(spread: float) -> fp4ref.BlockScaled:
        blocks = np.exp(spread * rng.standard_normal((M, K // 16))).repeat(16, axis=1)
        x = (rng.standard_normal((M, K)) * blocks).astype(np.float32)
        return fp4ref.quantize(x, global_scale="auto")

    def any_scale() -> fp4ref.BlockScaled:
        codes = rng.integers(0, 16, (M, K), np.uint8)
        return fp4ref.BlockScaled(codes, rng.integers(0, 0x7F, (M, K // 16), np.uint8))

    pairs = {
        "normal": (quantised(0), quantised(0)),
        "blocks over several binades": (quantised(1), quantised(1)),
        "any code, any finite scale": (any_scale(), any_scale()),
    }
    return tuple(
        Shown(name, fp4ref.matmul(a, b, report=True)[1])
        for name, (a, b) in pairs.items()
    )


def page() -> str:
    """The picture, the shares, and what the report says of one product."""
    lines = [figure(FILE, alt()), ""]
    lines += [row("data", *(tier.value for tier in Tier)), row("---", *["---:"] * 3)]
    for each in shown():
        shares = (f"{100 * share:.2f} %" for share in each.report.shares.values())
        lines.append(row(each.name, *shares))
    lines += ["", "What `print(report)` says of the last one:", "", "```text"]
    first, *rest = str(shown()[-1].report).splitlines()
    lines += [first, *(part for line in rest for part in line.split("; "))]
    return "\n".join([*lines, "```", ""])
