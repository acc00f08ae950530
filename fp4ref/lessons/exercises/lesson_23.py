"""lesson_23: exercises on the laboratory; the answers come from its models."""

from __future__ import annotations

from fp4ref.lessons.exercise import exercise
from fp4ref.lessons.why_this_speed import binding, cycles


@exercise(
    "23.1",
    title="What binds",
    frames=("6.12",),
    hints=(
        "Look for the longest of the times that each resource needs alone.",
        "The table of resources has both ends of each range; ask at the published "
        "values.",
        '`why.binding("003")` asks for one of them.',
    ),
    why="What needs the most clocks for a product binds it.",
    # Who believes that MMAs always bind; memory always; the scales nowhere.
    wrong=(
        {"72b-4096": "MMA", "bf16-8192": "MMA", "003": "MMA"},
        {"72b-4096": "GMEM", "bf16-8192": "GMEM", "003": "GMEM"},
        {"72b-4096": "scale copies", "bf16-8192": "MMA", "003": "L2"},
    ),
)
def binds() -> dict[str, str]:
    """Ask the bounds of three products."""
    return {name: binding(name) for name in ("72b-4096", "bf16-8192", "003")}


@exercise(
    "23.2",
    title="A shorter epilogue",
    frames=("7.12",),
    hints=(
        "Phase 1 is 384 clocks shorter with `bf16_arithmetic`. A tile is not.",
        '`cycles()` has the baseline, `cycles("bf16_arithmetic")` the change; '
        "look at both waits of the MMA warp.",
        "Take one `tile` from the other, and round to tens.",
    ),
    why="It is the difference of two tiles of the model, with the change and without.",
    # All of phase 1; what the document's own model says; the wait alone.
    wrong=(380, 820, 480),
)
def shorter() -> int:
    """Ask the model for both kernels."""
    return int(round(cycles()["tile"] - cycles("bf16_arithmetic")["tile"], -1))
