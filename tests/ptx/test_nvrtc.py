"""Small CUDA kernels compiled by NVRTC mean what NumPy says.

Needs the extra [cuda]; the compiler runs without a GPU.
"""

from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import floats, machine

from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.numerics import decode_e2m1
from fp4ref.ptx import KernelTrap, Program, launch, parse


def nvrtc_works() -> bool:
    """Whether the compiler is here: the bindings come without it too."""
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        return False
    from cuda.bindings import nvrtc

    try:
        nvrtc.nvrtcVersion()
    except Exception:  # the loader's own error, whatever its version calls it
        return False
    return True


pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(
        not nvrtc_works(), reason="needs NVRTC: pip install 'fp4ref[cuda]'"
    ),
]


def include_dirs() -> list[str]:
    """Header folders of the compiler wheels."""
    import nvidia

    found = [each for root in nvidia.__path__ for each in Path(root).glob("*/include")]
    return [str(each) for path in found for each in (path, path / "cccl")]


def compile_cuda(source: str, arch: str = "sm_100a") -> str:
    """PTX of CUDA C++."""
    from cuda.bindings import nvrtc

    def check(result: tuple[Any, ...]) -> Any:
        assert int(result[0]) == 0, result
        return result[1] if len(result) == 2 else result[1:]

    program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"k.cu", 0, [], []))
    options = [f"--gpu-architecture={arch}", "--std=c++17", "-lineinfo"]
    options += [f"--include-path={path}" for path in include_dirs()]
    coded = [o.encode() for o in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(coded), coded)
    log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
    nvrtc.nvrtcGetProgramLog(program, log)
    assert int(status) == 0, log.decode()
    text = bytearray(check(nvrtc.nvrtcGetPTXSize(program)))
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()


def run(
    source: str,
    result: NDArray[Any],
    *inputs: NDArray[Any],
    threads: int = 128,
    blocks: int = 1,
    arch: str = "sm_100a",
    on: Machine | None = None,
    params: bytes | None = None,
    smem_nbytes: int = 0,
) -> NDArray[Any]:
    """Run the only kernel of `source`: out, then the inputs, are its arguments."""
    on = on or machine(sms=2)
    program = Program.of(parse(compile_cuda(source, arch)))
    out = on.gmem.upload("out", result)
    if params is None:
        where = [on.gmem.upload(f"in{i}", x) for i, x in enumerate(inputs)]
        params = struct.pack(f"<{1 + len(where)}Q", out, *where)
    else:
        params = struct.pack("<Q", out) + params
    launch(
        on,
        program,
        (blocks, 1, 1),
        (threads, 1, 1),
        params.ljust(program.param_nbytes, b"\0"),
        smem_nbytes=smem_nbytes,
    )
    found: NDArray[Any] = on.gmem.contents(out, result.nbytes).view(result.dtype)
    return found.reshape(result.shape)


rng = np.random.default_rng(0)
ARCHS = ["sm_90", "sm_100a"]


