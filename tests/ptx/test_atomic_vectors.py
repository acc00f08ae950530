"""``atom`` and ``red`` of vectors of float32: each element is a scalar one."""

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
