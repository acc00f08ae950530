"""Arithmetic and conversions of 16 to 64 bits give what an H200 gave.

`tests/data/card_arithmetic.npz` has 32 of 4,096 inputs for each of 563 forms, half of
them pairs of corner values, and the card's results; see docs/measured.md.
`tests/data/make_card_arithmetic.py` makes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from on_lanes import lanes

DATA = Path(__file__).parents[1] / "data" / "card_arithmetic.npz"
with np.load(DATA) as _file:
    CARD = {name: _file[name] for name in _file.files}
FORMS = {str(op): i for i, op in enumerate(CARD["opcodes"])}
FAMILIES = sorted({op.split(".")[0] for op in FORMS})


def test_the_record_has_every_family() -> None:
    assert len(FORMS) == len(CARD["opcodes"]) == 563
    assert FAMILIES == [
        "abs", "add", "copysign", "cvt", "div", "ex2", "fma", "max", "min", "mul",
        "neg", "rcp", "sqrt", "sub", "tanh",
    ]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_of_a_family_has_the_bits_of_the_card(family: str) -> None:
    wrong = {}
    for opcode, i in FORMS.items():
        if opcode.split(".")[0] != family:
            continue
        width, *widths = (int(w) // 8 for w in CARD["widths"][i].split())
        sources = "abc"[: len(widths)]
        inputs = {
            name: CARD["inputs"][i][n].astype(f"u{widths[n]}")
            for n, name in enumerate(sources)
        }
        operands = ", ".join(f"%{name}" for name in ("d", *sources))
        found = lanes(f"{opcode} {operands};", f"u{width}", **inputs)
        want = CARD["results"][i]
        if opcode.split(".")[-2] in ("s8", "u8"):
            found = found & 0xFF  # the card's 16-bit register was stored whole
        if (found != want).any():
            at = int(np.flatnonzero(found != want)[0])
            wrong[opcode] = [hex(x[at]) for x in inputs.values()], hex(found[at])
    assert not wrong
