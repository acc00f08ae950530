"""``atom`` and ``red`` of vectors of float32 and of float64.

Each element of a vector is a scalar one. A sum of float64 is Python's own.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.errors import MisalignedAddress
from fp4ref.ptx import PtxError

BODY = """
    .reg .f32 %f<8>;
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
    mad.wide.u32 %rd1, %r2, 16, PLACE;
    mad.wide.u32 %rd2, %r1, 16, OLD;
    cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f3F000000;
    mov.f32 %f3, 0f00000001; mov.f32 %f4, 0fBF800000;
"""
ATOM = "atom.add.v4.f32 {%f5, %f6, %f7, %f1}, [%rd1], {%f1, %f2, %f3, %f4};"
STORE = "st.global.v4.f32 [%rd2], {%f5, %f6, %f7, %f1};"


def totals(operation: str) -> tuple[np.ndarray, np.ndarray]:
    on = machine()
    place = on.gmem.upload("place", np.zeros(16, np.float32))
    old = on.gmem.upload("old", np.zeros(128, np.float32))
    body = BODY.replace("PLACE", str(place)).replace("OLD", str(old))
    run(body + operation, on=on)
    found = (
        on.gmem.contents(a, n).view(np.float32) for a, n in ((place, 64), (old, 512))
    )
    return next(found).reshape(4, 4), next(found).reshape(32, 4)


@pytest.mark.parametrize(
    "order", ["atom.add.v4.f32", "atom.global.gpu.acq_rel.add.v4.f32"]
)
def test_lanes_take_their_turn_and_get_what_was_there(order: str) -> None:
    sums, old = totals(ATOM.replace("atom.add.v4.f32", order) + STORE)
    lane = np.arange(32)
    want = [lane[lane % 4 == i].sum() for i in range(4)]
    assert sums[:, 0].tolist() == want
    assert sums[:, 1].tolist() == [4.0] * 4
    assert sums[:, 2].tolist() == [0.0] * 4  # subnormals are flushed in global memory
    assert sums[:, 3].tolist() == [-8.0] * 4
    assert old[:, 1].tolist() == [0.5 * (i // 4) for i in range(32)]


def test_red_returns_nothing() -> None:
    sums, old = totals("red.global.add.v2.f32 [%rd1], {%f2, %f4};")
    assert sums[0].tolist() == [4, -8, 0, 0]
    assert not old.any()


def test_a_vector_is_aligned_to_its_size() -> None:
    with pytest.raises(MisalignedAddress, match="16 bytes"):
        totals("add.u64 %rd1, %rd1, 8;" + ATOM)


def test_a_vector_has_the_elements_of_its_form() -> None:
    with pytest.raises(PtxError, match="takes 2 elements"):
        totals("red.global.add.v2.f32 [%rd1], {%f1, %f2, %f3, %f4};")


PRODUCT = """
    .reg .f64 %x<4>;
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
    mad.wide.u32 %rd1, %r2, 8, PLACE;
    mad.wide.u32 %rd2, %r1, 8, OLD; mad.wide.u32 %rd3, %r1, 8, TERMS;
    ld.global.f64 %x1, [%rd3];
"""


def doubles(operation: str, terms: np.ndarray) -> tuple[list[float], list[float]]:
    on = machine()
    names = {
        "PLACE": on.gmem.upload("place", np.zeros(2)),
        "OLD": on.gmem.upload("old", np.zeros(32)),
        "TERMS": on.gmem.upload("terms", terms),
    }
    body = PRODUCT
    for name, address in names.items():
        body = body.replace(name, str(address))
    run(body + operation, on=on)
    place, old = (
        on.gmem.contents(names[n], k) for n, k in (("PLACE", 16), ("OLD", 256))
    )
    return place.view(np.float64).tolist(), old.view(np.float64).tolist()


@pytest.mark.parametrize("opcode", ["atom.add.f64", "atom.global.gpu.relaxed.add.f64"])
def test_a_sum_of_doubles_is_rounded_in_float64_after_each_lane(opcode: str) -> None:
    rng = np.random.default_rng(18)
    terms = rng.standard_normal(32) * 2.0 ** rng.integers(-40, 40, 32)
    sums, old = doubles(f"{opcode} %x2, [%rd1], %x1; st.global.f64 [%rd2], %x2;", terms)
    totals = [0.0, 0.0]
    for lane, term in enumerate(terms.tolist()):
        assert old[lane] == totals[lane % 2]
        totals[lane % 2] += term
    assert sums == totals


def test_a_red_of_doubles_keeps_subnormals() -> None:
    sums, old = doubles("red.global.add.f64 [%rd1], %x1;", np.full(32, 5e-324))
    assert sums == [16 * 5e-324] * 2
    assert not any(old)
