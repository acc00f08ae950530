"""Shuffles, votes, matches, reductions and election over the lanes of a warp."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import bits32, lanes, run

from fp4ref.ptx import PartialWarp, PtxError, UndefinedRegister

LANE = np.arange(32)


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The pseudo-code of the PTX text: (source lane, predicate)."""
    b_value, clamp, segmask = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segmask) | (clamp & ~segmask)
    min_lane = lane & segmask
    if mode == "up":
        j = lane - b_value
        valid = j >= max_lane
    elif mode == "down":
        j = lane + b_value
        valid = j <= max_lane
    elif mode == "bfly":
        j = lane ^ b_value
        valid = j <= max_lane
    else:
        j = min_lane | (b_value & ~segmask)
        valid = j <= max_lane
    return (j if valid else lane), valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("c", [0, 31, 0x181F, 0x1C07, 0x1807, 0x101F, 15, 0x1E00])
def test_shuffles_follow_the_text(mode: str, c: int) -> None:
    a = bits32(1, 32)
    b = np.random.default_rng(c).integers(0, 40, 32).astype(np.uint32)
    body = (
        f"shfl.sync.{mode}.b32 %r1|%p1, %a, %b, {c}, 0xffffffff;"
        "selp.b32 %r2, 1, 0, %p1; xor.b32 %d, %r1, %r2;"
    )
    d = lanes(body, "u4", a=a, b=b)
    for lane in range(32):
        source, valid = shuffled(mode, lane, int(b[lane]), c)
        assert d[lane] == int(a[source]) ^ valid


def test_a_value_from_a_lane_that_does_not_take_part_is_undefined() -> None:
    part = "setp.ge.u32 %p1, %tid32, 16; @%p1 bra E;"
    good = "shfl.sync.bfly.b32 %d, %tid32, 8, 31, 0xffff;"
    bad = "shfl.sync.bfly.b32 %d, %tid32, 16, 31, 0xffff;"
    end = "E: @%p1 mov.u32 %d, 0;"
    d = lanes(f"{part} {good} {end}", "u4")
    np.testing.assert_array_equal(d, np.where(LANE < 16, LANE ^ 8, 0))
    with pytest.raises(UndefinedRegister, match="lane 0"):
        lanes(f"{part} {bad} {end}", "u4")


def test_an_undefined_value_is_undefined_where_it_arrives() -> None:
    body = (
        "setp.ne.u32 %p1, %tid32, 3; @%p1 mov.u32 %r1, 1;"
        "shfl.sync.up.b32 %r2, %r1, 1, 0, -1; setp.ne.u32 %p2, %tid32, LANE;"
        "selp.u32 %d, %r2, 7, %p2;"
    )
    assert (lanes(body.replace("LANE", "4"), "u4") == np.where(LANE == 4, 7, 1)).all()
    with pytest.raises(UndefinedRegister, match="lane 4"):
        lanes(body.replace("LANE", "3"), "u4")


def test_member_masks() -> None:
    half = (
        "setp.lt.u32 %p1, %tid32, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1;"
        "shfl.sync.idx.b32 %d, %tid32, 5, 31, %r1;"
    )
    with pytest.raises(UndefinedRegister, match="lane 16"):
        lanes(half.replace("%d", "%r2") + "mov.u32 %d, %r2;", "u4")
    own = half.replace(" 5, 31,", " 5, 0x101f,")
    np.testing.assert_array_equal(lanes(own, "u4"), 16 * (LANE // 16) + 5)
    with pytest.raises(PartialWarp, match="member mask 0x0000ffff"):
        lanes("shfl.sync.idx.b32 %d, %tid32, 5, 31, 0xffff;", "u4")


def test_votes() -> None:
    a = bits32(2, 32)
    for text, want in [
        ("ballot.b32 %d, %p1, -1;", int((1 << LANE)[a >> 31 == 1].sum())),
        ("any.pred %p2, %p1, -1; selp.b32 %d, 1, 0, %p2;", int((a >> 31 == 1).any())),
        ("all.pred %p2, %p1, -1; selp.b32 %d, 1, 0, %p2;", int((a >> 31 == 1).all())),
        ("all.pred %p2, !%p3, -1; selp.b32 %d, 1, 0, %p2;", 1),
        ("uni.pred %p2, %p3, -1; selp.b32 %d, 1, 0, %p2;", 1),
        ("uni.pred %p2, %p1, -1; selp.b32 %d, 1, 0, %p2;", 0),
    ]:
        body = f"setp.lt.s32 %p1, %a, 0; setp.ne.u32 %p3, 0, 0; vote.sync.{text}"
        assert (lanes(body, "u4", a=a) == want).all(), text


def test_match() -> None:
    a = bits32(3, 32) % np.uint32(4)
    d = lanes("match.any.sync.b32 %d, %a, -1;", "u4", a=a)
    want = [sum(1 << j for j in range(32) if a[j] == a[i]) for i in range(32)]
    assert d.tolist() == want
    body = "match.all.sync.b32 %r1|%p1, %a, -1; selp.b32 %d, %r1, 9, %p1;"
    assert (lanes(body, "u4", a=a) == 9).all()
    assert (lanes(body, "u4", a=a * np.uint32(0)) == 0xFFFFFFFF).all()


def test_redux() -> None:
    a = bits32(4, 32)
    signed = a.view(np.int32)
    for text, want in [
        ("add.u32", int(a.sum(dtype=np.uint64)) % (1 << 32)),
        ("add.s32", int(a.sum(dtype=np.uint64)) % (1 << 32)),
        ("min.u32", int(a.min())),
        ("max.s32", int(signed.max()) % (1 << 32)),
        ("and.b32", int(np.bitwise_and.reduce(a))),
        ("xor.b32", int(np.bitwise_xor.reduce(a))),
    ]:
        d = lanes(f"redux.sync.{text} %d, %a, -1;", "u4", a=a)
        assert (d == want).all(), text


def test_elect_takes_the_lowest_lane() -> None:
    body = "elect.sync %r1|%p1, -1; selp.b32 %d, 1, 0, %p1; add.u32 %d, %d, %r1;"
    np.testing.assert_array_equal(lanes(body, "u4"), LANE == 0)
    part = (
        "mov.u32 %d, 0; setp.lt.u32 %p1, %tid32, 9; @%p1 bra E;"
        "elect.sync _|%p2, 0xfffffe00; selp.b32 %d, 1, 0, %p2; E:"
    )
    np.testing.assert_array_equal(lanes(part, "u4"), LANE == 9)


@pytest.mark.parametrize(
    "text",
    ["shfl.idx.b32 %r1, %r2, 0, 31", "shfl.sync.idx.b64 %rd1, %rd2, 0, 31, -1",
     "vote.all.pred %p1, %p2", "match.all.sync.u32 %r1, %r2, -1",
     "match.any.sync.b32 %r1|%p1, %r2, -1", "elect.sync %p1, -1"],
)  # fmt: skip
def test_forms_that_ptx_has_not_are_errors_of_the_text(text: str) -> None:
    opcode = text.split()[0].replace(".", "[.]")
    with pytest.raises(PtxError, match=rf"PTX line \d+: {opcode} "):
        run(f"{text};")
