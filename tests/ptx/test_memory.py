"""Loads and stores in every state space, atomics and 8 x 8 matrices."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from on_lanes import bits32, bits64, kernel, lanes, machine, run

from fp4ref.errors import (
    ClusterFault,
    MisalignedAddress,
    MissingProxyFence,
    NotModelled,
    OutOfBounds,
    UninitialisedRead,
)
from fp4ref.ptx import Program, PtxError, UndefinedRegister, launch, parse
from fp4ref.trace import Range

SHARED = ".shared .align 16 .b8 tile[4096]; mov.u32 %r1, tile;"
MINE = f"{SHARED} mad.lo.u32 %r2, %tid32, 16, %r1;"


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "b32"])
def test_loads_extend_by_their_type(kind: str, trace: bool) -> None:
    a = bits32(1, 128)
    bits = int(kind[1:])
    body = f"{MINE} st.shared.b32 [%r2], %a; ld.shared.{kind} %d, [%r2];"
    d = lanes(body, "u4", a=a, on=machine(trace=trace))
    want = a.astype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}").astype(np.uint32)
    np.testing.assert_array_equal(d, want)


@pytest.mark.parametrize("trace", [False, True])
def test_vectors_are_consecutive(trace: bool) -> None:
    a, b = bits64(1, 128), bits64(2, 128)
    body = (
        f"{MINE} st.shared.v2.b64 [%r2], {{%a, %b}};"
        "ld.shared.v4.u32 {%r3, _, %r5, %r6}, [%r2]; xor.b32 %r3, %r3, %r5;"
        "ld.shared.u16 %h1, [%r2+14]; cvt.u32.u16 %r7, %h1; xor.b32 %r3, %r3, %r7;"
        "xor.b32 %d, %r3, %r6;"
    )
    d = lanes(body, "u4", a=a, b=b, on=machine(trace=trace))
    low, high = b.astype(np.uint32), (b >> np.uint64(32)).astype(np.uint32)
    want = a.astype(np.uint32) ^ low ^ (high >> np.uint32(16)) ^ high
    np.testing.assert_array_equal(d, want)


def test_256_bits_are_for_global_memory_alone() -> None:
    on = machine()
    source = on.gmem.upload("source", np.arange(8 * 32, dtype=np.uint32))
    body = (
        f"mad.wide.u32 %rd1, %tid32, 32, {source};"
        "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];"
        "ld.global.v4.b64 {_, _, _, %rd2}, [%rd1]; cvt.u32.u64 %r9, %rd2;"
        "add.u32 %d, %r8, %r9;"
    )
    d = lanes(body, "u4", on=on)
    np.testing.assert_array_equal(d, np.arange(32) * 16 + 13)
    with pytest.raises(PtxError, match=r"ld\.shared\.v8\.b32 moves 32 bytes"):
        run("ld.shared.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r1];")


@pytest.mark.parametrize("priority", ["evict_first", "evict_normal"])
def test_a_priority_of_l2_goes_with_256_bits(priority: str) -> None:
    """PTX: .level2::eviction_priority is for .v8.b32, .v4.b64 and what is as wide."""
    on = machine()
    source = on.gmem.upload("source", np.arange(8 * 32, dtype=np.uint32))
    at = f"mad.wide.u32 %rd1, %tid32, 32, {source};"
    wide = f"ld.global.L2::{priority}.v4.b64 {{_, _, _, %rd2}}, [%rd1];"
    d = lanes(f"{at} {wide} cvt.u32.u64 %d, %rd2;", "u4", on=on)
    np.testing.assert_array_equal(d, np.arange(32) * 8 + 6)
    narrow = f"ld.global.L2::{priority}.v4.b32 {{_, _, _, %d}}, [%rd1];"
    with pytest.raises(PtxError, match="moves 16 bytes; a priority of L2 goes with 32"):
        lanes(at + narrow, "u4", on=on)


def test_128_bit_registers() -> None:
    a, b = bits64(3, 64), bits64(4, 64)
    body = (
        f"{MINE} st.shared.v2.b64 [%r2], {{%a, %b}}; ld.shared.b128 %q0, [%r2];"
        "st.shared.b128 [%r2+1024], %q0; ld.shared.v2.b64 {_, %d}, [%r2+1024];"
    )
    np.testing.assert_array_equal(lanes(body, "u8", a=a, b=b), b)


def test_generic_addresses_may_name_another_space_in_each_lane() -> None:
    on = machine()
    table = on.gmem.upload("table", np.arange(100, 132, dtype=np.uint32))
    body = (
        ".shared .b32 word[32]; .local .align 4 .b8 mine[4];"
        "mov.u64 %rd1, word; mad.wide.u32 %rd1, %tid32, 4, %rd1;"
        "add.u32 %r1, %tid32, 200; st.shared.u32 [%rd1], %r1;"
        "mov.u64 %rd2, mine; add.u32 %r1, %tid32, 300; st.local.u32 [%rd2], %r1;"
        "cvta.shared.u64 %rd1, %rd1; cvta.local.u64 %rd2, %rd2;"
        f"mad.wide.u32 %rd3, %tid32, 4, {table};"
        "rem.u32 %r2, %tid32, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2;"
        "selp.b64 %rd3, %rd1, %rd3, %p1; selp.b64 %rd3, %rd2, %rd3, %p2;"
        "ld.u32 %d, [%rd3]; add.u32 %d, %d, 1; st.u32 [%rd3], %d; ld.u32 %d, [%rd3];"
    )
    lane = np.arange(32)
    want = lane + np.choose(lane % 3, [101, 201, 301])
    np.testing.assert_array_equal(lanes(body, "u4", on=on), want)


def test_remote_shared_memory_by_lane() -> None:
    on = machine(sms=2)
    out = on.gmem.upload("out", np.zeros(64, np.uint32))
    body = f"""
        .shared .b32 word[32];
        mov.u32 %r1, word;
        mov.u32 %r2, %tid.x;
        mad.lo.u32 %r3, %r2, 4, %r1;
        mov.u32 %r4, %cluster_ctarank;
        mad.lo.u32 %r5, %r4, 100, %r2;
        and.b32 %r6, %r2, 1;
        st.shared.u32 [%r3], %r5;
        barrier.cluster.arrive.release.aligned;
        barrier.cluster.wait.acquire.aligned;
        mapa.shared::cluster.u32 %r7, %r3, %r6;
        ld.shared::cluster.u32 %r8, [%r7];
        mad.lo.u32 %r9, %r4, 32, %r2;
        mad.wide.u32 %rd1, %r9, 4, {out};
        st.global.u32 [%rd1], %r8;
        barrier.cluster.arrive.relaxed;
        barrier.cluster.wait;
    """
    run(body, on=on, grid=(2, 1, 1), cluster=(2, 1, 1))
    lane = np.arange(32)
    found = on.gmem.contents(out, 256).view(np.uint32).reshape(2, 32)
    np.testing.assert_array_equal(found, np.tile(100 * (lane % 2) + lane, (2, 1)))
    with pytest.raises(ClusterFault, match="names rank 5"):
        run("ld.shared::cluster.u32 %r1, [0x5000400];")


def test_remote_shared_memory_by_byte() -> None:
    on = machine(sms=2)
    out = on.gmem.upload("out", np.zeros(64, np.uint8))
    body = f"""
        .shared .b8 all[32];
        mov.u32 %r1, all; mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2;
        mov.u32 %r4, %cluster_ctarank; mad.lo.u32 %r5, %r4, 100, %r2;
        st.shared.u8 [%r3], %r5;
        barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
        shr.u32 %r6, %r2, 4; mapa.shared::cluster.u32 %r7, %r3, %r6;
        ld.shared::cluster.u8 %r8, [%r7];
        mad.lo.u32 %r9, %r4, 32, %r2; cvt.u64.u32 %rd1, %r9;
        add.u64 %rd1, %rd1, {out}; st.global.u8 [%rd1], %r8;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    run(body, on=on, grid=(2, 1, 1), cluster=(2, 1, 1))
    want = [lane + 100 * (lane >> 4) for lane in range(32)]
    assert on.gmem.contents(out, 64).tolist() == want * 2