@pytest.mark.parametrize("arch", ARCHS)
def test_branches_and_loops(arch: str) -> None:
    source = """
    extern "C" __global__ void k(int* out, const int* in) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      int x = in[i], steps = 0;
      while (x != 1) {
        if (x % 2) { x = 3 * x + 1; if (steps > 60) { out[i] = -x; return; } }
        else x /= 2;
        ++steps;
      }
      for (int j = 0; j < (i & 7); ++j) steps += j * i / 3;
      out[i] = steps;
    }"""
    a = rng.integers(1, 200, 256).astype(np.int32)

    def meaning(i: int, x: int) -> int:
        steps = 0
        while x != 1:
            if x % 2:
                x = 3 * x + 1
                if steps > 60:
                    return -x
            else:
                x //= 2
            steps += 1
        return steps + sum(j * i // 3 for j in range(i & 7))

    found = run(source, np.zeros(256, np.int32), a, blocks=2, arch=arch)
    assert found.tolist() == [meaning(i, int(x)) for i, x in enumerate(a)]


@pytest.mark.parametrize("arch", ARCHS)
def test_block_reduction_by_shuffles_and_shared_memory(arch: str) -> None:
    source = """
    extern "C" __global__ void k(float* out, const float* in) {
      __shared__ float part[8];
      float x = in[threadIdx.x];
      for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
      if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = x;
      __syncthreads();
      if (threadIdx.x < 8) {
        float y = part[threadIdx.x];
        for (int d = 4; d; d >>= 1) y += __shfl_down_sync(0xff, y, d, 8);
        if (threadIdx.x == 0) out[0] = y;
      }
      unsigned all = __ballot_sync(~0u, in[threadIdx.x] > 0.f);
      if (threadIdx.x % 32 == 3) out[1 + threadIdx.x / 32] = __popc(all);
    }"""
    a = rng.standard_normal(256).astype(np.float32)
    found = run(source, np.zeros(9, np.float32), a, threads=256, arch=arch)
    x = a.reshape(8, 32).copy()
    for d in (16, 8, 4, 2, 1):
        x = x + x[:, np.arange(32) ^ d]
    y = x[:, 0]
    for d in (4, 2, 1):
        y = y + np.concatenate([y[d:], y[-d:]])
    assert found[0] == y[0]
    assert found[1:].tolist() == (a.reshape(8, 32) > 0).sum(1).tolist()


def test_atomics_in_global_and_shared_memory() -> None:
    source = """
    extern "C" __global__ void k(unsigned* out, const unsigned* in) {
      __shared__ unsigned bins[16];
      if (threadIdx.x < 16) bins[threadIdx.x] = 0;
      __syncthreads();
      unsigned x = in[blockIdx.x * blockDim.x + threadIdx.x];
      atomicAdd(&bins[x & 15], 1u);
      atomicMax(&out[16], x);
      atomicAdd((float*)&out[17], 0.25f);
      unsigned old = atomicCAS(&out[18], 0u, x | 1u);
      if (!old) atomicOr(&out[19], 1u << blockIdx.x);
      __syncthreads();
      if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
    }"""
    a = rng.integers(0, 1 << 32, 384).astype(np.uint32)
    found = run(source, np.zeros(20, np.uint32), a, blocks=3)
    assert found[:16].tolist() == np.bincount(a & 15, minlength=16).tolist()
    assert found[16] == a.max()
    assert found[17:18].view(np.float32)[0] == 96
    # One thread won, whichever came first.
    winners = np.flatnonzero(a | 1 == found[18]) // 128
    assert found[19] in [1 << block for block in winners.tolist()]


def test_integer_division_and_64_bit_products() -> None:
    source = """
    extern "C" __global__ void k(long long* out, const long long* a, const int* b) {
      int i = threadIdx.x;
      long long x = a[i]; int y = b[i];
      out[4 * i] = x / y; out[4 * i + 1] = x % 1000003;
      out[4 * i + 2] = __mul64hi(x, x ^ y); out[4 * i + 3] = (x >> (y & 63)) ^ (y << 3);
    }"""
    a = rng.integers(-(1 << 62), 1 << 62, 64)
    b = rng.integers(1, 1 << 30, 64).astype(np.int32)
    found = run(source, np.zeros((64, 4), np.int64), a, b, threads=64)
    for row, x, y in zip(found, a.tolist(), b.tolist(), strict=True):
        quotient = abs(x) // y * (1 if x >= 0 else -1)
        rest = abs(x) % 1000003 * (1 if x >= 0 else -1)
        low = (y << 3) & 0xFFFFFFFF
        low = low - (1 << 32) if low >> 31 else low
        want = [quotient, rest, x * (x ^ y) >> 64, (x >> (y & 63)) ^ low]
        assert row.tolist() == want


def test_local_arrays_and_dynamic_indices() -> None:
    source = """
    extern "C" __global__ void k(int* out, const int* in) {
      int stack[16]; int n = 0;
      for (int j = 0; j < 16; ++j) {
        int x = in[(threadIdx.x + j) & 127];
        if (x & 1) stack[n++] = x; else if (n) --n;
      }
      int sum = n;
      for (int j = 0; j < n; ++j) sum = sum * 31 + stack[j];
      out[threadIdx.x] = sum;
    }"""
    a = rng.integers(0, 1000, 128).astype(np.int32)
    found = run(source, np.zeros(128, np.int32), a)
    for t in range(128):
        stack: list[int] = []
        for j in range(16):
            x = int(a[(t + j) & 127])
            if x & 1:
                stack.append(x)
            elif stack:
                stack.pop()
        total = len(stack)
        for x in stack:
            total = total * 31 + x
        assert found[t] == np.array(total & 0xFFFFFFFF, np.uint32).view(np.int32)


def test_rounding_intrinsics_and_conversions() -> None:
    source = """
    extern "C" __global__ void k(float* out, const float* a, const float* b) {
      int i = threadIdx.x;
      float x = a[i], y = b[i];
      out[8*i] = __fmaf_rn(x, y, x); out[8*i+1] = __fdiv_rn(x, y);
      out[8*i+2] = fmaxf(x, y); out[8*i+3] = __fadd_rn(x, __fmul_rn(y, y));
      out[8*i+4] = rintf(x); out[8*i+5] = (float)(int)x;
      out[8*i+6] = fabsf(y); out[8*i+7] = __fsqrt_rn(x);
    }"""
    a, b = floats(1, 128), floats(2, 128)
    a[::2] = rng.standard_normal(64).astype(np.float32) * 100
    found = run(source, np.zeros((128, 8), np.float32), a, b)
    with np.errstate(all="ignore"):
        whole = np.where(np.isnan(a), 0, np.clip(np.trunc(a.astype(np.float64)),
                         -(2.0**31), 2.0**31 - 1)).astype(np.int64)  # fmt: skip
        wide = a.astype(np.float64) * b.astype(np.float64)
        want = [
            None, a / b, np.fmax(a, b), a + b * b, np.rint(a),
            whole.astype(np.float32), np.abs(b), np.sqrt(a),
        ]  # fmt: skip
    assert np.isfinite(wide).any()
    for column, expected in enumerate(want):
        if expected is None:
            continue
        got = found[:, column]
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(got), nan)
        np.testing.assert_array_equal(got[~nan], expected[~nan])


