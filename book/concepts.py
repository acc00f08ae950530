"""concepts: the idea of each notebook as a sketch; numbers come from the package.

``python book/concepts.py`` writes ``notebooks/figures`` and puts each sketch, with its
words, at the end of the first part of its notebook.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import concepts_of_kernels
import numpy as np
from concept_drawing import Sketch

import fp4ref
from fp4ref.frames import FRAMES, Verdict
from fp4ref.hardware.tensor_memory import LANES
from fp4ref.layout import SwizzleMode, swizzled_offsets
from fp4ref.lessons.edition import PICTURES
from fp4ref.lessons.outline import LESSONS
from fp4ref.numerics import decode_e2m1

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FOLDER = PICTURES
_OLD = re.compile(rf"\n*!\[[^\]]+\]\({FOLDER}/\d+\.svg\)")
PLAN = fp4ref.plan(fp4ref.GemmConfig.nvfp4())


def sketches() -> dict[str, Sketch]:
    """Return the sketch of every notebook but 00, which has `data_flow`, by name."""
    makers = {**_MAKERS, **concepts_of_kernels.MAKERS}
    return {n: makers[LESSONS[n].number]() for n in LESSONS if n[:2] in makers}


def pictures() -> dict[str, str]:
    """Return every picture by its path from the notebooks."""
    return {f"{FOLDER}/{n[:2]}.svg": each.svg() for n, each in sketches().items()}


def reference(name: str, sketch: Sketch) -> str:
    """Return the line of Markdown that shows a sketch."""
    return f"![{sketch.description()}]({FOLDER}/{name[:2]}.svg)"


def codes() -> Sketch:
    """01: the eight sizes of E2M1, and the block that shares a scale."""
    found = Sketch("An E2M1 code has a sign and one of eight sizes")
    sizes = [f"{each:g}" for each in decode_e2m1(np.arange(8, dtype=np.uint8))]
    found.row(sizes)
    found.gap()
    vector = PLAN.sf_vec_size
    found.line(f"{vector} codes and one scale, 8 bits, are one block")
    found.row([f"{vector} codes", "scale"], marked=[1])
    found.line("value = code x scale x global scale")
    return found


def atom() -> Sketch:
    """02: where the scales of an atom lie."""
    found = Sketch("The 128x4 atom of scales: 32 lines of 16 bytes")
    for line in (0, 1, 31):
        if line == 31:
            found.line("...")
        found.row([f"row {line + 32 * part}" for part in range(4)])
    found.line("a cell is 4 bytes: its row's next 4 scales")
    return found


def swizzle() -> Sketch:
    """03: which chunk of a row lies at each place under the 128-byte swizzle."""
    found = Sketch("128-byte swizzle: which 16-byte chunk lies where")
    at = swizzled_offsets(SwizzleMode.of_span(128), 8, 128)[:, ::16] // 16 % 8
    for number, row in enumerate(at):
        place = np.argsort(row)
        marked = [int(np.flatnonzero(place == 0)[0])]
        found.row([f"r{number}", *map(str, place)], marked=[1 + marked[0]])
    found.line("marked: chunk 0; no two in one column")
    return found


def barriers() -> Sketch:
    """04: the two barriers of a stage, and who arrives on which."""
    found = Sketch("The life of one stage of the ring")
    found.flow(
        ("load warp waits for empty", "unit"),
        f"expect_tx {PLAN.stage_tx_bytes:,} bytes",
        ("TMA fills the stage", "memory"),
        "the last byte flips full",
        ("MMA warp reads the stage", "unit"),
        "a commit flips empty",
        ("the stage is free again", "memory"),
    )
    return found


def tensor_memory() -> Sketch:
    """05: what lies in which columns, and which warp reads which lanes."""
    tmem = PLAN.tmem
    found = Sketch(f"Columns of tensor memory in this kernel, of {LANES} lanes each")
    accumulators = [f"from {each}" for each in tmem.accumulators]
    found.line("accumulators: a column each of N")
    found.row(accumulators, marked=range(len(accumulators)))
    scales = zip(tmem.sfa, tmem.sfb, strict=True)
    found.line("scales of A and of B, two sets in turn")
    found.row([f"from {each}" for pair in scales for each in pair])
    found.line("lanes that a warp of the epilogue reads")
    epilogue = PLAN.epilogue_warps
    width = LANES // epilogue
    found.row([f"{i * width}-{(i + 1) * width - 1}" for i in range(epilogue)])
    return found


def arithmetic() -> Sketch:
    """06: one element of D in one MMA."""
    groups = PLAN.mma_k // PLAN.sf_vec_size
    found = Sketch(f"One element of D in one MMA: {PLAN.mma_k} products")
    found.row([f"{PLAN.sf_vec_size} a x b"] * groups)
    found.flow(
        ("four exact sums", "box"),
        "times the scales of A and B",
        ("aligned to the largest exponent", "unit"),
        "low bits are cut off",
        ("one sum, with D", "box"),
        "rounded to float32",
        ("D in tensor memory", "memory"),
    )
    return found


def verdicts() -> Sketch:
    """10: how many frames of the document are right."""
    found = Sketch(f"The {len(FRAMES)} frames of the document, by verdict")
    counts = Counter(frame.verdict for frame in FRAMES.values())
    rows = [(v.value, 0.0, float(counts[v]), f"{counts[v]} frames") for v in Verdict]
    found.bars(rows)
    return found


def checkpoint() -> Sketch:
    """11: from a file of weights to the kernel."""
    found = Sketch("From a checkpoint to the kernel")
    found.flow(
        ("a file: codes, scales, global scales", "memory"),
        "its recipe",
        ("BlockScaled: one meaning for all recipes", "box"),
        "scales into 128x4 atoms",
        ("the kernel", "unit"),
        "every bit against the oracle",
        ("D of your layer", "box"),
    )
    return found


_MAKERS: dict[str, Callable[[], Sketch]] = {
    "01": codes,
    "02": atom,
    "03": swizzle,
    "04": barriers,
    "05": tensor_memory,
    "06": arithmetic,
    "10": verdicts,
    "11": checkpoint,
}


def write() -> None:
    """Write the pictures, and put each into its notebook."""
    (NOTEBOOKS / FOLDER).mkdir(exist_ok=True)
    for path, text in pictures().items():
        (NOTEBOOKS / path).write_text(text, "utf-8")
    for name, sketch in sketches().items():
        path = NOTEBOOKS / f"{name}.ipynb"
        document = json.loads(path.read_text("utf-8"))
        cells = [c for c in document["cells"] if c["cell_type"] == "markdown"]
        first = next((c for c in cells if _promises(c)), cells[0])
        text = re.sub(
            rf"\n*!\[[^\]]+\]\({FOLDER}/\d+\.svg\)", "", "".join(first["source"])
        )
        text = f"{text.rstrip()}\n\n{reference(name, sketch)}"
        first["source"] = text.splitlines(keepends=True)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, "utf-8")


def _promises(cell: dict[str, list[str]]) -> bool:
    return "".join(cell["source"]).startswith("## What the hardware promises")


if __name__ == "__main__":
    write()
