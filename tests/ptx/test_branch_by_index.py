"""``brx.idx``: each lane goes where its index says, and all meet again."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import lanes

from fp4ref.ptx import PtxError
from fp4ref.ptx.instructions.control import BranchOutOfTable
from fp4ref.ptx.run.state import PartialWarp

BODY = """
    table: .branchtargets ZERO, ONE, TWO, ONE;
    mov.b32 %d, 7;
    GUARD brx.idx %a, table;
    add.u32 %d, %d, 1000; bra MEET;
ZERO: mov.b32 %d, 100; bra MEET;
ONE: mov.b32 %d, 101;
TWO: add.u32 %d, %d, 50; bra MEET;
MEET: activemask.b32 %r1; and.b32 %r1, %r1, 1; add.u32 %d, %d, %r1;
"""


def meaning(index: int) -> int:
    return {0: 100, 1: 151, 2: 57, 3: 151}[index] + 1


def test_each_lane_goes_where_its_index_says() -> None:
    index = np.random.default_rng(4).integers(0, 4, 64).astype(np.uint32)
    found = lanes(BODY.replace("GUARD", ""), "u4", a=index)
    assert found.tolist() == [meaning(i) for i in index.tolist()]


def test_lanes_of_a_false_guard_go_on() -> None:
    index = np.arange(32, dtype=np.uint32) % 4
    guard = "setp.lt.u32 %p1, %tid32, 9; @%p1"
    found = lanes(BODY.replace("GUARD", guard), "u4", a=index)
    want = [meaning(i % 4) if i < 9 else 1008 for i in range(32)]
    assert found.tolist() == want


def test_a_label_right_behind_may_be_in_the_list() -> None:
    """Lanes that go on and lanes that jump there are the same from there on."""
    body = """
        table: .branchtargets NEXT, AFTER;
        setp.lt.u32 %p1, %tid32, 16; mov.b32 %d, 7;
        @%p1 brx.idx %a, table;
    NEXT: add.u32 %d, %d, 100;
    AFTER: add.u32 %d, %d, 50;
    """
    found = lanes(body, "u4", a=np.arange(32, dtype=np.uint32) % 2)
    assert found.tolist() == [157, 57] * 8 + [157] * 16


def test_an_index_past_the_list_is_a_fault_with_its_line() -> None:
    index = np.array([0, 4] * 16, np.uint32)
    with pytest.raises(BranchOutOfTable, match="index 4 of 4 targets"):
        lanes(BODY.replace("GUARD", ""), "u4", a=index)


def test_uni_means_one_target() -> None:
    body = BODY.replace("GUARD", "").replace("brx.idx", "brx.idx.uni")
    same = np.full(32, 3, np.uint32)
    assert lanes(body, "u4", a=same).tolist() == [meaning(3)] * 32
    with pytest.raises(PartialWarp, match=r"brx\.idx\.uni with 2 targets"):
        lanes(body, "u4", a=np.array([0, 1] * 16, np.uint32))


def test_a_list_that_is_not_there_is_an_error_of_the_text() -> None:
    body = BODY.replace("GUARD", "").replace("%a, table", "%a, other")
    with pytest.raises(PtxError, match=r"without a \.branchtargets of the name other"):
        lanes(body, "u4", a=np.zeros(32, np.uint32))


def test_a_list_is_of_labels() -> None:
    body = BODY.replace("GUARD", "").replace("ZERO, ONE", "ZERO, NOWHERE")
    with pytest.raises(PtxError, match="unknown label NOWHERE"):
        lanes(body, "u4", a=np.zeros(32, np.uint32))