@pytest.mark.parametrize("arch", ["sm_90", "sm_100a"])
def test_bf16_and_fp8_conversions(arch: str) -> None:
    source = """
    #include <cuda_bf16.h>
    #include <cuda_fp8.h>
    extern "C" __global__ void k(unsigned* out, const float* in) {
      int i = threadIdx.x;
      float x = in[2 * i], y = in[2 * i + 1];
      __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
      out[2 * i] = *(unsigned*)&h;
      out[2 * i + 1] = __nv_cvt_float2_to_fp8x2(make_float2(x, y), __NV_SATFINITE,
                                                __NV_E4M3);
    }"""
    a = (rng.standard_normal(256) * np.exp2(rng.integers(-12, 12, 256))).astype(
        np.float32
    )
    found = run(source, np.zeros((128, 2), np.uint32), a, arch=arch)
    bf16 = a.astype(ml_dtypes.bfloat16).view(np.uint32)
    with np.errstate(all="ignore"):
        fp8 = np.clip(a, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint16)
    np.testing.assert_array_equal(found[:, 0], bf16)
    np.testing.assert_array_equal(found[:, 1], fp8)


def test_fp4_conversions() -> None:
    source = """
    #include <cuda_fp4.h>
    #include <cuda_fp16.h>
    extern "C" __global__ void k(float* out, const float* in) {
      int i = threadIdx.x;
      __nv_fp4x2_storage_t q = __nv_cvt_float2_to_fp4x2(
          make_float2(in[2 * i], in[2 * i + 1]), __NV_E2M1, cudaRoundNearest);
      __half2 h = __nv_cvt_fp4x2_to_halfraw2(q, __NV_E2M1);
      out[2 * i] = __low2float(h); out[2 * i + 1] = __high2float(h);
    }"""
    a = (rng.standard_normal(256) * 3).astype(np.float32)
    found = run(source, np.zeros(256, np.float32), a)
    codes = a.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    np.testing.assert_array_equal(found, decode_e2m1(codes))


