"""Each rule that other authors' kernels have to show can be made wrong, and shows.

A block-scaled MMA by hand shows most of them without anybody's compiler: that a rule is
still where the machine looks for it is seen each day.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import kernel, machine
from test_block_scaled_mma import atom, cores, mma_of_128x128
from wrong_rules import RULES

from fp4ref.errors import Fp4refError
from fp4ref.hardware import tmem_access
from fp4ref.numerics import ScaleFormat, mma_block_scaled, pack_e2m1
from fp4ref.ptx import Program, UndefinedRegister, launch, parse

BEYOND = {
    "smem swizzle code": "the operands have no swizzle",
    "idesc N": "the column that is stored is one of the first 32",
}
"""What this text cannot show, and why."""


def observed() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """A column of D after two MMAs, the second one with input, and the model's."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 16, (128, 64), np.uint8) for _ in range(2))
    sfa, sfb = (rng.integers(0, 127, (128, 4), np.uint8) for _ in range(2))
    data = cores(pack_e2m1(a)) + cores(pack_e2m1(b)) + atom(sfa) + atom(sfb)
    on = machine()
    source = on.gmem.upload("source", np.frombuffer(data, np.uint8))
    out = on.gmem.upload("out", np.zeros((128, 32), np.float32))
    text = mma_of_128x128(source, out, 132)
    at = text.index("tcgen05.mma")
    first = text[at : text.index(";", at) + 1]
    text = text.replace(first, f"{first} setp.eq.u32 %p4, 0, 0; {first}")
    program = Program.of(parse(kernel(text)))
    launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
    want = None
    for _ in range(2):
        want = mma_block_scaled(
            a, b, sfa, sfb, want, scale_format=ScaleFormat.UE4M3, vec_size=16
        )
    assert want is not None
    return on.gmem.contents(out, 512).view(np.uint32), want[:, 5].view(np.uint32)


def test_without_a_wrong_rule_the_mma_has_the_bits_of_the_model() -> None:
    found, want = observed()
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_rule_shows_in_an_mma_by_hand(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    RULES[rule](monkeypatch)
    try:
        found, want = observed()
    except UndefinedRegister:
        raise
    except Fp4refError:
        return
    finally:
        tmem_access._cells.cache_clear()
    assert (found != want).any() == (rule not in BEYOND), BEYOND.get(rule)
