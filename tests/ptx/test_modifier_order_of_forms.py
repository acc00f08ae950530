"""Every form of the registry with its modifiers in another order that ptxas takes.

ptxas decides about each spelling; the executor has to take the same ones, as the same
instruction. Types, and state spaces, keep their order: another one says another thing.
A vector stands before its type: ptxas warns of another order, and then takes forms
that it otherwise refuses, or ends with an error of its own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from assembler import needs_ptxas

from fp4ref.errors import InputError
from fp4ref.ptx.run.modifiers import _ordered
from fp4ref.ptx.run.registry import find
from fp4ref.ptx.text.statements import undivided
from probes.forms import emulated
from probes.forms.catalogue import Form, forms
from probes.forms.compiler import find_ptxas, refusals

PARTS = 64
CRASH = "an error of its own"


def kind_of(word: str) -> str:
    """Return what a word keeps its order among; '' if it may stand anywhere."""
    return _ordered(word.rpartition(".")[2])


def reordered(opcode: str, rng: random.Random) -> str:
    """Shuffle the words behind those that ptxas reads as one; a vector has its type."""
    head = undivided(opcode)
    words = re.findall(r"[.]((?:v\d[.])?[^.]+)", opcode[len(head) :])
    mixed = rng.sample(words, len(words))
    for kind in ("type", "space"):
        kept = iter([word for word in words if kind_of(word) == kind])
        mixed = [next(kept) if kind_of(word) == kind else word for word in mixed]
    return ".".join([head, *mixed])


def others(part: int, seed: int) -> list[tuple[Form, str]]:
    """Forms of a part in another order, each with its opcode as the manual has it."""
    rng = random.Random(f"{seed} {part}")
    found = []
    for form in list(forms().values())[part::PARTS]:
        opcode = reordered(form.opcode, rng)
        body = form.shape.body.replace(form.opcode, opcode)
        if opcode != form.opcode and body != form.shape.body:
            shape = replace(form.shape, body=body)
            found.append((replace(form, opcode=opcode, shape=shape), form.opcode))
    return found


def accepts(form: Form) -> bool:
    try:
        return emulated.accepts(form)
    except InputError:
        return False


def refused(made: Sequence[Form]) -> dict[str, str]:
    """Return what ptxas says of each form; `CRASH` where it ends by itself.

    It does for ``ld.shared.v8.s16`` in the order of the manual, too.
    """
    ptxas = find_ptxas()
    assert ptxas is not None
    try:
        return refusals(ptxas, made, "sm_100a")
    except RuntimeError:
        if len(made) == 1:
            return {made[0].name: CRASH}
        half = len(made) // 2
        return refused(made[:half]) | refused(made[half:])


def disagreements(made: Sequence[tuple[Form, str]]) -> tuple[list[str], int]:
    """Say where the registry and ptxas differ, and how many orders ptxas takes."""
    said = refused([form for form, _ in made])
    lines = []
    for form, manual in made:
        if words := said.get(form.name, ""):
            if words != CRASH and accepts(form):
                lines.append(f"{form.name}: accepted; ptxas: {words}")
        elif find(form.opcode) != find(manual) or not accepts(form):
            lines.append(f"{form.name}: refused; ptxas takes it for {manual}")
    return lines, len(made) - len(said)


@pytest.mark.outside
@needs_ptxas
@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_a_form_is_accepted_in_any_order_that_ptxas_takes(
    part: int, rotating_seed: int
) -> None:
    made = others(part, rotating_seed)
    found, taken = disagreements(made)
    assert not found, "\n".join(found)
    assert taken > len(made) // 2 > 5


def test_orders_differ_and_keep_types_and_spaces() -> None:
    rng = random.Random(0)
    opcode = "cvt.rn.satfinite.e4m3x2.f32"
    seen = {reordered(opcode, rng) for _ in range(50)}
    assert len(seen) > 5
    for each in seen:
        assert each.index("e4m3x2") < each.index("f32")
        assert sorted(each.split(".")) == sorted(opcode.split("."))
