"""A branch on a register that was never written: it may choose what is dropped."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import lanes, machine

from fp4ref.hardware.advisory import Advisory
from fp4ref.ptx import UndefinedRegister

CHOICE = """
    setp.ne.u32 %p1, %tid32, 99;
    mov.b32 %d, 7;
    @%p1 bra DROP;
    mov.b32 %r9, 1;
DROP:
    setp.eq.u32 %p2, %r9, 1;
    @%p2 bra ONE;
    mov.b32 %r8, 20;
    bra.uni MEET;
ONE:
    mov.b32 %r8, 10;
MEET:
"""
"""%r9 is set on no path that is taken; a branch on it sets %r8."""


def test_under_shipped_a_branch_on_an_unset_value_is_counted() -> None:
    on = machine(ordering="shipped")
    found = lanes(CHOICE + "mov.b32 %r7, %r8;", "u4", on=on)
    assert (found == 7).all()
    assert on.advisories == {Advisory.UNSET_BRANCH.value: 1}


def test_by_the_text_it_is_a_fault() -> None:
    with pytest.raises(UndefinedRegister, match="%p2 is used, but was never written"):
        lanes(CHOICE, "u4")


@pytest.mark.parametrize("use", ["mov.b32 %d, %r8;", "add.u32 %d, %r8, 1;"])
def test_what_the_branch_wrote_has_no_value_afterwards(use: str) -> None:
    with pytest.raises(UndefinedRegister, match="%d is used, but was never written"):
        lanes(CHOICE + use, "u4", on=machine(ordering="shipped"))


def test_what_only_the_other_side_writes_has_no_value_either() -> None:
    body = CHOICE.replace("mov.b32 %r8, 20;", "").replace("%r8, 10", "%r6, 10")
    body = "mov.b32 %r6, 5;" + body + "mov.b32 %d, %r6;"
    with pytest.raises(UndefinedRegister, match="%d is used"):
        lanes(body, "u4", on=machine(ordering="shipped"))


@pytest.mark.parametrize("inner", ["", "@%p1 bra INNER; mov.b32 %r5, 1; INNER:"])
def test_effects_between_branch_and_meeting_are_a_fault(inner: str) -> None:
    store = inner + "ld.param.u64 %rd9, [k_out]; st.global.b32 [%rd9], 3;"
    body = CHOICE.replace("mov.b32 %r8, 20;", store)
    with pytest.raises(UndefinedRegister, match="an instruction with effects"):
        lanes(body, "u4", on=machine(ordering="shipped"))


def test_lanes_that_have_a_value_still_take_their_sides() -> None:
    body = CHOICE.replace("setp.ne.u32 %p1, %tid32, 99", "setp.ge.u32 %p1, %tid32, 8")
    found = lanes(
        body + "setp.lt.u32 %p3, %tid32, 8; selp.b32 %d, 1, 2, %p3;",
        "u4",
        on=machine(ordering="shipped"),
    )
    assert found.tolist() == [1] * 8 + [2] * 24
    assert np.unique(found).size == 2


def test_lanes_that_were_not_in_the_branch_keep_what_it_may_have_written() -> None:
    body = (
        "mov.b32 %r8, 5; setp.lt.u32 %p4, %tid32, 8; mov.b32 %d, 7;"
        f"@%p4 bra BESIDE; {CHOICE} BESIDE: @%p4 mov.b32 %d, %r8;"
    )
    found = lanes(body, "u4", on=machine(ordering="shipped"))
    assert found.tolist() == [5] * 8 + [7] * 24