BARRIER = r"""
  __device__ unsigned addr(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
  }
  __device__ void init(unsigned long long* b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(addr(b)), "r"(n));
  }
  __device__ void wait(unsigned long long* b, int parity) {
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\n"
      "bra LAB_WAIT;\nDONE:\n}" :: "r"(addr(b)), "r"(parity) : "memory");
  }
  __device__ bool test(unsigned long long* b, int parity) {
    unsigned ok;
    asm volatile("{\n.reg .pred P1;\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%1],"
      " %2;\nselp.b32 %0, 1, 0, P1;\n}" : "=r"(ok) : "r"(addr(b)), "r"(parity)
      : "memory");
    return ok;
  }
"""


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2, 3])
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("waiting", ["wait(b, p)", "while (!test(b, p)) ;"])
def test_producer_and_consumer_over_mbarriers(
    arch: str, schedule: str | int, waiting: str
) -> None:
    source = BARRIER + """
    __device__ void block(unsigned long long* b, int p) { WAITING; }
    extern "C" __global__ void k(int* out, const int* in) {
      __shared__ unsigned long long full[2], empty[2];
      __shared__ int ring[2][32];
      if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) { init(&full[i], 32); init(&empty[i], 32); }
      __syncthreads();
      int lane = threadIdx.x % 32;
      if (threadIdx.x < 32) {
        for (int i = 0; i < 9; ++i) {
          block(&empty[i & 1], (i >> 1 & 1) ^ 1);
          ring[i & 1][lane] = in[32 * i + lane];
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::
                       "r"(addr(&full[i & 1])) : "memory");
        }
      } else {
        int sum = 0;
        for (int i = 0; i < 9; ++i) {
          block(&full[i & 1], i >> 1 & 1);
          sum = 3 * sum + ring[i & 1][31 - lane];
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::
                       "r"(addr(&empty[i & 1])) : "memory");
        }
        out[lane] = sum;
      }
    }""".replace("WAITING", waiting)  # fmt: skip
    a = rng.integers(0, 1000, (9, 32)).astype(np.int32)
    found = run(
        source, np.zeros(32, np.int32), a, threads=64, arch=arch, on=machine(schedule)
    )
    want = np.zeros(32, np.int64)
    for row in a:
        want = 3 * want + row[::-1]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_tensor_copies_through_shared_memory(arch: str, schedule: str | int) -> None:
    source = (
        BARRIER
        + r"""
    struct alignas(64) Map { char bytes[128]; };
    extern "C" __global__ void k(int* out, const __grid_constant__ Map load,
                                 const __grid_constant__ Map store) {
      extern __shared__ __align__(1024) int tile[];
      __shared__ unsigned long long bar;
      if (threadIdx.x == 0) {
        init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      }
      __syncthreads();
      for (int i = 0; i < 3; ++i) {
        if (threadIdx.x == 0) {
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::
                       "r"(addr(&bar)), "r"(1024));
          asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
            ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
            "r"(addr(tile)), "l"(&load), "r"(0), "r"(8 * i - 4), "r"(addr(&bar))
            : "memory");
        }
        wait(&bar, i & 1);
        for (int j = threadIdx.x; j < 256; j += blockDim.x) tile[j] += j;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
          asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
            " [%0, {%1, %2}], [%3];" :: "l"(&store), "r"(0), "r"(8 * i),
            "r"(addr(tile)) : "memory");
          asm volatile("cp.async.bulk.commit_group;");
          asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
      }
      out[threadIdx.x] = 1;
    }"""
    )
    on = machine(schedule)
    a = rng.integers(0, 1000, (24, 32)).astype(np.int32)
    src, dst = on.gmem.upload("a", a), on.gmem.upload("d", np.zeros_like(a))
    maps = [tensor_map(address) for address in (src, dst)]
    # The maps follow the pointer at the next 64-byte boundary.
    params = bytes(56) + maps[0] + maps[1]
    out = run(source, np.zeros(64, np.int32), threads=64, arch=arch, on=on,
              params=params, smem_nbytes=1024)  # fmt: skip
    assert out.all()
    found = on.gmem.contents(dst, a.nbytes).view(np.int32).reshape(a.shape)
    shifted = np.concatenate([np.zeros((4, 32), np.int32), a])[:24]
    index = np.arange(256).reshape(8, 32)
    np.testing.assert_array_equal(found, shifted + np.tile(index, (3, 1)))


def tensor_map(address: int) -> bytes:
    """The 128 bytes of a map of 24 x 32 int32 with boxes of 8 rows, no swizzle."""
    return TensorMap(DataType.INT32, address, (32, 24), (128,), (32, 8)).to_bytes()


def test_printf_and_assert() -> None:
    source = """
    extern "C" __global__ void k(int* out, const int* in) {
      if (threadIdx.x == 5) printf("%d %s %.3f\\n", in[5], "five", 0.5f * in[5]);
      assert(in[threadIdx.x] < 100);
      out[threadIdx.x] = 1;
    }"""
    on = machine()
    program = Program.of(parse(compile_cuda(source)))
    a = np.arange(32, dtype=np.int32)
    params = struct.pack(
        "<2Q", on.gmem.upload("out", np.zeros_like(a)), on.gmem.upload("in", a)
    )
    printed = launch(on, program, (1, 1, 1), (32, 1, 1), params)
    assert printed == ["5 five 2.500\n"]
    on = machine()
    a[7] = 100
    params = struct.pack(
        "<2Q", on.gmem.upload("out", np.zeros_like(a)), on.gmem.upload("in", a)
    )
    with pytest.raises(KernelTrap, match=r"in\[threadIdx\.x\] < 100[\s\S]*k\.cu"):
        launch(on, program, (1, 1, 1), (32, 1, 1), params)
