"""four_bits: what four bits save, by the laboratory: bytes, bounds and a roofline.

One layer, 8,192 weights a row and as many rows, meets few or many tokens. Every time is
the laboratory's for that product; nothing is fitted here.
"""

from __future__ import annotations

from functools import cache
from math import log10
from typing import NamedTuple

import numpy as np
from drawing import WIDTH, figure, svg, text
from wording import row

import fp4ref
from fp4ref.lab.bounds import Band, band
from fp4ref.lab.table import DOCUMENTED, MODEL, MODEL_AND_MEASURED
from fp4ref.lab.workload import Workload, workloads
from fp4ref.parameters import Corner, published
from fp4ref.walk import load_problem

FILE = "four_bits_roofline.svg"
WEIGHTS = 8_192
"""Rows and columns of the layer's weights."""
TOKENS = (16, 128, 1_024, 8_192)
FORMATS = {"NVFP4": (4, True), "E4M3": (8, False), "BF16": (16, False)}
"""Bits of an element, and whether 16 of them share a scale of 8."""

COLOURS = {"NVFP4": "#9a3412", "E4M3": "#1d4ed8", "BF16": "#166534"}
SHAPES = {"NVFP4": "circle", "E4M3": "square", "BF16": "diamond"}

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, WIDTH - 20, 20, 330
_X, _Y = (1.0, 4.6), (1.6, 4.2)
"""Decades that the axes span: operations a byte, and 10^12 operations a second."""


class Point(NamedTuple):
    """One product on the roofline.

    Attributes
    ----------
    intensity
        Operations for each byte that memory must move.
    rate
        10^12 operations a second, at most.
    """

    format: str
    tokens: int
    intensity: float
    rate: float
    binding: str


def work(format: str, tokens: int) -> Workload:
    """Return the layer's product with so many tokens; D is BF16.

    Weights are A. The tile is as wide as the tokens, up to pairs of 256 x 256.
    """
    bits, scaled = FORMATS[format]
    wide = tokens > 128
    return Workload(
        name=f"{format}, {tokens:,} tokens",
        what="a layer",
        m=WEIGHTS,
        n=tokens,
        k=WEIGHTS,
        tile_m=256 if wide else 128,
        tile_n=256 if wide else tokens,
        cta_group=2 if wide else 1,
        element_bits=bits,
        block_scaled=scaled,
        d_bits=16,
        added_bits=0,
        remark="",
    )


@cache
def bands() -> dict[tuple[str, int], Band]:
    """Return the laboratory's band for every format and number of tokens."""
    return {
        (name, tokens): band(work(name, tokens), published())
        for tokens in TOKENS
        for name in FORMATS
    }


def points() -> list[Point]:
    """Return every product at the published figures."""
    found = []
    for (name, tokens), each in bands().items():
        bound, product = each.bounds[Corner.PUBLISHED], each.workload
        rate = product.flop / bound.shortest / 1e12
        intensity = product.flop / product.gmem_nbytes
        found.append(Point(name, tokens, intensity, rate, bound.binding))
    return found


