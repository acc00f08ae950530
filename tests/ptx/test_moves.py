"""Moves, packing, predicates, selection, and how undefined registers flow."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import bits32, bits64, kernel, lanes, machine, run

from fp4ref.ptx import Program, PtxError, UndefinedRegister, launch, parse


def test_a_64_bit_register_is_packed_low_half_first() -> None:
    a, b = bits32(1), bits32(2)
    d = lanes("mov.b64 %d, {%a, %b};", "u8", a=a, b=b)
    np.testing.assert_array_equal(d, b.astype(np.uint64) << np.uint64(32) | a)
    back = lanes("mov.b64 {_, %d}, %a;", "u4", a=d)
    np.testing.assert_array_equal(back, b)


def test_bytes_and_halves_are_packed_and_unpacked() -> None:
    a = bits32(3)
    body = (
        "mov.b32 {%b0, %b1, %b2, %b3}, %a; mov.b32 %r1, {%b3, %b2, %b1, %b0};"
        "mov.b32 {%h0, %h1}, %r1; mov.b32 %d, {%h1, %h0};"
    )
    want = a.byteswap().view(np.uint16).reshape(-1, 2)[:, ::-1].copy().view(np.uint32)
    np.testing.assert_array_equal(lanes(body, "u4", a=a), want[:, 0])


def test_unpacking_onto_the_source_reads_it_first() -> None:
    a = bits32(4)
    body = "mov.b32 %r1, %a; mov.b32 {%h0, %h1}, %r1; mov.b32 %r1, {%h1, %h1};"
    d = lanes(f"{body} mov.b32 %d, %r1;", "u4", a=a)
    high = a >> np.uint32(16)
    np.testing.assert_array_equal(d, high << np.uint32(16) | high)
    swap = (
        "mov.b64 %rd1, %a; mov.b64 {%r1, %r2}, %rd1;"
        "mov.b64 %rd1, {%r2, %r1}; mov.b64 %d, %rd1;"
    )
    swapped = lanes(swap, "u8", a=bits64(1))
    x = bits64(1)
    np.testing.assert_array_equal(swapped, x << np.uint64(32) | x >> np.uint64(32))


def test_128_bits_are_two_halves() -> None:
    a, b = bits64(2), bits64(3)
    body = "mov.b128 %q0, {%a, %b}; mov.b128 %q1, %q0; mov.b128 {_, %d}, %q1;"
    np.testing.assert_array_equal(lanes(body, "u8", a=a, b=b), b)


@pytest.mark.parametrize(
    ("literal", "want"),
    [
        ("-1", 0xFFFFFFFF), ("0x10", 16), ("017", 15), ("0b101", 5), ("4294967295U",
        0xFFFFFFFF), ("0f40C00000", 0x40C00000), ("1.5", 0x3FC00000), ("-2.0",
        0xC0000000), ("1.0e3", 0x447A0000), ("0d4008000000000000", 0x40400000),
    ],
)  # fmt: skip
def test_literals(literal: str, want: int) -> None:
    kind = "f32" if "." in literal or literal[:2] in ("0f", "0d") else "u32"
    assert lanes(f"mov.{kind} %d, {literal};", "u4")[0] == want


def test_types_come_from_the_opcode_not_from_the_register() -> None:
    a = bits32(5)
    d = lanes("cvt.s64.s32 %rd1, %a; setp.lt.s32 %p1, %a, -511; mov.b64 %d, %rd1;"
              "@%p1 mov.b64 %d, 7;", "i8", a=a)  # fmt: skip
    signed = a.view(np.int32).astype(np.int64)
    np.testing.assert_array_equal(d, np.where(signed < -511, 7, signed))


def test_setp_combines_and_gives_the_complement() -> None:
    a, b = bits32(6), bits32(7)
    body = (
        "setp.ne.u32 %p0, %a, 0; setp.lt.and.u32 %p1|%p2, %a, %b, %p0;"
        "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; or.b32 %d, %r1, %r2;"
    )
    d = lanes(body, "u4", a=a, b=b)
    less = a < b
    want = np.where((a != 0) & less, 1, 0) + np.where((a != 0) & ~less, 2, 0)
    np.testing.assert_array_equal(d, want)


def test_a_setp_may_overwrite_the_predicate_it_combines_with() -> None:
    a = bits32(8)
    body = (
        "setp.ge.u32 %p1, %a, 100; setp.lt.and.u32 %p1|%p2, %a, 1000, %p1;"
        "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; or.b32 %d, %r1, %r2;"
    )
    want = np.where(a < 100, 0, np.where(a < 1000, 1, 2))
    np.testing.assert_array_equal(lanes(body, "u4", a=a), want)


def test_predicate_logic_and_negated_operands() -> None:
    a = bits32(9)
    body = (
        "setp.lt.u32 %p1, %a, 1000; setp.gt.s32 %p2, %a, 5; xor.pred %p3, %p1, %p2;"
        "not.pred %p3, %p3; or.pred %p4, %p3, %p1; selp.u32 %d, 1, 0, %p4;"
    )
    p1, p2 = a < 1000, a.view(np.int32) > 5
    np.testing.assert_array_equal(lanes(body, "u4", a=a), ~(p1 ^ p2) | p1)


def test_guards_leave_the_other_lanes_alone() -> None:
    a = bits32(10)
    body = "mov.u32 %d, 1; setp.lt.s32 %p1, %a, 0; @%p1 mov.u32 %d, 2; @!%p1 mov.u32 "
    d = lanes(body + "%r1, 9;", "u4", a=a)
    np.testing.assert_array_equal(d, np.where(a >> np.uint32(31), 2, 1))


# -- undefined registers ---------------------------------------------


def test_an_undefined_value_flows_through_arithmetic() -> None:
    assert lanes("add.u32 %r1, %r2, 1; mul.lo.u32 %r3, %r1, 2; mov.u32 %d, 5;", "u4")[
        0
    ] == 5  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "add.u32 %d, %r2, 1;",
        "@%p1 mov.u32 %d, 1; mov.u32 %d, 1;",
        "mov.u32 %d, 1; @%p1 bra L; L:",
        "mov.u32 %d, 1; ld.shared.u32 %r1, [%r9];",
        "mov.u32 %d, 1; st.local.u32 [%r9], %d;",
        "mov.u32 %r1, 1; mov.b64 %rd1, {%r1, %r9}; mov.b64 {_, %d}, %rd1;",
        "mov.u32 %r1, 1; prmt.b32 %d, %r1, %r9, 0x4210;",
        "mov.u32 %r1, 1; prmt.b32 %d, %r1, %r1, %r9;",
        "mov.u32 %r1, 1; prmt.b32 %r2, %r1, %r9, 0x4210; add.u32 %d, %r2, 0;",
        "cvt.u32.u16 %r1, %h9; cvt.s32.s16 %d, %h9;",
        "mov.u32 %d, 1; bar.sync %r9;",
    ],
)
def test_an_undefined_address_store_or_branch_is_a_fault(text: str) -> None:
    with pytest.raises(UndefinedRegister, match=r"never written[\s\S]*PTX line"):
        lanes(text, "u4")


def test_selp_needs_only_the_value_it_takes() -> None:
    body = "setp.lt.u32 %p1, %tid32, 64; selp.u32 %d, 7, %r9, %p1;"
    assert (lanes(body, "u4") == 7).all()
    with pytest.raises(UndefinedRegister, match=r"in lane 3\n"):
        lanes("setp.ne.u32 %p1, %tid32, 3; selp.u32 %d, 7, %r9, %p1;", "u4")


def test_a_predicated_write_defines_only_its_lanes() -> None:
    even = "and.b32 %r1, %tid32, 1; setp.eq.u32 %p1, %r1, 0;"
    with pytest.raises(UndefinedRegister, match=r"in lane 1\n"):
        lanes(f"{even} @%p1 mov.u32 %d, 1;", "u4")
    assert lanes(f"{even} @%p1 mov.u32 %d, 1; @!%p1 mov.u32 %d, 2;", "u4").sum() == 48


def test_an_undefined_value_may_be_spilled_but_not_used() -> None:
    module = ""
    spill = ".local .align 8 .b8 depot[16]; mov.u64 %rd1, depot;"
    good = (
        f"{spill} st.local.u32 [%rd1], %r9; mov.u32 %d, 3; st.local.u32 [%rd1+4], %d;"
    )
    body = f"{good} ld.local.v2.u32 {{%r1, %r2}}, [%rd1]; mov.u32 %d, 3;"
    assert (lanes(body, "u4", module=module) == 3).all()
    with pytest.raises(UndefinedRegister):
        lanes(f"{good} ld.local.u32 %d, [%rd1];", "u4")


def test_bytes_that_are_moved_about_stay_defined() -> None:
    """The upper bytes of a word are left open and dropped later, as LLVM does."""
    for text in (
        "prmt.b32 %r2, %a, %r9, 0x4240; prmt.b32 %d, %r2, 0, 0x4442;",
        "mov.b64 %rd1, {%a, %r9}; mov.b64 %rd2, %rd1; mov.b64 {%d, _}, %rd2;",
        "mov.b32 {%b0, %b1, %b2, %b3}, %a; mov.b32 %r2, {%b2, %b7, %b7, %b7};"
        "cvt.u8.u32 %h1, %r2; cvt.u32.u16 %r3, %h1; prmt.b32 %d, %r3, 0, 0x4440;",
    ):
        a = bits32(11)
        d = lanes(text, "u4", a=a)
        want = a if "rd1" in text else a >> np.uint32(16) & np.uint32(0xFF)
        np.testing.assert_array_equal(d, want)


def test_wrong_operands_are_named_with_their_line() -> None:
    for text, match in [
        ("add.u32 %d, %r1;", r"line \d+: add.u32 with 2 operands"),
        ("add.u32 %d, %p1, 1;", "mixes predicates"),
        ("mov.u32 %d, nothing;", "unknown symbol nothing"),
        ("mov.u32 %d, %clock64x;", "unknown register %clock64x"),
        ("mov.b64 %q0, %rd1;", "b128"),
        ("@%r1 mov.u32 %d, 1;", "guard is not a predicate"),
        ("selp.u32 7, 1, 2, %p1;", "needs a register"),
    ]:
        with pytest.raises(PtxError, match=match):
            lanes(text, "u4")


def test_special_registers() -> None:
    want = {
        "%laneid": np.arange(64) % 32,
        "%warpid": np.arange(64) // 32,
        "%ntid.x": np.full(64, 64),
        "%nctaid.y": np.full(64, 1),
        "%lanemask_lt": (1 << (np.arange(64) % 32)) - 1,
        "%lanemask_ge": 0xFFFFFFFF & ~((1 << (np.arange(64) % 32)) - 1),
        "%dynamic_smem_size": np.full(64, 256),
        "%total_smem_size": np.full(64, 256),
        "%aggr_smem_size": np.full(64, 256 + 1024),
    }
    for name, values in want.items():
        d = lanes(f"mov.u32 %d, {name};", "u4", a=bits32(1, 64), smem_nbytes=256)
        np.testing.assert_array_equal(d, values, err_msg=name)


def test_shared_memory_is_counted_as_an_h200_counts_it() -> None:
    """16 static and 2,048 dynamic bytes: 2,176 in all, 3,088 with what is reserved."""
    used = ".shared .b8 few[16]; .reg .b32 %few; mov.u32 %few, few;"
    for name, wanted in (("total", 2176), ("aggr", 3088), ("dynamic", 2048)):
        d = lanes(f"{used} mov.u32 %d, %{name}_smem_size;", "u4", smem_nbytes=2048)
        assert (d == wanted).all(), name


@pytest.mark.parametrize("ctas", [1, 2])
def test_a_kernel_knows_whether_it_has_clusters(ctas: int) -> None:
    on = machine(sms=2)
    out = on.gmem.upload("out", np.zeros(1, np.uint32))
    text = kernel(
        "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1;"
        f"mov.u64 %rd1, {out}; st.global.u32 [%rd1], %r1;"
    )
    launch(on, Program.of(parse(text)), (2, 1, 1), (1, 1, 1), b"", cluster=(ctas, 1, 1))
    assert on.gmem.contents(out, 4).view("u4")[0] == (ctas > 1)


def test_addresses_convert_to_generic_and_back() -> None:
    body = (
        ".shared .align 16 .b8 tile[64]; mov.u64 %rd1, tile; cvta.shared.u64 %rd2, "
        "%rd1; cvta.to.shared.u64 %rd3, %rd2; isspacep.shared %p1, %rd2;"
        "isspacep.local %p2, %rd2; sub.u64 %rd4, %rd3, %rd1; cvt.u32.u64 %d, %rd4;"
        "@!%p1 add.u32 %d, %d, 1; @%p2 add.u32 %d, %d, 2;"
    )
    assert (lanes(body, "u4") == 0).all()


def test_mapa_maps_each_lane_to_its_own_rank() -> None:
    body = (
        ".shared .b32 x; mov.u32 %r1, x; and.b32 %r2, %tid.x, 1;"
        "mapa.shared::cluster.u32 %r3, %r1, %r2; shr.u32 %r4, %r3, 24;"
        "setp.ne.u32 %p1, %r4, %r2; @%p1 trap; and.b32 %r5, %r3, 0xFFFFFF;"
        "mov.u32 %r6, %cluster_ctarank; shl.b32 %r6, %r6, 24; or.b32 %r5, %r5, %r6;"
        "setp.ne.u32 %p1, %r5, %r1; @%p1 trap;"
    )
    run(body, on=machine(sms=2), grid=(2, 1, 1), cluster=(2, 1, 1))


CONSTANTS = ".const .align 8 .b32 table[4] = {1, 2};"


@pytest.mark.parametrize(
    ("space", "holds"),
    [("global", 0b0001), ("const", 0b0010), ("shared", 0b0100), ("local", 0b1000)],
)
def test_a_generic_address_is_in_one_space(space: str, holds: int) -> None:
    body = (
        ".shared .b32 tile; .local .b32 own; mov.u64 %rd1, %at; mov.u64 %rd2, table;"
        "add.u64 %rd2, %rd2, 12; cvta.const.u64 %rd2, %rd2;"
        "mov.u64 %rd3, tile; cvta.shared.u64 %rd3, %rd3;"
        "mov.u64 %rd4, own; cvta.local.u64 %rd4, %rd4; mov.u32 %d, 0;"
    )
    for i, address in enumerate(("%rd1", "%rd2", "%rd3", "%rd4")):
        body += f"isspacep.{space} %p1, {address}; @%p1 or.b32 %d, %d, {1 << i};"
    found = lanes(body, "u4", a=bits32(1, 32), module=CONSTANTS)
    assert (found == holds).all()


def test_past_the_last_constant_is_not_constant() -> None:
    body = (
        "mov.u64 %rd2, table; add.u64 %rd2, %rd2, 16; cvta.const.u64 %rd2, %rd2;"
        "isspacep.const %p1, %rd2; selp.u32 %d, 1, 0, %p1;"
    )
    assert not lanes(body, "u4", module=CONSTANTS).any()


def test_a_moved_predicate_has_a_value_where_its_source_has() -> None:
    some = "setp.lt.u32 %p1, %tid32, 8; @%p1 setp.lt.u32 %p2, %tid32, 4;"
    use = "mov.b32 %d, 7; {guard} selp.b32 %d, 1, 0, %p3;"
    found = lanes(f"{some} mov.pred %p3, %p2; {use.format(guard='@%p1')}", "u4")
    assert found.tolist() == [1] * 4 + [0] * 4 + [7] * 24
    with pytest.raises(UndefinedRegister, match="%d is used, but was never written"):
        lanes(f"{some} mov.pred %p3, %p2; {use.format(guard='')}", "u4")


@pytest.mark.parametrize("at", range(4))
def test_bytes_of_a_register_without_a_value_have_none_the_first_of_all_too(at) -> None:
    """%b0 is the first register that the kernel declares."""
    parts = ["%b1"] * 4
    parts[at] = "%b0"
    body = (
        f"cvt.rn.satfinite.e2m1x2.f32 %b1, %a, %a; mov.b32 %d, {{{', '.join(parts)}}};"
    )
    with pytest.raises(UndefinedRegister, match="%d is used, but was never written"):
        lanes(body, "u4", a=np.ones(32, np.float32))
