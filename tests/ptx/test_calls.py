"""Calls: arguments and results lane by lane, recursion, frames, and what is refused."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pytest
from on_lanes import kernel, lanes, machine, run

from fp4ref.device import compile_cuda
from fp4ref.device.compile import nvrtc_version
from fp4ref.errors import NotModelled
from fp4ref.ptx import Program, PtxError, launch, parse
from fp4ref.ptx.run.calls import CallDepth

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
LANE = np.arange(32, dtype=np.uint32)

TWICE = """
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 x, y; ld.param.b32 x, [a]; add.u32 y, x, x; st.param.b32 [r], y; ret; }
"""
CALL_TWICE = """
    { .param .b32 p, q; st.param.b32 [p], %a; call (q), twice, (p);
      ld.param.b32 %d, [q]; }
"""


def test_an_argument_goes_in_and_a_result_comes_back() -> None:
    assert (lanes(CALL_TWICE, "u4", module=TWICE, a=LANE) == 2 * LANE).all()


def test_registers_and_literals_may_be_arguments() -> None:
    module = """
    .func (.reg .b32 r) over(.reg .b32 a, .reg .b32 b) { sub.u32 r, a, b; ret; }
    .func (.param .b32 r) less(.param .b32 a, .param .b32 b)
    { .reg .b32 x, y; ld.param.b32 x, [a]; ld.param.b32 y, [b]; sub.u32 x, x, y;
      st.param.b32 [r], x; ret; }
    """
    for name in ("over", "less"):
        body = f"call (%r1), {name}, (%a, 7); call.uni (%d), {name}, (%r1, %a);"
        found = lanes(body, "i4", module=module, a=LANE)
        assert (found == -7).all(), name


def test_a_function_has_names_of_its_own() -> None:
    """The same labels, registers, parameters and variables in caller and callee."""
    module = """
    .func (.param .b32 r) f(.param .b32 p)
    { .reg .b32 %r<4>; .reg .pred %p1; .local .b32 x; mov.u32 %r1, 0;
      ld.param.b32 %r2, [p]; st.local.b32 [x], %r2;
      L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L;
      ld.local.b32 %r3, [x]; add.u32 %r1, %r1, %r3; st.param.b32 [r], %r1; ret; }
    """
    body = """
        .local .b32 x; .param .b32 p, q; mov.u32 %r1, 0; st.local.b32 [x], 1000;
    L:  st.param.b32 [p], %a; call (q), f, (p); ld.param.b32 %r3, [q];
        add.u32 %r1, %r1, %r3; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;
        ld.local.b32 %r4, [x]; add.u32 %d, %r1, %r4;
    """

    def want(a: int) -> int:
        total = 0
        while total < 100:
            total += max(a, 1) + a
        return total + 1000

    found = lanes(body, "u4", module=module, a=LANE)
    assert found.tolist() == [want(a) for a in range(32)]


def test_lanes_call_different_functions_and_return_at_different_places() -> None:
    module = (
        TWICE
        + """
    .func (.param .b32 r) odd(.param .b32 a)
    { .reg .b32 x; .reg .pred p; ld.param.b32 x, [a]; setp.lt.u32 p, x, 10;
      @p bra SMALL; st.param.b32 [r], 1; ret;
      SMALL: st.param.b32 [r], 2; setp.lt.u32 p, x, 4; @p ret;
      st.param.b32 [r], 3; }
    """
    )
    body = """
        .param .b32 p, q; st.param.b32 [p], %a; and.b32 %r1, %a, 1;
        setp.eq.u32 %p1, %r1, 1; mov.u32 %d, 99;
        @%p1 bra ODD;
        call (q), twice, (p); ld.param.b32 %d, [q]; bra DONE;
    ODD: call (q), odd, (p); ld.param.b32 %d, [q];
    DONE: vote.sync.ballot.b32 %r2, 1, 0xffffffff;
    """.replace(" 1, 0xffffffff", " %p2, 0xffffffff")
    body = "setp.eq.u32 %p2, 0, 0;" + body
    found = lanes(body, "u4", module=module, a=LANE)
    odd = [1 if a >= 10 else 2 if a < 4 else 3 for a in range(32)]
    assert found.tolist() == [odd[a] if a & 1 else 2 * a for a in range(32)]


def test_a_guarded_call_leaves_the_other_lanes_alone() -> None:
    body = """
        .param .b32 p, q; st.param.b32 [p], %a; setp.lt.u32 %p1, %a, 5; mov.u32 %d, 1;
        @%p1 call (q), twice, (p); @%p1 ld.param.b32 %d, [q];
    """
    found = lanes(body, "u4", module=TWICE, a=LANE)
    assert found.tolist() == [2 * a if a < 5 else 1 for a in range(32)]


def test_lanes_that_exit_in_a_function_do_not_come_back() -> None:
    module = """
    .func half(.param .b32 a) { .reg .b32 x; .reg .pred p; ld.param.b32 x, [a];
      setp.lt.u32 p, x, 16; @p exit; ret; }
    """
    body = """
        ld.param.u64 %rd1, [k_out]; mov.u32 %r1, %tid.x;
        { .param .b32 p; st.param.b32 [p], %r1; call half, (p); }
        mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.b32 [%rd2], 5;
    """
    on = machine()
    out = on.gmem.upload("out", np.zeros(32, np.uint32))
    values = struct.pack("<Q", out)
    run(body, module=module, params=".param .u64 k_out", values=values, on=on)
    found = on.gmem.contents(out, 128).view(np.uint32)
    assert found.tolist() == [0] * 16 + [5] * 16


BARRIER = """
.func meet(.param .b32 a) { bar.sync 0; ret; }
"""


def test_warps_meet_at_a_barrier_in_a_function() -> None:
    body = """
        .shared .b32 cell; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 63;
        { .param .b32 p; st.param.b32 [p], 0;
        @%p1 st.shared.b32 [cell], 77; call meet, (p); }
        ld.shared.b32 %r2, [cell]; setp.ne.u32 %p2, %r2, 77; @%p2 trap;
    """
    for schedule in ("eager", "late", 5):
        run(body, threads=64, module=BARRIER, on=machine(schedule))


def test_a_side_that_waits_in_a_function_lets_the_other_go_on() -> None:
    module = """
    .func until(.param .b32 a) { .reg .b32 x, v; .reg .pred p; ld.param.b32 x, [a];
      W: ld.volatile.shared.b32 v, [x]; setp.eq.u32 p, v, 0; @p bra W; ret; }
    """
    body = """
        .shared .b32 cell; mov.u32 %r5, cell; setp.eq.u32 %p1, %tid32, 0;
        @%p1 st.volatile.shared.b32 [cell], 0; bar.warp.sync 0xffffffff;
        setp.lt.u32 %p2, %tid32, 16; @!%p2 bra SET;
        { .param .b32 p; st.param.b32 [p], %r5; call until, (p); } bra END;
    SET: st.volatile.shared.b32 [cell], 1;
    END: mov.u32 %d, %tid32;
    """
    assert (lanes(body, "u4", module=module, a=LANE) == LANE).all()


# -- recursion


FIBONACCI = """
.func (.param .b32 r) fib(.param .b32 n)
{
    .reg .b32 a, b, m, k; .reg .pred small;
    ld.param.b32 m, [n];
    setp.lt.u32 small, m, 2;
    @!small bra MORE;
    st.param.b32 [r], m;
    ret;
MORE:
    sub.u32 k, m, 1;
    { .param .b32 p, q; st.param.b32 [p], k; call (q), fib, (p); ld.param.b32 a, [q]; }
    ld.param.b32 m, [n];
    sub.u32 k, m, 2;
    { .param .b32 p, q; st.param.b32 [p], k; call (q), fib, (p); ld.param.b32 b, [q]; }
    add.u32 a, a, b;
    st.param.b32 [r], a;
}
"""


def test_each_activation_has_its_own_registers_and_parameters() -> None:
    body = CALL_TWICE.replace("twice", "fib")
    n = LANE % 9
    found = lanes(body, "u4", module=FIBONACCI, a=n)
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    assert found.tolist() == [fibonacci[i] for i in n]


STACKED = """
.func (.param .b32 r) sum(.param .b64 up, .param .b32 n)
{
    .local .align 8 .b32 own[2];
    .reg .b64 above, here; .reg .b32 m, v, w; .reg .pred last;
    ld.param.b64 above, [up]; ld.param.b32 m, [n];
    st.local.b32 [own], m;
    mov.u64 here, own;
    setp.eq.u32 last, m, 0;
    @last bra END;
    sub.u32 v, m, 1;
    { .param .b64 p; .param .b32 q, t; st.param.b64 [p], here; st.param.b32 [q], v;
      call (t), sum, (p, q); ld.param.b32 w, [t]; }
    ld.local.b32 v, [own+4];
    add.u32 w, w, v;
    ld.local.b32 v, [own];
    setp.ne.u32 last, v, m; @last trap;
END:
    @last mov.u32 w, 0;
    mul.lo.u32 v, m, 10;
    st.local.b32 [above+4], v;
    st.param.b32 [r], w;
    ret;
}
"""
"""Each activation writes ten times its number into the variable of its caller."""


def test_a_pointer_to_a_callers_variable_reaches_it() -> None:
    body = """
        .local .align 8 .b32 mine[2]; mov.u64 %rd1, mine;
        { .param .b64 p; .param .b32 q, t; st.param.b64 [p], %rd1; st.param.b32 [q], %a;
          call (t), sum, (p, q); ld.param.b32 %d, [t]; }
        ld.local.b32 %r1, [mine+4]; add.u32 %d, %d, %r1;
    """
    n = LANE % 7
    found = lanes(body, "u4", module=STACKED, a=n)
    assert found.tolist() == [
        sum(10 * i for i in range(k)) + 10 * k for k in n.tolist()
    ]


def test_a_recursion_without_an_end_is_stopped() -> None:
    module = ".func f(.param .b32 a) { call f, (a); ret; }"
    with pytest.raises(CallDepth, match="1001 calls inside of each other"):
        run("{ .param .b32 p; st.param.b32 [p], 1; call f, (p); }", module=module)
    large = ".func f(.param .b32 a) { .local .b8 x[16384]; call f, (a); ret; }"
    with pytest.raises(CallDepth, match="bytes of local memory"):
        run("{ .param .b32 p; st.param.b32 [p], 1; call f, (p); }", module=large)


def test_a_register_of_the_last_call_holds_nothing() -> None:
    module = """
    .func f(.param .b32 a) { .reg .b32 x, y; .reg .pred p; ld.param.b32 x, [a];
      setp.eq.u32 p, x, 0; @p mov.u32 y, 5; .shared .b32 cell; st.shared.b32 [cell], y;
      ret; }
    """
    call = "{{ .param .b32 p; st.param.b32 [p], {}; call f, (p); }}"
    run(call.format(0) * 2, module=module)
    with pytest.raises(Exception, match="never written in lane 0"):
        run(call.format(0) + call.format(1), module=module)


# -- what is refused


@pytest.mark.parametrize(
    "body",
    ["call twice, ();", "call (%r1), twice, (%r2, %r3);", "call twice, (%r2);"],
)
def test_the_numbers_of_arguments_and_results_are_those_of_the_function(
    body: str,
) -> None:
    with pytest.raises(PtxError, match="the function has 1"):
        run(body, module=TWICE)


@pytest.mark.parametrize(
    ("module", "body"),
    [
        (".extern .func (.param .b64 r) malloc(.param .b64 n);",
         "{ .param .b64 p, q; st.param.b64 [p], 8; call (q), malloc, (p); }"),
        (TWICE, "P: .callprototype _ (); mov.u64 %rd1, 0; call %rd1, P;"),
    ],
)  # fmt: skip
def test_what_has_no_text_is_refused_by_name(module: str, body: str) -> None:
    with pytest.raises(NotModelled) as caught:
        run(body, module=module)
    assert caught.value.gap == "ptx-call"


def test_a_function_that_nobody_calls_is_not_read() -> None:
    odd = ".func f() { .reg .v2 .b32 x; tex.unknown x; } "
    run("mov.u32 %r1, 1;", module=odd)
    assert parse(kernel("", module=odd)).functions == {}
    assert [*parse(kernel(CALL_TWICE.replace("%a", "0").replace("%d", "%r1"),
                          module=odd + TWICE)).functions] == ["twice"]  # fmt: skip


# -- what NVRTC makes of CUDA


@cache
def compiled(source: str) -> Program:
    return Program.of(parse(compile_cuda(source, "sm_100a").ptx))


def on_threads(source: str, count: int, *values: int) -> Any:
    """Run ``k(int* out, ...)`` of 32 threads; return `count` results."""
    program, on = compiled(source), machine("late")
    out = on.gmem.upload("out", np.zeros(count, np.int32))
    params = struct.pack(f"<Q{len(values)}i", out, *values)
    launch(on, program, (1, 1, 1), (32, 1, 1), params)
    return on.gmem.contents(out, 4 * count).view(np.int32)


STRUCT = """
struct S { int a; short b[5]; long long c; };
__device__ __noinline__ S make(int x, int y) {
  S s; s.a = x; s.c = 1ll << y;
  for (int i = 0; i < 5; ++i) s.b[i] = x * i - y;
  return s;
}
__device__ __noinline__ long long of(S s, int k) { return s.b[k] + s.a + s.c; }
extern "C" __global__ void k(int* out, int y) {
  int t = threadIdx.x;
  S s = make(t, y);
  if (t % 3) out[t] = of(s, t % 5); else out[t] = (int)(of(make(-t, 3), 2) >> 1);
}
"""


@needs_nvrtc
def test_structs_go_in_and_out_of_compiled_functions() -> None:
    def of(x: int, y: int, k: int) -> int:
        return x * k - y + x + (1 << y)

    found = on_threads(STRUCT, 32, 20)
    want = [of(t, 20, t % 5) if t % 3 else of(-t, 3, 2) >> 1 for t in range(32)]
    assert found.tolist() == want


RECURSIVE = """
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ int paths(int* board, int at, int left) {
  int trail[4];
  if (left == 0) return board[at & 3];
  for (int i = 0; i < 4; ++i) trail[i] = board[i] * (i + left);
  return paths(trail, at + 1, left - 1) + paths(board, at + 2, left - 1);
}
extern "C" __global__ void k(int* out, int most) {
  int t = threadIdx.x, board[4] = {t, 2, 3 - t, 5};
  out[t] = ackermann(t % 3, t % most);
  out[t + 32] = paths(board, t, t % 5);
}
"""


@needs_nvrtc
def test_compiled_recursion_with_arrays_on_the_stack() -> None:
    def ackermann(m: int, n: int) -> int:
        if m == 0:
            return n + 1
        return ackermann(m - 1, ackermann(m, n - 1) if n else 1)

    def paths(board: list[int], at: int, left: int) -> int:
        if left == 0:
            return board[at & 3]
        trail = [board[i] * (i + left) for i in range(4)]
        return paths(trail, at + 1, left - 1) + paths(board, at + 2, left - 1)

    found = on_threads(RECURSIVE, 64, 4)
    assert found[:32].tolist() == [ackermann(t % 3, t % 4) for t in range(32)]
    boards = [[t, 2, 3 - t, 5] for t in range(32)]
    assert found[32:].tolist() == [paths(boards[t], t, t % 5) for t in range(32)]


DIVERGENT = """
__device__ __noinline__ int meet(int x) { return x + __popc(__activemask()); }
__device__ __noinline__ int choose(int x) {
  if (x & 1) return meet(x) * 100;
  if (x & 2) return meet(x) * 1000;
  return __shfl_xor_sync(0x11111111, x, 4);
}
extern "C" __global__ void k(int* out) {
  int t = threadIdx.x;
  out[t] = choose(t);
}
"""


@needs_nvrtc
def test_lanes_call_from_divergent_code() -> None:
    found = on_threads(DIVERGENT, 32)
    for t in range(32):
        if t & 3 == 0:
            assert found[t] == t ^ 4
        else:
            assert found[t] == (t + (16 if t & 1 else 8)) * (100 if t & 1 else 1000)
