"""executions: the three executions of one kernel, as a picture and as its text twin."""

from __future__ import annotations

from drawing import arrow_down, box, figure, svg
from wording import plain, row

EXECUTIONS = (
    ("emulator", "fp4ref/gemm", "the kernel as Python warps", "fp4ref/hardware"),
    ("ptx", "compiled PTX", "ours, CUTLASS's, Triton's", "fp4ref/hardware"),
    ("device", "kernel/ on a GPU", "through cuda-python", "the GPU"),
)
"""Name, what runs, in words, and the machine under it."""

MACHINE = "fp4ref/hardware: TMA, mbarriers, TMEM, tcgen05, CLC, several SMs"
TRACE = "fp4ref/trace: what every unit did, and memory at any step"
VALUES = "D: what the card wrote, no trace"
COMPARE = "fp4ref/evidence: the first byte that differs, in matrix coordinates"


def picture() -> str:
    """Three columns: two traces that can be compared, and the values of a card."""
    parts = []
    for i, (name, runs, words, _) in enumerate(EXECUTIONS):
        x = 10 + 230 * i
        parts.append(box(x, 10, 220, 74, [f"backend={name}", runs, words]))
        parts.append(arrow_down(x + 110, 84, 108))
    parts.append(box(10, 108, 450, 50, _two_lines(MACHINE), "machine"))
    parts.append(box(470, 108, 220, 50, ["the GPU", "with tcgen05"], "machine"))
    parts += [arrow_down(x, 158, 182) for x in (235, 580)]
    parts.append(box(10, 182, 450, 44, _two_lines(TRACE), "result"))
    parts.append(box(470, 182, 220, 44, _two_lines(VALUES), "result"))
    parts.append(arrow_down(235, 226, 250))
    parts.append(box(10, 250, 450, 44, _two_lines(COMPARE), "result"))
    return svg(304, alt(), parts)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    names = [f"{name} ({runs})" for name, runs, _, _ in EXECUTIONS]
    return (
        f"Three executions of one kernel, {', '.join(names)}: the first two run on "
        "fp4ref/hardware and leave traces, of which any two can be compared; the third "
        "runs on a GPU and leaves D."
    )


def page() -> str:
    """The picture and its text twin, as part of a page."""
    lines = [row("execution", "what runs", "on"), row("---", "---", "---")]
    for name, runs, words, machine in EXECUTIONS:
        lines.append(row(f'`backend="{name}"`', f"{runs}: {words}", machine))
    after = [f"- {plain(text)}" for text in (MACHINE, TRACE, VALUES, COMPARE)]
    return "\n".join([figure("executions.svg", alt()), "", *lines, "", *after]) + "\n"


def _two_lines(text: str) -> list[str]:
    name, _, words = text.partition(": ")
    return [name, words]