def test_of_two_lanes_that_store_to_one_address_the_last_wins() -> None:
    for trace in (False, True):
        body = f"{SHARED} st.shared.u32 [%r1], %tid32; bar.warp.sync -1;"
        body += "ld.shared.u32 %d, [%r1];"
        assert (lanes(body, "u4", on=machine(trace=trace)) == 31).all()


def test_parameters_are_read_in_place_or_by_address() -> None:
    on = machine()
    out = on.gmem.upload("out", np.zeros(2, np.uint32))
    params = ".param .u64 out, .param .align 16 .b8 block[64]"
    body = """
        ld.param.u64 %rd1, [out];
        ld.param.v2.u32 {%r1, %r2}, [block+8];
        mov.b64 %rd2, block;
        ld.param.u32 %r3, [%rd2+20];
        cvta.param.u64 %rd3, %rd2;
        ld.u32 %r4, [%rd3+24];
        add.u32 %r5, %r2, %r3;
        st.global.v2.u32 [%rd1], {%r5, %r4};
    """
    values = struct.pack("<Q8x16I", out, *range(16))
    run(body, params=params, values=values, on=on)
    assert on.gmem.contents(out, 8).view(np.uint32).tolist() == [3 + 5, 6]


def test_module_variables_keep_their_value_between_launches() -> None:

    on = machine()
    out = on.gmem.upload("out", np.zeros(1, np.uint32))
    module = ".global .align 4 .u32 counter = 40; .const .align 4 .b8 one[4] = {1, 0};"
    body = f"""
        mov.u64 %rd1, counter;
        ld.const.u32 %r2, [one];
        ld.global.u32 %r1, [%rd1];
        add.u32 %r1, %r1, %r2;
        st.global.u32 [counter], %r1;
        st.global.u32 [{out}], %r1;
    """
    program = Program.of(parse(kernel(body, module=module)))
    for _ in range(2):
        launch(on, program, (1, 1, 1), (1, 1, 1), b"")
    assert on.gmem.contents(out, 4).view(np.uint32)[0] == 42


