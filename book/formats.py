"""formats: what each format of A and B makes of a k-tile, from the plan."""

from __future__ import annotations

from wording import row

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.numerics.elements import element
from fp4ref.numerics.kinds import OPERAND_FORMATS, kind_of

MIXED = (("mxfp8_e4m3", "mxfp4"), ("e5m2", "e2m3"))
"""Two of the pairs of formats that go together."""

HEADS = (
    *("A", "B", "MMA", "its K", "elements for a scale", "tile K"),
    *("type of A for TMA", "bytes of a k-tile", "that are copied", "K in steps of"),
)


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
    """Both tables."""
    lines = [row(*HEADS), row(*["---"] * len(HEADS))]
    lines += [row(*cells(p)) for p in plans()]
    lines += ["", row("A", "bits", "largest", "B can be"), row(*["---"] * 4)]
    for each in OPERAND_FORMATS:
        of = element(each)
        lines.append(row(f"`{each}`", str(of.bits), f"{of.largest:g}", together(each)))
    return "\n".join([*lines, ""])