def peaks() -> dict[str, float]:
    """Return what the tensor cores can do at the published figures, by format.

    The rate of a product of which only the MMAs take time, in 10^12 operations a
    second; tiles fill every SM.
    """
    machine, found = published().machine(Corner.PUBLISHED), {}
    for name in FORMATS:
        product = work(name, TOKENS[-1])
        busy = band(product, published()).bounds[Corner.PUBLISHED].seconds["MMA"]
        places = int(machine.sms) // product.cta_group
        waves = -(-product.tiles // places)
        found[name] = product.flop / busy / 1e12 * waves * places / product.tiles
    return found


def memory_rate() -> float:
    """Return what memory gives, in bytes a second."""
    return float(published().machine(Corner.PUBLISHED).hbm_bandwidth)


def pages() -> dict[str, str]:
    """Return the parts of the page and its picture, by path from ``book/``."""
    parts = {
        "bytes": page_bytes(),
        "bounds": page_bounds(),
        "roofline": page_roofline(),
        "records": page_records(),
        "price": page_price(),
    }
    named = {f"_generated/four_bits_{name}.md": part for name, part in parts.items()}
    return {**named, f"_generated/{FILE}": picture()}


def page_bytes() -> str:
    """Return the table of bytes."""
    lines = [
        f"**Bytes of the weights, {WEIGHTS:,} x {WEIGHTS:,}** ({MODEL})",
        "",
        row("format", "bits of an element", "with its scale", "MB", "of BF16"),
        row("---", "---:", "---:", "---:", "---:"),
    ]
    for name, (bits, scaled) in FORMATS.items():
        all_bits = bits + (8 / 16 if scaled else 0)
        mb = WEIGHTS**2 * all_bits / 8 / 1e6
        share = f"{all_bits / 16:.0%}"
        lines.append(row(name, str(bits), f"{all_bits:g}", f"{mb:,.1f}", share))
    return "\n".join([*lines, ""])


def page_price() -> str:
    """Return what four bits cost for a real layer, counted on its own numbers."""
    problem = load_problem()
    pair = problem.x[:128], problem.w[:128]
    rounded = [fp4ref.quantize(each, global_scale="auto") for each in pair]
    exact = pair[0].astype(np.float64) @ pair[1].astype(np.float64).T
    x, w = (each.dequantize(np.float64) for each in rounded)
    off = np.linalg.norm(x @ w.T - exact) / np.linalg.norm(exact)
    half = sum(each.astype(np.float16).nbytes for each in pair)
    packed = sum(each.packed().nbytes + each.scales.nbytes for each in rounded)
    return (
        f"**Measured here**, on {problem.title}: 128 rows of activations and of "
        f"weights have {half:,} bytes in float16 and {packed:,} in NVFP4, and their "
        f"product is {off:.1%} off.\n"
    )


def page_bounds() -> str:
    """Return the table of bands, and what it says of few and of many tokens."""
    heads = [f"{name}, us" for name in FORMATS]
    lines = [
        f"**Shortest times of the layer** ({MODEL})",
        "",
        "From the fast end of every published range to the slow end with its start; "
        "in brackets what binds at these two ends.",
        "",
        row("tokens", *heads, "BF16 / NVFP4"),
        row("---:", "---", "---", "---", "---:"),
    ]
    for tokens in TOKENS:
        cells = [_band(bands()[name, tokens]) for name in FORMATS]
        lines.append(row(f"{tokens:,}", *cells, _gain(tokens)))
    return "\n".join([*lines, ""])


def _band(found: Band) -> str:
    ends = dict.fromkeys(found.bounds[c].binding for c in (Corner.FAST, Corner.SLOW))
    return f"{1e6 * found.low:.1f} to {1e6 * found.high:.1f} ({', '.join(ends)})"


def gain(tokens: int, corner: Corner) -> float:
    """Return how many times less NVFP4 needs than BF16 at one end of the ranges."""
    short, long = (bands()[name, tokens].bounds[corner] for name in ("NVFP4", "BF16"))
    return long.shortest / short.shortest


def _gain(tokens: int) -> str:
    ends = sorted(gain(tokens, corner) for corner in (Corner.FAST, Corner.SLOW))
    low, high = (f"{end:.1f}" for end in ends)
    return low if low == high else f"{low} to {high}"


def page_records() -> str:
    """Return the rates that others measured, beside the laboratory's band."""
    lines = [
        f"**Rates that somebody measured** ({MODEL_AND_MEASURED})",
        "",
        "10^12 operations a second.",
        "",
        row("product", "measured", "band", "source"),
        row("---", "---:", "---", "---"),
    ]
    for each in workloads().values():
        if each.record_seconds is None:
            continue
        found = band(each, published())
        rates = [each.flop / s / 1e12 for s in (found.high, found.low)]
        span = f"{rates[0]:,.0f} to {rates[1]:,.0f}"
        rate = f"{each.flop / each.record_seconds / 1e12:,.0f}"
        lines.append(row(f"{each.name}: {each.what}", rate, span, each.record_source))
    return "\n".join([*lines, ""])


def page_roofline() -> str:
    """Return the picture and its text twin: the same points in a table."""
    lines = [
        figure(FILE, alt()),
        "",
        f"**The same in numbers** ({MODEL}; memory's rate is {DOCUMENTED})",
        "",
        row("format", "tokens", "operations a byte", "10^12 a second", "binds"),
        row("---", "---:", "---:", "---:", "---"),
    ]
    for each in points():
        cells = (f"{each.intensity:,.0f}", f"{each.rate:,.0f}", each.binding)
        lines.append(row(each.format, f"{each.tokens:,}", *cells))
    tops = ", ".join(f"{name} {rate:,.0f}" for name, rate in peaks().items())
    slope = f"Memory gives {memory_rate() / 1e12:.2f} x 10^12 bytes a second."
    return "\n".join([*lines, "", f"The flat roofs: {tops}. {slope}", ""])


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    ends = "; ".join(
        f"{name} from {of[0].intensity:,.0f} operations a byte and {of[0].rate:,.0f} "
        f"to {of[-1].intensity:,.0f} and {of[-1].rate:,.0f}"
        for name in FORMATS
        for of in [[each for each in points() if each.format == name]]
    )
    return (
        "A roofline: rate in 10^12 operations a second against operations for each "
        f"byte of memory, both as powers of ten. {ends}."
    )


def at(intensity: float, rate: float) -> tuple[float, float]:
    """Return where a point is drawn."""
    x = (log10(intensity) - _X[0]) / (_X[1] - _X[0])
    y = (log10(rate) - _Y[0]) / (_Y[1] - _Y[0])
    return _LEFT + x * (_RIGHT - _LEFT), _BOTTOM - y * (_BOTTOM - _TOP)


def picture() -> str:
    """Roofs as lines, products as signs, a sign and a colour for each format."""
    drawn = [*_axes()]
    for name, peak in peaks().items():
        drawn += _roof(name, peak)
    for each in points():
        x, y = at(each.intensity, each.rate)
        drawn.append(_sign(each.format, x, y, f"{each.format} {each.tokens} tokens"))
    x = _LEFT + 30.0
    for name in FORMATS:
        drawn.append(_sign(name, x, _BOTTOM + 62, name))
        drawn.append(text(x + 12, _BOTTOM + 67, name, anchor="start"))
        x += 100
    tokens = ", ".join(f"{each:,}" for each in TOKENS)
    drawn.append(text(x, _BOTTOM + 67, f"tokens: {tokens}", anchor="start"))
    return svg(_BOTTOM + 84, alt(), drawn)


def _axes() -> list[str]:
    drawn = []
    for power in range(1, 5):
        x, _ = at(10**power, 1)
        drawn.append(_line(x, _TOP, x, _BOTTOM, "#cbd5e1"))
        drawn.append(text(x, _BOTTOM + 18, f"{10**power:,}"))
    for power in range(2, 5):
        _, y = at(1, 10**power)
        drawn.append(_line(_LEFT, y, _RIGHT, y, "#cbd5e1"))
        drawn.append(text(_LEFT - 8, y + 5, f"{10**power:,}", anchor="end"))
    drawn.append(text(_LEFT, _TOP - 5, "10^12 operations a second", anchor="start"))
    words = "operations for each byte of memory"
    return [*drawn, text(_RIGHT, _BOTTOM + 38, words, anchor="end")]


def _roof(name: str, peak: float) -> list[str]:
    """The slope that memory gives, then the flat roof of a format."""
    knee = peak * 1e12 / memory_rate()
    start = max(10 ** _X[0], 10 ** _Y[0] * 1e12 / memory_rate())
    low = at(start, start * memory_rate() / 1e12)
    corner, end = at(knee, peak), at(10 ** _X[1], peak)
    lines = [_line(*low, *corner, "#475569"), _line(*corner, *end, COLOURS[name])]
    words = f"{name}: {peak:,.0f}"
    return [*lines, text(_RIGHT - 4, end[1] - 6, words, anchor="end")]


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="1.5"/>'


def _sign(name: str, x: float, y: float, words: str) -> str:
    """A sign of its own for each format, so that colour is not needed."""
    tip = f"<title>{words}</title>"
    fill = f'fill="{COLOURS[name]}"'
    if SHAPES[name] == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" {fill}>{tip}</circle>'
    turn = "45" if SHAPES[name] == "diamond" else "0"
    place = f'x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"'
    around = f'transform="rotate({turn} {x:.1f} {y:.1f})"'
    return f"<rect {place} {around} {fill}>{tip}</rect>"
