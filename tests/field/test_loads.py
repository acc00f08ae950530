"""How public kernels bring tiles in: B68, B70, B80."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_kernels import fault, needs_nvrtc, run
from wide_operands import integer_product

import fp4ref
from fp4ref.errors import MisalignedAddress, OutOfBounds
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

pytestmark = [pytest.mark.outside, needs_nvrtc]

TILE = np.arange(256, dtype=np.uint32)


def rows(swizzle: SwizzleMode = SwizzleMode.NONE) -> Any:
    """A map of eight rows of 128 bytes."""
    return lambda on: TensorMap(
        DataType.UINT8,
        on.gmem.upload("rows", TILE),
        (128, 8),
        (128,),
        (128, 8),
        swizzle=swizzle,
        l2_promotion=0,
    ).to_bytes()


LOAD = """struct alignas(64) Map { u64 w[16]; };
extern "C" __global__ void k(u32* out, const __grid_constant__ Map map,
                             const u8* flat, u32 nbytes) {
  extern __shared__ __align__(1024) u8 tile[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(SHARED(&bar)), "r"(nbytes) : "memory");
    u64 policy = 0x1000000000000000ull;
    u16 mask = 1;
    asm volatile("FORM;" :: "r"(SHARED(tile)), "l"(&map), "l"(flat), "r"(nbytes),
                 "r"(SHARED(&bar)), "l"(policy), "h"(mask) : "memory");
  }
  __syncthreads();
  wait(bar, 0);
  for (u32 i = threadIdx.x; i < 256; i += 32) out[i] = ((volatile u32*)tile)[i];
}"""
ANY = "global.mbarrier::complete_tx::bytes"
TENSOR = "cp.async.bulk.tensor.2d."
OPERANDS = " [%0], [%1, {0, 0}], [%4]"


@pytest.mark.parametrize(
    "form",
    [
        f"{TENSOR}shared::cluster.{ANY}{OPERANDS}",
        f"{TENSOR}shared::cluster.{ANY}.L2::cache_hint{OPERANDS}, %5",
        f"{TENSOR}shared::cluster.{ANY}.cta_group::1{OPERANDS}",
        f"{TENSOR}shared::cluster.{ANY}.cta_group::1.L2::cache_hint{OPERANDS}, %5",
        f"{TENSOR}shared::cta.{ANY}.cta_group::1{OPERANDS}",
        f"{TENSOR}shared::cluster.{ANY}.multicast::cluster.cta_group::1{OPERANDS}, %6",
    ],
)
def test_b68_spellings_of_a_tensor_load_mean_the_same(form: str) -> None:
    kernel = LOAD.replace("FORM", form)
    options = {"out_nbytes": 1024, "smem_nbytes": 4096}
    out, _ = run(kernel, rows(), TILE, 1024, **options)
    assert (out.view(np.uint32) == TILE).all()


@pytest.mark.parametrize(
    "form",
    [
        f"cp.async.bulk.shared::cluster.{ANY} [%0], [%2], %3, [%4]",
        f"cp.async.bulk.shared::cta.{ANY} [%0], [%2], %3, [%4]",
        f"cp.async.bulk.shared::cta.{ANY}.L2::cache_hint [%0], [%2], %3, [%4], %5",
    ],
)
def test_b68_copies_without_a_map_bring_the_same_bytes(form: str) -> None:
    kernel = LOAD.replace("FORM", form)
    options = {"out_nbytes": 1024, "smem_nbytes": 4096}
    out, _ = run(kernel, rows(), TILE, 1024, **options)
    assert (out.view(np.uint32) == TILE).all()


def test_b68_a_size_that_is_no_multiple_of_16_is_a_fault() -> None:
    form = f"cp.async.bulk.shared::cluster.{ANY} [%0], [%2], %3, [%4]"
    found = fault(LOAD.replace("FORM", form), rows(), TILE, 508, smem_nbytes=4096)
    assert isinstance(found, MisalignedAddress)


SWIZZLED = """struct alignas(64) Map { u64 w[16]; };
extern "C" __global__ void k(u32* out, const __grid_constant__ Map map, u32 offset) {
  extern __shared__ __align__(1024) u8 data[];
  __shared__ u64 bar;
  u32 base = SHARED(data) + offset;
  if (threadIdx.x == 0) {
    init(bar, 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;"
                 :: "r"(SHARED(&bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx"
                 "::bytes [%0], [%1, {0, 0}], [%2];"
                 :: "r"(base), "l"(&map), "r"(SHARED(&bar)) : "memory");
  }
  __syncthreads();
  wait(bar, 0);
  for (u32 i = threadIdx.x; i < 256; i += 32) {
    u32 at = i * 4, of_offset = base + (at ^ (at >> 7 & 7) << 4);
    u32 of_address = base + at, a, b;
    of_address ^= (of_address >> 7 & 7) << 4;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(of_offset));
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b) : "r"(of_address));
    out[i] = a; out[256 + i] = b;
  }
}"""


@pytest.mark.parametrize(
    ("offset", "wrong"), [(0, 0), (128, 256), (512, 256), (1024, 0)]
)
def test_b80_the_swizzle_is_of_the_address_and_not_of_the_offset(
    offset: int, wrong: int
) -> None:
    out, _ = run(
        SWIZZLED, rows(SwizzleMode.B128), offset, out_nbytes=2048, smem_nbytes=4096
    )
    by_offset, by_address = out.view(np.uint32).reshape(2, 256)
    assert int((by_offset != TILE).sum()) == wrong
    assert (by_address == TILE).all()


K = 256
GEMM = """struct alignas(64) Map { u64 w[16]; };
#define LOAD(to, map, z) \\
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx" \\
  "::bytes.cta_group::1 [%0], [%1, {0, 0, %3}], [%2];" \\
  :: "r"(to), "l"(map), "r"(full), "r"(z) : "memory")
