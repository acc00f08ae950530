"""What an epilogue does with its values: B75, B76, B85, B86."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from cuda_kernels import fault, needs_nvrtc, run

from fp4ref.errors import MisalignedAddress

pytestmark = [pytest.mark.outside, needs_nvrtc]

HALVES = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 slot;
  alloc(slot, 32);
  __syncthreads();
  u32 taddr = slot, v = threadIdx.x + 1, first;
  asm volatile("tcgen05.st.sync.aligned.16x32bx2.x1FORM.b32 [%0], OFFSET, {%1};"
               :: "r"(taddr), "r"(v) : "memory");
  WAIT_ST;
  asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x1BACK.b32 {%0}, [%1], OFFSET;"
               : "=r"(first) : "r"(taddr) : "memory");
  WAIT_LD;
  out[threadIdx.x] = first;
  dealloc(taddr, 32);
}"""


@pytest.mark.parametrize("offset", [1, 2])
def test_b75_a_second_half_may_start_at_any_column(offset: int) -> None:
    kernel = HALVES.replace("OFFSET", str(offset))
    out, _ = run(kernel.replace("FORM", "").replace("BACK", ""))
    assert (out.view(np.uint32)[:32] == np.arange(1, 33)).all()


@pytest.mark.parametrize(("form", "back"), [(".unpack::16b", ".pack::16b")])
def test_b75_a_second_half_of_pairs_begins_after_whole_pairs(
    form: str, back: str
) -> None:
    kernel = HALVES.replace("FORM", form).replace("BACK", back)
    out, _ = run(kernel.replace("OFFSET", "2"))
    assert (out.view(np.uint32)[:32] == np.arange(1, 33)).all()
    found = fault(kernel.replace("OFFSET", "1"))
    assert isinstance(found, MisalignedAddress)
    assert "10321" in str(found)


STOCHASTIC = """extern "C" __global__ void k(u32* out, u32 random) {
  TYPE d;
  asm volatile("cvt.rs.satfinite.FORM.f32 %0, {%1, %2, %3, %4}, %5;" : "=CONSTRAINT"(d)
               : "f"(1.25f), "f"(2.5f), "f"(0.25f), "f"(-5.0f), "r"(random));
  out[threadIdx.x] = d;
}"""


# 1.25 is a tie of E2M1 and a number of the others.
KINDS = {
    "e2m1": ("u16", "h", ml_dtypes.float4_e2m1fn, [[1, 2, 0, -4], [1.5, 3, 0.5, -6]]),
    "e4m3": ("u32", "r", ml_dtypes.float8_e4m3fn, [[1.25, 2.5, 0.25, -5]] * 2),
    "e5m2": ("u32", "r", ml_dtypes.float8_e5m2, [[1.25, 2.5, 0.25, -5]] * 2),
    "e3m2": ("u32", "r", ml_dtypes.float6_e3m2fn, [[1.25, 2.5, 0.25, -5]] * 2),
}


@pytest.mark.parametrize("form", KINDS)
def test_b76_stochastic_rounding_goes_by_the_carry_in_the_executor(form: str) -> None:
    stored, constraint, kind, want = KINDS[form]
    kernel = STOCHASTIC.replace("TYPE", stored).replace("FORM", f"{form}x4")
    width = 4 if form == "e2m1" else 8
    for random, values in zip((0, 0xFFFFFFFF), want, strict=True):
        out, _ = run(kernel.replace("CONSTRAINT", constraint), random)
        codes = [
            int(out.view(np.uint32)[0]) >> width * i & (1 << width) - 1
            for i in (3, 2, 1, 0)
        ]
        found = np.array(codes, np.uint8).view(kind).astype(np.float64)
        assert found.tolist() == values


FLOATS = """HEADER
extern "C" __global__ void k(float* out, const float* in) {
  float x = in[threadIdx.x];
  out[threadIdx.x] = EXPRESSION;
}"""
INPUT = np.linspace(0.1, 5, 32).astype(np.float32)


def function(expression: str) -> str:
    header = "#include <cuda_fp16.h>" if "half" in expression else ""
    return FLOATS.replace("EXPRESSION", expression).replace("HEADER", header)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("sqrtf(x)", np.sqrt(INPUT)),
        ("1.0f / x", np.float32(1) / INPUT),
        ("x / 3.0f", INPUT / np.float32(3)),
        ("floorf(x)", np.floor(INPUT)),
        ("rintf(x)", np.rint(INPUT)),
        ("truncf(x)", np.trunc(INPUT)),
        ("fmaxf(x, 1.0f)", np.maximum(INPUT, np.float32(1))),
        ("fabsf(x - 2.0f)", np.abs(INPUT - np.float32(2))),
        ("ldexpf(x, -3)", INPUT / np.float32(8)),
        ("copysignf(x, -1.0f)", -INPUT),
    ],
)
def test_b85_functions_whose_result_is_exact_or_rounded_once(
    expression: str, want: np.ndarray
) -> None:
    out, _ = run(function(expression), INPUT, out_nbytes=128)
    assert (out.view(np.uint32) == want.view(np.uint32)).all()


TENTH, FIFTH = Fraction(float(np.float32(0.1))), Fraction(float(np.float32(0.2)))
DIRECTED = {
    "__fmul_rd(x, 0.1f)": (lambda x: x * TENTH, "down"),
    "__fadd_ru(x, 0.1f)": (lambda x: x + TENTH, "up"),
    "__fmaf_rz(x, 0.1f, 0.2f)": (lambda x: x * TENTH + FIFTH, "down"),
}


