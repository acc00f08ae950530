"""epilogue_builder: both architectures' rules, and the memory of one built epilogue.

The example is CUTLASS's 72b; the comparison beside it is document 001's first example.
"""

from __future__ import annotations

from drawing import WIDTH, box, figure, svg, text
from wording import row, stacked_table

from fp4ref.gemm.epilogue_builder import EpilogueRequest, build_epilogue
from fp4ref.gemm.epilogue_builder.rules import RULES
from fp4ref.gemm.epilogue_builder.tma_epilogue import TmaEpilogue

FILE = "epilogue_builder.svg"

FIRST = EpilogueRequest(
    arch="sm90", tile=(128, 128, 64), c="f16", schedule="TmaWarpSpecialized"
)
"""Document 001's first example."""
EXAMPLE_72B = EpilogueRequest(arch="sm100", tile=(128, 128, 256), c="f32", d="nvfp4")

_WORDS = {
    "automatic": "schedule",
    "epilogue_tile": "epilogue tile",
    "fragment": "FragmentSize: a subtile over",
    "reuse": "ReuseSmemC, if",
    "delay": "DelayTmaStore, if",
    "atom": "swizzle atom",
    "store": "registers to shared memory",
    "accumulator": "accumulator",
}
"""What each rule is about, as the table says it."""

_SHOWN = (
    "epilogue_tile",
    "subtiles",
    "stages_c",
    "stages_d",
    "fragment_size",
    "reuse_smem_c",
    "delay_tma_store",
    "copy_r2s",
    "atom_c",
    "transaction_nbytes",
    "collective_storage",
    "storage_nbytes",
    "mainloop_stages",
)


def built(asked: EpilogueRequest) -> TmaEpilogue:
    """Return an epilogue of these examples, which both go by TMA."""
    epilogue = build_epilogue(asked)
    assert isinstance(epilogue, TmaEpilogue)
    return epilogue


def _shown(value: object) -> str:
    return f"{value:,}" if type(value) is int else f"`{value}`"


def rules() -> str:
    """Both columns of rules."""
    lines = [row("", "SM90", "SM100"), row("---", "---", "---")]
    for name, words in _WORDS.items():
        lines.append(row(words, *(getattr(RULES[a], name) for a in RULES)))
    same = "min(subtiles, 4), with reuse at least StagesD + 1"
    lines.append(row("StagesC", same, same))
    lines.append(row("StagesD", "min(subtiles, 2)", "min(subtiles, 2)"))
    return "\n".join([*lines, ""])


def page() -> str:
    """The picture, and the values of both examples."""
    first, second = built(FIRST), built(EXAMPLE_72B)
    rows = [("value", "in document 001's first example and in CUTLASS 72b", "why")]
    for name in _SHOWN:
        why = second.why[name]
        values = f"001: {_shown(getattr(first, name))}; 72b: {_shown(why.value)}"
        rows.append((name, values, f"{why.sentence} ({why.source})"))
    return "\n".join([figure(FILE, alt()), "", stacked_table(rows), ""])


def parts() -> list[tuple[str, int]]:
    """Return what lies in 72b's epilogue storage, in order, with its bytes."""
    e = built(EXAMPLE_72B)
    found = [(f"stage {i}", e.transaction_nbytes) for i in range(e.stages_c)]
    padded = e.tensors_nbytes - e.collective_nbytes
    found.append(("the fusion's nodes, and padding", padded))
    left = e.storage_nbytes - e.tensors_nbytes
    return [*found, (f"{e.pipeline_nbytes} bytes of barriers, and padding", left)]


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    e = built(EXAMPLE_72B)
    return (
        f"A tile of 128 x 128 in {e.subtiles} subtiles of 128 x 32; below it "
        f"{e.storage_nbytes:,} bytes of shared memory: a stage for each subtile, which "
        "holds C and then D, and the barriers."
    )


def picture() -> str:
    """Return the tile above, its shared memory below."""
    e = built(EXAMPLE_72B)
    width = (WIDTH - 40) // e.subtiles
    drawn = [text(20, 24, "CTA's tile, 128 x 128", bold=True, anchor="start")]
    drawn += [
        box(
            *(20 + i * width, 36, width, 56),
            [f"subtile {i}", f"columns {32 * i} to {32 * i + 31}"],
            "machine",
        )
        for i in range(e.subtiles)
    ]
    heading = f"epilogue storage, {e.storage_nbytes:,} bytes"
    drawn.append(text(20, 124, heading, bold=True, anchor="start"))
    of_d = e.epilogue_tile.m * e.epilogue_tile.n * e.atom_d.bits // 8
    stages = parts()[: e.stages_c]
    drawn += [
        box(
            *(20 + i * width, 136, width, 74),
            [name, f"C: {nbytes:,} bytes", f"then D: {of_d:,} bytes"],
            "result",
        )
        for i, (name, nbytes) in enumerate(stages)
    ]
    y = 210
    for name, nbytes in parts()[e.stages_c :]:
        drawn.append(box(20, y, WIDTH - 40, 30, [f"{nbytes:,} bytes: {name}"]))
        y += 30
    return svg(y + 16, alt(), drawn)
