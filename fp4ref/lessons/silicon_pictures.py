"""silicon_pictures: pictures of what an H200 did, each with the same as text."""

from __future__ import annotations

from fp4ref.lessons.page import Page
from fp4ref.lessons.silicon import PARTS, Flips, chunks, flips, places
from fp4ref.lessons.svg import BLUE, GREEN, SAND, WHITE, WIDTH, box, svg, text


def parts_picture() -> Page:
    """Draw what was the card's own, and what was soft."""
    real = [each for each in PARTS if each.real]
    soft = [each for each in PARTS if not each.real]
    alt = (
        "On the H200 these were the card's own: "
        f"{', '.join(each.name for each in real)}. These were soft: "
        f"{', '.join(each.name for each in soft)}."
    )
    drawn = []
    heads = ("the card's own", "soft: what Hopper lacks")
    for x, head, column, fill in zip(
        (12, 356), heads, (real, soft), (GREEN, SAND), strict=True
    ):
        drawn.append(text(x + 166, 26, head, bold=True))
        for i, each in enumerate(column):
            y = 40 + 54 * i
            drawn.append(box(x, y, 332, 46, fill))
            drawn.append(text(x + 166, y + 19, each.name, bold=True))
            drawn.append(text(x + 166, y + 37, each.why))
    height = 48 + 54 * max(len(real), len(soft))
    lines = [f"{each.name:16} {'real' if each.real else 'soft'}: {each.why}"
             for each in PARTS]  # fmt: skip
    return Page("\n".join(lines), svg(height, alt, drawn))


_CELL_WIDTH, _CELL_HEIGHT, _ROWS = 38, 30, 8


def descriptor_picture() -> Page:
    """Draw eight rows of shared memory, as the card and as the machine read them."""
    found = places()
    by_card, by_machine = chunks(found.by_card, _ROWS), chunks(found.by_machine, _ROWS)
    equal = int((found.by_card == found.by_machine).sum())
    alt = (
        "One descriptor of the 128-byte swizzle whose tile starts at row 3 of the "
        "pattern. In the eight rows of shared memory each row of the tile has two "
        "chunks of 16 bytes, and the swizzle moves them. The card and the machine read "
        f"{equal} of {found.by_card.size} elements at the same place."
    )
    drawn = []
    for x, head, grid in ((40, "the H200", by_card), (386, "the machine", by_machine)):
        drawn.append(text(x + 4 * _CELL_WIDTH, 24, head, bold=True))
        for row, names in enumerate(grid):
            y = 36 + row * _CELL_HEIGHT
            drawn.append(text(x - 18, y + 20, f"{row * 128:#x}", size=11))
            for chunk, name in enumerate(names):
                fill = BLUE if name else WHITE
                at = x + chunk * _CELL_WIDTH
                drawn.append(box(at, y, _CELL_WIDTH, _CELL_HEIGHT, fill))
                if name:
                    drawn.append(text(at + _CELL_WIDTH / 2, y + 20, name, size=13))
    y = 36 + _ROWS * _CELL_HEIGHT
    foot = "a box is 16 bytes; 2b is row 2 of the tile, the second half of its K"
    drawn.append(text(WIDTH / 2, y + 24, foot))
    lines = ["16 bytes a column; 2b is row 2 of the tile, the second half of its K"]
    for row, (card, machine) in enumerate(zip(by_card, by_machine, strict=True)):
        left, right = (
            " ".join(f"{name or '.':>2}" for name in names) for names in (card, machine)
        )
        lines.append(f"{row * 128:#6x} card {left}  machine {right}")
    lines.append(f"{equal} of {found.by_card.size} elements at the same place")
    return Page("\n".join(lines), svg(y + 40, alt, drawn))


_FLIPS_IN_A_ROW, _FLIP = 25, 26


def flips_picture(found: Flips | None = None) -> Page:
    """Draw 200 flipped bits: what changed D, and what nobody read any more."""
    found = flips() if found is None else found
    count, changed = len(found.changed), sum(found.changed)
    predicted = sum(found.as_predicted)
    alt = (
        f"{count} flipped bits: {changed} changed D, {count - changed} did not. "
        f"{predicted} of {count} gave the bits that a formula says."
    )
    drawn = []
    for i, (buffer, used) in enumerate(zip(found.buffers, found.changed, strict=True)):
        row, column = divmod(i, _FLIPS_IN_A_ROW)
        x, y = 25 + column * _FLIP, 16 + row * _FLIP
        drawn.append(box(x, y, _FLIP, _FLIP, BLUE if used else WHITE))
        label = {"A": "A", "B": "B", "SFA": "a", "SFB": "b"}[buffer]
        drawn.append(text(x + _FLIP / 2, y + 18, label, size=13, bold=used))
    y = 16 + -(-count // _FLIPS_IN_A_ROW) * _FLIP
    foot = "A, B: a bit of an element; a, b: of a scale. Filled and bold: D changed"
    drawn.append(text(WIDTH / 2, y + 24, foot))
    lines = [alt]
    for buffer in ("A", "B", "SFA", "SFB"):
        of = [
            c for b, c in zip(found.buffers, found.changed, strict=True) if b == buffer
        ]
        lines.append(f"{buffer:4} {len(of)} flips, {sum(of)} changed D")
    return Page("\n".join(lines), svg(y + 40, alt, drawn))