def test_dynamic_shared_memory_starts_behind_static_at_its_alignment() -> None:
    module = ".extern .shared .align 16 .b8 dynamic[]; .shared .b32 static;"
    body = (
        "mov.u32 %r1, dynamic; mov.u32 %r2, static; mad.lo.u32 %d, %r1, 0x10000, %r2;"
    )
    assert lanes(body, "u4", module=module, smem_nbytes=64)[0] == 0x04100400
    wide = module.replace("16", "128")
    assert lanes(body, "u4", module=wide, smem_nbytes=64)[0] == 0x04800400
    alone = ".extern .shared .align 16 .b8 dynamic[];"
    assert lanes("mov.u32 %d, dynamic;", "u4", module=alone, smem_nbytes=64)[0] == 0x400


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize(
    ("text", "fault", "match"),
    [
        ("ld.shared.u32 %r2, [%r1+2];", MisalignedAddress, "of 4 bytes at 0x402"),
        ("ld.shared.v4.u32 {%r2,%r3,%r4,%r5}, [%r1+8];", MisalignedAddress, "16 bytes"),
        ("ld.shared.b128 %q1, [%r1+8];", MisalignedAddress, "of 16 bytes"),
        ("st.shared.u16 [%r1+1], %h1;", MisalignedAddress, "of 2 bytes"),
        ("ld.shared.u32 %r2, [%r1+64];", UninitialisedRead, "never written"),
        ("st.shared.u32 [%r1+4096], %r1;", OutOfBounds, "outside smem"),
        ("ld.shared.u32 %r2, [0];", OutOfBounds, "outside smem"),
        ("ld.local.u32 %r2, [8];", OutOfBounds, "local address"),
        ("st.local.u32 [8], %r1;", OutOfBounds, "local address"),
        ("ld.param.u32 %r2, [1024];", OutOfBounds, "parameter address"),
        ("ld.global.u32 %r2, [1024];", OutOfBounds, "not inside one allocation"),
        ("st.global.u32 [%rd1], %r1;", OutOfBounds, "not inside one allocation"),
    ],
)
def test_bad_accesses_are_faults(
    text: str, fault: type[Exception], match: str, trace: bool
) -> None:
    on = machine(trace=trace)
    small = on.gmem.upload("small", np.zeros(1, np.uint16))
    body = f"{SHARED} mov.u64 %rd1, {small}; mov.u16 %h1, 1; {text}"
    with pytest.raises(fault, match=match):
        run(body, on=on)


def test_a_fault_says_at_which_statement_it_happened() -> None:
    body = "mov.u32 %r1, 1;\n    ld.shared.u32 %r2, [0];\n    mov.u32 %r3, 1;"
    number = kernel(body).splitlines().index("    ld.shared.u32 %r2, [0];") + 1
    with pytest.raises(OutOfBounds) as caught:
        run(body)
    assert caught.value.statement == f"PTX:{number}"


