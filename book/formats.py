"""formats: bytes of elements, and what each format makes of a k-tile, by the plan."""

from __future__ import annotations

from typing import NamedTuple

from drawing import WIDTH, box, figure, svg, text
from wording import row

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.numerics.elements import element
from fp4ref.numerics.kinds import KINDS, OPERAND_FORMATS, kind_of

FILE = "formats.svg"

DRAWN = (
    *(("nvfp4", "nvfp4"), ("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp6_e2m3", "mxfp6_e2m3")),
    *(("mxfp4", "mxfp8_e4m3"), ("bf16", "bf16")),
)
"""Formats of A, each beside one of B."""

CHUNK_NBYTES = 16

_LEFT, _BYTE, _HIGH, _STEP = 176, 32, 34, 58

MIXED = (("mxfp8_e4m3", "mxfp4"), ("e5m2", "e2m3"))
"""Two of the pairs of formats that go together."""

HEADS = (
    *("A", "B", "MMA", "its K", "elements for a scale", "tile K"),
    *("type of A for TMA", "bytes of a k-tile", "that are copied", "K in steps of"),
)


class Chunk(NamedTuple):
    """What 16 bytes of a row of A in shared memory hold.

    Attributes
    ----------
    count, bits
        Elements, and the bits of one.
    nbytes
        Bytes that hold them; the rest is padding.
    scale
        Elements that share one; 0 without scales.
    """

    a_format: str
    b_format: str
    kind: str
    count: int
    bits: int
    nbytes: int
    scale: int


def chunk(a_format: str, b_format: str) -> Chunk:
    """Return the chunk of A beside a format of B."""
    p = plan(GemmConfig.nvfp4(operand_format=a_format, b_format=b_format))
    count = 8 * CHUNK_NBYTES // KINDS[p.kind].container_bits
    bits = element(a_format).bits
    nbytes = count * bits // 8
    return Chunk(a_format, b_format, p.kind, count, bits, nbytes, p.sf_vec_size)


def picture() -> str:
    """A row of 16 bytes for each format; a box for each element."""
    heading = "16 bytes of a row of A in shared memory"
    drawn = [text(_LEFT + 8 * _BYTE, 22, heading, bold=True)]
    for i, each in enumerate(chunk(*pair) for pair in DRAWN):
        y = 36 + i * _STEP
        drawn.append(text(10, y + 14, each.a_format, bold=True, anchor="start"))
        words = f"{each.count} of {each.bits} bits"
        drawn.append(text(10, y + 32, words, anchor="start"))
        width = each.bits * _BYTE // 8
        for number in range(each.count):
            label = [str(number)] if each.bits > 4 else []
            x = _LEFT + number * width
            drawn.append(box(x, y, width, _HIGH, label, "machine"))
        if left := CHUNK_NBYTES - each.nbytes:
            x = _LEFT + each.nbytes * _BYTE
            drawn.append(box(x, y, left * _BYTE, _HIGH, ["padding"]))
    y = 36 + len(DRAWN) * _STEP
    foot = "one MMA reads 32 such bytes of every row; mxfp4 is shown beside an 8-bit B"
    drawn.append(text(WIDTH / 2, y + 8, foot))
    return svg(y + 24, alt(), drawn)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [
        f"{c.a_format} {c.count} elements in {c.nbytes} bytes"
        for c in (chunk(*pair) for pair in DRAWN)
    ]
    return f"16 bytes of a row of A in shared memory: {', '.join(each)}."


def chunks() -> str:
    """The text twin of the picture."""
    heads = ("A", "beside B", "MMA", "bits", "elements in 16 bytes")
    heads += ("bytes that hold them", "a scale for")
    lines = [row(*heads), row(*["---"] * len(heads))]
    for c in (chunk(*pair) for pair in DRAWN):
        cells = (f"`{c.a_format}`", f"`{c.b_format}`", f"`{c.kind}`", str(c.bits))
        cells += (str(c.count), str(c.nbytes), str(c.scale or "none"))
        lines.append(row(*cells))
    return "\n".join(lines)


def plans() -> list[Plan]:
    """Plans of every format by itself, and of the mixed ones."""
    alone = [GemmConfig.nvfp4(operand_format=each) for each in OPERAND_FORMATS]
    mixed = [GemmConfig.nvfp4(operand_format=a, b_format=b) for a, b in MIXED]
    return [plan(config) for config in (*alone, *mixed)]


def cells(p: Plan) -> tuple[str, ...]:
    """A row of the table."""
    return (
        *(f"`{p.a_format}`", f"`{p.b_format}`", f"`{p.kind}`", str(p.mma_k)),
        *(str(p.sf_vec_size or "none"), str(p.tile_k), f"`{p.a_type.name}`"),
        *(f"{p.k_tile_nbytes:,}", f"{p.k_tile_tx_bytes:,}", str(p.k_multiple)),
    )


def together(format: str) -> str:
    """Formats of B that go with a format of A."""
    return ", ".join(f"`{each}`" for each in OPERAND_FORMATS if kind_of(format, each))


def page() -> str:
    """The picture with its twin, and both tables."""
    lines = [figure(FILE, alt()), "", chunks(), ""]
    lines += [row(*HEADS), row(*["---"] * len(HEADS))]
    lines += [row(*cells(p)) for p in plans()]
    lines += ["", row("A", "bits", "largest", "B can be"), row(*["---"] * 4)]
    for each in OPERAND_FORMATS:
        of = element(each)
        lines.append(row(f"`{each}`", str(of.bits), f"{of.largest:g}", together(each)))
    return "\n".join([*lines, ""])