#define COPY(to, rows) \\
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" \\
  :: "r"(to), "l"((u64)((rows) >> 4) | 8ull << 32 | 1ull << 46))
extern "C" __global__ void k(float* out, const __grid_constant__ Map a,
    const __grid_constant__ Map b, const __grid_constant__ Map sfa,
    const __grid_constant__ Map sfb) {
  extern __shared__ __align__(1024) u8 data[];
  __shared__ u64 bars[2]; __shared__ u32 slot;
  u32 warp = threadIdx.x / 32, full = SHARED(&bars[0]);
  u32 s_a = SHARED(data), s_b = s_a + 16384, s_sfa = s_b + 16384, s_sfb = s_sfa + 2048;
  if (threadIdx.x == 0) { init(bars[0], 1); init(bars[1], 1); }
  if (warp == 1) alloc(slot, 256);
  __syncthreads();
  u32 taddr = slot;
  if (warp == 0 && elect()) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(full), "r"(36864) : "memory");
    LOAD(s_a, &a, 0); LOAD(s_b, &b, 0); LOAD(s_sfa, &sfa, 0); LOAD(s_sfb, &sfb, 0);
    wait(bars[0], 0);
    for (u32 i = 0; i < 4; ++i) {
      COPY(taddr + 128 + 4 * i, s_sfa + 512 * i);
      COPY(taddr + 144 + 4 * i, s_sfb + 512 * i);
    }
    u32 idesc = 1u << 7 | 1u << 10 | (128u >> 3) << 17 | 1u << 27;
    u64 high = (u64)LBO << 16 | (u64)SBO << 32 | 1ull << 46;
    for (u32 i = 0; i < 4; ++i)
      asm volatile("{.reg.pred p; setp.ne.b32 p, %6, 0; tcgen05.mma.cta_group::1"
          ".kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], p;}"
          :: "r"(taddr), "l"((u64)((s_a + 4096 * i) >> 4) | high),
             "l"((u64)((s_b + 4096 * i) >> 4) | high), "r"(idesc),
             "r"(taddr + 128 + 4 * i), "r"(taddr + 144 + 4 * i), "r"(i));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one"
                 ".shared::cluster.b64 [%0];" :: "r"(SHARED(&bars[1])) : "memory");
  }
  __syncwarp();
  wait(bars[1], 0);
  asm volatile("tcgen05.fence::after_thread_sync;");
  for (u32 n = 0; n < 128; ++n) {
    u32 bits;
    LD1(bits, taddr + (warp << 21) + n); WAIT_LD;
    out[threadIdx.x * 128 + n] = __uint_as_float(bits);
  }
  __syncthreads();
  if (warp == 1) dealloc(taddr, 256);
}"""


def core_matrices(q: fp4ref.BlockScaled) -> Any:
    """A map whose box is laid out as core matrices of 8 rows and 16 bytes."""

    def made(on: Machine) -> bytes:
        at = on.gmem.upload("codes", q.packed())
        box = (32, 128, K // 32)
        u4 = DataType.U4_ALIGN8B
        return TensorMap(u4, at, box, (K // 2, 16), box, l2_promotion=0).to_bytes()

    return made


def atoms(q: fp4ref.BlockScaled) -> Any:
    """A map of the scales, which are stored as atoms of 512 bytes."""

    def made(on: Machine) -> bytes:
        at = on.gmem.upload("scales", q.swizzled_scales().data)
        box = (16, 32, 4)
        return TensorMap(
            DataType.UINT8, at, box, (16, 512), box, l2_promotion=0
        ).to_bytes()

    return made


def gemm(lbo: int, sbo: int) -> tuple[Any, Any, tuple[Any, ...]]:
    rng = np.random.default_rng(3)
    a, b = (
        fp4ref.quantize(rng.normal(size=(128, K)).astype(np.float32)) for _ in range(2)
    )
    kernel = GEMM.replace("LBO", str(lbo)).replace("SBO", str(sbo))
    return (
        kernel,
        integer_product(a, b),
        (*map(core_matrices, (a, b)), *map(atoms, (a, b))),
    )


OPTIONS = {"block": 128, "smem_nbytes": 40960, "out_nbytes": 65536}


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_b70_an_independent_kernel_gives_the_models_bits(
    schedule: str | int,
) -> None:
    kernel, want, arguments = gemm(128, 8)
    out, _ = run(kernel, *arguments, schedule=schedule, **OPTIONS)
    found = out.view(np.uint32).reshape(128, 128)
    assert (found == want.view(np.uint32)).all()


@pytest.mark.parametrize(
    ("lbo", "sbo"), [(8, 128), (2048, 128)], ids=["swapped", "in bytes"]
)
def test_b70_wrong_offsets_of_core_matrices_leave_shared_memory(
    lbo: int, sbo: int
) -> None:
    kernel, _, arguments = gemm(lbo, sbo)
    assert isinstance(fault(kernel, *arguments, **OPTIONS), OutOfBounds)