def test_a_store_to_a_parameter_is_refused() -> None:
    body = "mov.b64 %rd1, x; cvta.param.u64 %rd1, %rd1; st.u32 [%rd1], 1;"
    with pytest.raises(PtxError, match="parameter is stored to"):
        run(body, params=".param .u64 x", values=bytes(8))


@pytest.mark.parametrize("trace", [False, True])
def test_shared_stores_await_a_proxy_fence(trace: bool) -> None:
    on = machine(trace=trace)

    def body(fence: str) -> str:
        at = "mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r2, 4, %r1;"
        return f"{SHARED} {at} st.shared.u32 [%r1], 5; {fence}"

    run(body("fence.proxy.async.shared::cta;"), on=on)
    on.sms[0].smem.read_async(Range("smem0", 0x400, 128))
    for fence in ("", "fence.proxy.async.global;", "fence.acq_rel.cta;"):
        on = machine(trace=trace)
        run(body(fence), on=on)
        with pytest.raises(MissingProxyFence, match="128 bytes"):
            on.sms[0].smem.read_async(Range("smem0", 0x400, 128))


ATOMICS = {
    "add": ("u32", lambda old, b: old + b),
    "min": ("s32", lambda old, b: min(old, b)),
    "max": ("u32", lambda old, b: max(old, b)),
    "and": ("b32", lambda old, b: old & b),
    "or": ("b32", lambda old, b: old | b),
    "xor": ("b32", lambda old, b: old ^ b),
    "exch": ("b32", lambda old, b: b),
    "inc": ("u32", lambda old, b: 0 if old >= b else old + 1),
    "dec": ("u32", lambda old, b: b if old == 0 or old > b else old - 1),
}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_return_the_old_value_lane_after_lane(name: str) -> None:
    kind, operation = ATOMICS[name]
    a = bits32(5, 32)
    body = (
        f"{SHARED} setp.eq.u32 %p1, %tid32, 0; @%p1 st.shared.u32 [%r1], 77;"
        f"atom.shared.{name}.{kind} %d, [%r1], %a;"
    )
    values = a.view(np.int32) if kind[0] == "s" else a
    old, want = 77, []
    for b in values.tolist():
        want.append(old % (1 << 32))
        old = operation(old, b)
        old = old if kind[0] == "s" else old % (1 << 32)
    assert lanes(body, "u4", a=a).tolist() == want


def test_reductions_of_floats_and_64_bits() -> None:
    on = machine()
    out = on.gmem.upload("out", np.zeros(2, np.uint64))
    run(
        f"""
        mov.u64 %rd1, {out};
        mov.f32 %r1, 0f3F000000;
        red.relaxed.gpu.global.add.f32 [%rd1], %r1;
        mov.u64 %rd2, 0x100000000;
        red.global.add.u64 [%rd1+8], %rd2;
        atom.add.u64 %rd3, [%rd1+8], 1;
        """,
        on=on,
    )
    data = on.gmem.contents(out, 16)
    assert data[:4].view(np.float32)[0] == 16
    assert data[8:].view(np.uint64)[0] == (32 << 32) + 32


IN_SHARED = f"{SHARED} mad.lo.u32 %r2, %tid32, 4, %r1; st.shared.b32 [%r2], %a;"
CLUSTER = f"{IN_SHARED} mapa.shared::cluster.u32 %r2, %r2, 0;"
GENERIC = f"{IN_SHARED} cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1;"
IN_GLOBAL = (
    "ld.param.u64 %rd1, [k_out]; mad.lo.u64 %rd1, %tid64, 4, %rd1;"
    "st.global.b32 [%rd1], %a;"
)
PLACES = {
    "shared": (".shared", IN_SHARED, "%r2"),
    "shared::cta": (".shared::cta", IN_SHARED, "%r2"),
    "shared::cluster": (".shared::cluster", CLUSTER, "%r2"),
    "generic shared": ("", GENERIC, "%rd1"),
    "global": (".global", IN_GLOBAL, "%rd1"),
    "generic global": ("", IN_GLOBAL, "%rd1"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["atom", "red"])
def test_float_addition_keeps_subnormals_in_shared_memory_only(
    name: str, place: str
) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.integers(0, 1 << 23, 256).astype(np.uint32) for _ in range(2))
    sign = (np.arange(256) % 2).astype(np.uint32) << np.uint32(31)
    space, address, at = PLACES[place]
    target = "%r3, " if name == "atom" else ""
    body = f"{address} {name}{space}.add.f32 {target}[{at}], %b; ld.b32 %d, [{at}];"
    body = body.replace("ld.b32", f"ld{space}.b32")
    found = lanes(body, "u4", a=a | sign, b=b | sign)
    # Subnormals of one sign add as integers, up into the normal numbers.
    np.testing.assert_array_equal(found, sign | (a + b if "shared" in place else 0))


