"""check_table: the seeded faults and clean kernels of `fp4ref check`, as a page.

``python tests/evidence/check_table.py`` writes ``docs/check_kernels.md``. None of these
kernels is one of this project: they are short texts of PTX, as a user may write them,
and a text of Triton's with one edit.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from check_kernels import PAIRS, VARIANTS  # noqa: E402
from triton_edits import EDITS  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "check_kernels.md"


def render() -> str:
    """Return the page."""
    lines = [
        "# What `fp4ref check` was tried on",
        "",
        f"{len(PAIRS) + len(EDITS)} seeded faults: {len(PAIRS)} in texts of PTX and "
        f"{len(EDITS)} in a text of Triton 3.9 (`dot_scaled`, NVFP4). Each is named "
        "at its line. "
        f"{len(PAIRS) + len(VARIANTS)} right texts and the one of Triton are clean, "
        "in eight runs each: `tests/evidence/test_check.py` and "
        "`test_check_triton.py`.",
        "",
        "| seeded fault | in | what is said |",
        "| --- | --- | --- |",
        *(f"| {name} | PTX | {case.finding} |" for name, case in PAIRS.items()),
        *(
            f"| {name} | Triton's PTX | {' or '.join(edit.finding.split('|'))} |"
            for name, edit in EDITS.items()
        ),
        "",
        f"Clean: the {len(PAIRS)} texts of PTX above without their fault, and "
        f"{', '.join(VARIANTS)}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
