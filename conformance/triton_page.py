"""triton_page: the page of Triton's and Gluon's kernels, from what is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORD = FOLDER / "triton.json"
PAGE = FOLDER.parent / "docs" / "conformance_triton.md"

INTRODUCTION = """\
# Triton and Gluon on the emulated SM

Kernels in other people's languages, compiled for sm_100a by Triton {version} without a
GPU and executed from their PTX. The texts are ours (`conformance/triton_*.py`,
`conformance/gluon_kernels.py`); layouts, pipelines, barriers and opcodes are the
compiler's. Each runs under the schedules eager, late and a seed, on the machine that
does what shipped kernels rely on, and is compared with its meaning in NumPy: every bit,
an MMA by the integer model, or within a stated bound where an instruction is
approximate or the order of additions is free. {triton} kernels of Triton and {gluon} of
Gluon pass. Made by `make conformance`.

*Order* is what the race search says, once, by what shipped kernels rely on, and the
fault that ends a run by the PTX text alone. Three of these are true:

- RegistersNotReady: Triton uses registers of a `tcgen05.ld` before `tcgen05.wait::ld`.
- `st.shared` beside `st.shared`: several warps store one and the same value.
- `tcgen05.alloc` beside a TMA load: the tile lies over the word into which alloc has
  written the address; a barrier stands between the two, and no proxy fence.

| kernel | what | warps | instructions, opcodes | compared | result | order | CPU s |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

WRONG_RULES = """
## Wrong rules

Each rule was made wrong in the machine, and some kernels that need it run under the
schedule late: which of them no longer pass.

| wrong rule | kernels that see it |
| --- | --- |
"""


def findings(found: dict[str, Any]) -> str:
    """Return what the order of accesses says of one kernel, in words."""
    listed = [
        f"{count} x {key.partition(': ')[2]}" + (" (error)" if "error" in key else "")
        for key, count in sorted(found.items())
        if isinstance(count, int) and not key.startswith("allowed")
    ]
    text = found.get("by the text", "")
    listed += [] if text in ("", "runs") else [f"text alone: {text}"]
    return "; ".join(listed) or ("nothing" if found else "not searched yet")


def render(data: dict[str, Any]) -> str:
    """Write the page."""
    rows = data["rows"]
    passed = Counter(row["author"] for row in rows if row["result"] == "passed")
    lines = INTRODUCTION.format(
        version=data["triton"], triton=passed["Triton"], gluon=passed["Gluon"]
    ).splitlines()
    for row in rows:
        cells = [
            f"{row['author']}: {row['name']}",
            row["what"],
            str(row["warps"]),
            f"{row['instructions']:,}, {len(row['opcodes'])}",
            row["compared"],
            row["result"],
            findings(row["order"]),
            f"{row['seconds']:.1f}",
        ]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    lines += WRONG_RULES.splitlines()
    for name, seen in data["mutants"].items():
        shown = ", ".join(seen[:3]) + (
            f" and {len(seen) - 3} more" if len(seen) > 3 else ""
        )
        lines.append(f"| {name} | {len(seen)}: {shown or 'none'} |")
    lines += ["", "## Forms", ""]
    lines += _forms(rows)
    return "\n".join(lines) + "\n"


def _forms(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Every opcode with its modifiers, who uses it, and one kernel that does."""
    users: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for opcode in row["opcodes"]:
            users.setdefault(opcode, []).append(row)
    yield f"{len(users)} forms, all executed. The last column has the first kernel."
    yield ""
    yield "| form | Triton | Gluon | used by |"
    yield "| --- | --- | --- | --- |"
    for opcode, using in sorted(users.items()):
        counts = Counter(row["author"] for row in using)
        first = using[0]
        yield (
            f"| `{opcode}` | {counts['Triton'] or ''} | {counts['Gluon'] or ''} | "
            f"{first['author']}: {first['name']} |"
        )