REFUSED = [
    "atom.global.add.s64 %rd1, [%rd1], %rd2",
    "atom.shared.exch.b128 %q1, [%r1], %q2",
    "red.async.x [%r1], %r2",
    "ld.global.f16x2 %r1, [%rd1]",
    "ld.global.strange.u32 %r1, [%rd1]",
    "ld.global.mmio.u32 %r1, [%rd1]",
    "ld.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd5]",
    "ld.global.v8.b16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%rd1]",
    "st.async.shared::cluster.b32 [%r1], %r2, [%r3]",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1}, [%r2]",
    "prefetch.global.L2 [%rd1]",
]


@pytest.mark.parametrize("text", REFUSED)
def test_other_accesses_are_refused_by_name(text: str) -> None:
    opcode = text.split()[0].replace(".", "[.]")
    with pytest.raises(NotModelled, match=rf"{opcode} \(line \d+\)"):
        run(f"{text};")


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("size_last", [False, True])
def test_matrices_are_spread_over_the_lanes(
    count: int, trans: str, size_last: bool
) -> None:
    """The size of a matrix may be the last modifier, as CuTe has it."""
    form, store = f"m8n8.x{count}{trans}", "b16 [%rd1]"
    if size_last:
        form, store = f"x{count}{trans}.m8n8", "shared.b16 [%r6]"
    words = bits32(6, 32)
    names = [f"%r{10 + i}" for i in range(count)]
    listed = "{" + ", ".join(names) + "}"
    body = (
        f"{SHARED} shl.b32 %r2, %tid32, 4; add.u32 %r2, %r2, %r1;"
        "add.u32 %r3, %a, 1; add.u32 %r4, %a, 2; add.u32 %r5, %a, 3;"
        "st.shared.v4.u32 [%r2], {%a, %r3, %r4, %r5};"
        f"ldmatrix.sync.aligned.{form}.shared.b16 {listed}, [%r2];"
        f"add.u32 %r6, %r2, 1024; cvt.u64.u32 %rd1, %r6; cvta.shared.u64 %rd1, %rd1;"
        f"stmatrix.sync.aligned.{form}.{store}, {listed};"
        f"mov.u32 %d, 0;"
    )
    for i, name in enumerate(names):
        found = lanes(body + f"mov.u32 %d, {name};", "u4", a=words)
        rows = np.stack([words[8 * i : 8 * i + 8] + k for k in range(4)], axis=1)
        matrix = rows.astype(np.uint32).view(np.uint16).reshape(8, 8)
        matrix = matrix.T if trans else matrix
        np.testing.assert_array_equal(
            found, np.ascontiguousarray(matrix).view(np.uint32).ravel()
        )
        limit = 8 * count
        back = lanes(
            f"{body} setp.lt.u32 %p1, %tid32, {limit};@%p1 ld.shared.u32 %d, [%r6+8];",
            "u4",
            a=words,
        )
        np.testing.assert_array_equal(back[:limit], words[:limit] + np.uint32(2))


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_a_store_of_one_byte_needs_no_others(space: str) -> None:
    """CUTLASS 91 packs one byte of four, and stores that one."""
    pack = "cvt.u8.u32 %b1, %tid32; mov.b32 %r1, {%b1, %b2, %b3, %b4};"
    there = {
        "global": "ld.param.u64 %rd1, [k_out]; mad.lo.u64 %rd1, %tid64, 4, %rd1;",
        "shared": ".shared .align 4 .b8 slot[128]; mov.u64 %rd1, slot;"
        "mad.lo.u64 %rd1, %tid64, 4, %rd1;",
        "local": ".local .align 4 .b8 slot[4]; mov.u64 %rd1, slot;",
    }[space]
    back = f"ld.{space}.u8 %r2, [%rd1]; mov.b32 %d, %r2;"
    found = lanes(f"{pack}{there} st.{space}.b8 [%rd1], %r1; {back}", "u4")
    assert found.tolist() == list(range(32))
    whole = f"{pack}{there} st.{space}.b16 [%rd1], %r1; ld.{space}.u16 %r2, [%rd1];"
    with pytest.raises(UndefinedRegister):
        lanes(f"{whole} mov.b32 %d, %r2;", "u4")