@pytest.mark.parametrize("expression", DIRECTED)
def test_b85_functions_that_round_in_a_direction(expression: str) -> None:
    exact, way = DIRECTED[expression]
    out, _ = run(function(expression), INPUT, out_nbytes=128)
    for x, found in zip(INPUT, out.view(np.float32), strict=True):
        want = exact(Fraction(float(x)))
        far = np.nextafter(found, np.float32(np.inf if way == "down" else -np.inf))
        low, high = sorted(Fraction(float(v)) for v in (found, far))
        assert low <= want <= high
        assert want != Fraction(float(far))


def test_b85_a_sum_of_halves_is_rounded_once() -> None:
    expression = "__half2float(__hadd(__float2half(x), __float2half(x + 0.3f)))"
    out, _ = run(function(expression), INPUT, out_nbytes=128)
    halves = INPUT.astype(np.float16), (INPUT + np.float32(0.3)).astype(np.float16)
    want = (halves[0].astype(float) + halves[1]).astype(np.float16)
    assert (out.view(np.float32) == want).all()


@pytest.mark.parametrize(
    ("expression", "want", "ulp"),
    [("logf(x)", np.log(INPUT.astype(float)), 1),
     ("expf(x)", np.exp(INPUT.astype(float)), 1),
     ("x / (1.0f + expf(-x))", INPUT / (1 + np.exp(-INPUT.astype(float))), 2),
     ("(float)exp((double)x)", np.exp(INPUT.astype(float)), 0),
     ("powf(x, 1.5f)", INPUT.astype(float) ** 1.5, 4),
     ("__expf(x)", np.exp(INPUT.astype(float)), 2 + np.floor(1.173 * abs(INPUT))),
     ("exp2f(x)", np.exp2(INPUT.astype(float)), 2),
     ("rsqrtf(x)", 1 / np.sqrt(INPUT.astype(float)), 2),
     ("__fdividef(x, 3.0f)", INPUT.astype(float) / 3, 2),
     ("fmodf(x, 0.3f)", np.fmod(INPUT, np.float32(0.3)).astype(float), 0)],
)  # fmt: skip
def test_b85_functions_stay_within_the_error_that_cuda_states(
    expression: str, want: np.ndarray, ulp: int | np.ndarray
) -> None:
    """The CUDA programming guide, mathematical functions: largest error in ulp."""
    out, _ = run(function(expression), INPUT, out_nbytes=128)
    found = out.view(np.float32)
    assert (np.abs(found - want) <= (ulp + 0.5) * np.spacing(np.abs(found))).all()


def test_b85_a_function_of_halves_runs() -> None:
    half = "__half2float(hexp(__float2half(x)))"
    out, _ = run(function(half), INPUT, out_nbytes=128)
    want = np.exp(INPUT.astype(np.float16).astype(float)).astype(np.float16)
    assert (out.view(np.float32) == want).all()


HALF = """#include <cuda_fp16.h>
extern "C" __global__ void k(u16* out, const u16* in) {
  __half h = __ushort_as_half(in[threadIdx.x]);
  out[threadIdx.x] = __half_as_ushort(EXPRESSION);
}"""


@pytest.mark.parametrize(
    ("expression", "function"),
    [("hexp(h)", np.exp), ("hlog(h)", np.log), ("hsin(h)", np.sin)],
)
def test_b86_inline_ptx_of_the_fp16_header_is_read(
    expression: str, function: np.ufunc
) -> None:
    """The header writes ``{.reg.b32 t;``; its functions round these numbers rightly."""
    half = np.linspace(0.5, 2, 32).astype(np.float16)
    out, _ = run(HALF.replace("EXPRESSION", expression), half, out_nbytes=64)
    want = function(half.astype(float)).astype(np.float16)
    assert (out.view(np.float16) == want).all()


def test_b86_a_function_of_the_fp16_header_runs() -> None:
    half = np.linspace(0.5, 2, 32).astype(np.float16)
    kernel = HALF.replace("EXPRESSION", "h2exp2(__half2half2(h)).x")
    out, _ = run(kernel, half, out_nbytes=64)
    assert (
        out.view(np.float16) == np.exp2(half.astype(float)).astype(np.float16)
    ).all()


INLINE = """extern "C" __global__ void k(u32* out) {
  u32 d;
  asm volatile("BODY" : "=r"(d) : "r"(threadIdx.x));
  out[threadIdx.x] = d;
}"""


@pytest.mark.parametrize(
    "body",
    [
        "{.reg .b32 t; mov.b32 t, %1; mov.b32 %0, t;}",
        "{.reg.b32 t; mov.b32 t, %1; mov.b32 %0, t;}",
        "{.reg.b32 t,u; mov.b32 t, %1; mov.b32 u, t; mov.b32 %0, u;}",
        "{.reg.pred p; setp.ge.u32 p,%1,0; @p mov.b32 %0,%1;}",
        "{.reg .b32 t<2>; mov .b32 t1,%1; add .u32 %0,t1,0;}",
    ],
)
def test_b86_a_declaration_needs_no_space_before_the_type(body: str) -> None:
    out, _ = run(INLINE.replace("BODY", body), out_nbytes=128)
    assert (out.view(np.uint32) == np.arange(32)).all()
