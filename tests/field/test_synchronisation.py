"""Faults that public kernels had, each in its smallest form: B69, B73, B74, B82."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cuda_kernels import fault, needs_nvrtc, run

from fp4ref.errors import (
    Fp4refError,
    MbarrierFault,
    MissingProxyFence,
    ReadWhileInFlight,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware.order.race import RaceFault
from fp4ref.hardware.order.rules import Failure

pytestmark = [pytest.mark.outside, needs_nvrtc]
SCHEDULES: list[str | int] = ["eager", "late", 0, 1, 2, 3]


def failures_of(error: Fp4refError | None) -> set[Failure]:
    """What the races of a fault lack."""
    return {race.failure for race in getattr(error, "races", ())}


INIT = """extern "C" __global__ void k(u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  SYNC
  if (threadIdx.x == 0) arrive(bar);
  wait(bar, 0);
  out[threadIdx.x] = 1;
}"""


def test_b69a_a_barrier_used_beside_its_init_is_seen() -> None:
    """In every schedule by the order of accesses; without it, in some."""
    seen = {s: fault(INIT.replace("SYNC", ""), block=128, schedule=s) for s in range(8)}
    for name in ("eager", "late"):
        assert fault(INIT.replace("SYNC", ""), block=128, schedule=name) is None
    assert any(isinstance(error, MbarrierFault) for error in seen.values())
    for s in SCHEDULES:
        found = fault(INIT.replace("SYNC", ""), block=128, schedule=s, races="raise")
        assert isinstance(found, RaceFault | MbarrierFault)
        assert s != "eager" or failures_of(found) == {Failure.INIT}
        ordered = INIT.replace("SYNC", "__syncthreads();")
        out, _ = run(ordered, block=128, schedule=s, races="raise")
        assert (out.view(np.uint32) == 1).all()


ONE_BARRIER = """extern "C" __global__ void k(u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, COUNT);
  __syncthreads();
  for (u32 i = 0; i < 4; ++i) {
    if (ARRIVES) arrive(bar);
    wait(bar, i & 1);
  }
  out[threadIdx.x] = 1;
}"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_b69b_waiters_that_do_not_arrive_fall_a_phase_behind(
    schedule: str | int,
) -> None:
    one = ONE_BARRIER.replace("COUNT", "1").replace("ARRIVES", "threadIdx.x == 0")
    found = fault(one, block=128, schedule=schedule)
    assert isinstance(found, MbarrierFault)
    assert "so did the next one" in str(found)
    every = ONE_BARRIER.replace("COUNT", "128").replace("ARRIVES", "true")
    assert fault(every, block=128, schedule=schedule) is None


DEALLOC = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 slot;
  u32 warp = threadIdx.x / 32, v;
  if (warp == 0) alloc(slot, 32);
  __syncthreads();
  u32 mine = slot + (warp << 21);
  ST1(mine, threadIdx.x); WAIT_ST;
  LD1(v, mine); WAIT_LD;
  out[threadIdx.x] = v;
  SYNC
  if (warp == 0) dealloc(slot, 32);
}"""


def test_b69c_dealloc_without_a_barrier_before_it() -> None:
    bare = DEALLOC.replace("SYNC", "")
    found = {s: fault(bare, block=128, schedule=s, races="raise") for s in SCHEDULES}
    assert all(found.values())
    assert failures_of(found["eager"])
    found = {s: fault(bare, block=128, schedule=s) for s in SCHEDULES}
    assert isinstance(found["eager"], TmemAllocationFault)
    assert isinstance(found["late"], ReadWhileInFlight)
    assert any(found[seed] for seed in range(4))
    for s in SCHEDULES:
        out, _ = run(DEALLOC.replace("SYNC", "__syncthreads();"), block=128, schedule=s)
        assert (out.view(np.uint32) == np.arange(128)).all()


ADDRESS = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 slot;
  u32 warp = threadIdx.x / 32;
  if (warp == 0) alloc(slot, 32);
  SYNC
  if (warp == 1) out[threadIdx.x] = *(volatile u32*)&slot;
  __syncthreads();
  if (warp == 0) dealloc(slot, 32);
}"""
TWICE = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 word;
  volatile u32* shared = &word;
  u32 warp = threadIdx.x / 32;
  if (warp == 0) *shared = 1;
  __syncthreads();
  if (warp == 1) out[threadIdx.x] = *shared;
  if (warp == 0) *shared = 2;
  if (warp == 1) out[threadIdx.x] = *shared;
  __syncthreads();
}"""
WEAK = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 word;
  u32 warp = threadIdx.x / 32, at = SHARED(&word), v = 0;
  #define SET(v) asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(v) : "memory")
  if (warp == 0) SET(1);
  __syncthreads();
  if (warp == 0) SET(2);
  if (warp == 1) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  out[threadIdx.x] = v;
  __syncthreads();
}"""


def test_b73_a_race_is_seen_in_every_schedule() -> None:
    """Without the order of accesses: not under eager, late and most seeds."""
    bare = ADDRESS.replace("SYNC", "")
    for name in ("eager", "late"):
        assert fault(bare, block=64, schedule=name) is None
    seeds = [fault(bare, block=64, schedule=s) for s in range(8)]
    assert any(isinstance(error, UninitialisedRead) for error in seeds)
    assert None in seeds
    for s in SCHEDULES:
        found = fault(bare, block=64, schedule=s, races="raise")
        assert isinstance(found, RaceFault | UninitialisedRead)
        assert s != "eager" or failures_of(found) == {Failure.SYNC}
        # A second use; volatile accesses are morally strong, and so no race.
        found = fault(WEAK, block=64, schedule=s, races="raise")
        assert isinstance(found, RaceFault)
        assert fault(TWICE, block=64, schedule=s, races="raise") is None
        ordered = ADDRESS.replace("SYNC", "__syncthreads();")
        assert fault(ordered, block=64, schedule=s, races="raise") is None
    read = Counter(
        int(run(TWICE, block=64, schedule=s)[0].view(np.uint32)[32])
        for s in ("eager", "late", *range(20))
    )
    assert set(read) == {1, 2}


UNWAITED = """extern "C" __global__ void k(u32* out) {
  __shared__ u32 slot; __shared__ u64 bar;
  u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, v = 0;
  if (warp == 0) alloc(slot, 32);
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  u32 taddr = slot;
  ST1(taddr + (warp << 21), 7); WAIT_ST;
  __syncthreads();
  if (warp == 1) { LD1(v, taddr + (1u << 21)); WAIT USE arrive(bar); }
  if (warp == 0) { wait(bar, 0); dealloc(taddr, 32); }
}"""


@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
def test_b74_a_load_that_no_lane_uses_is_in_flight_at_the_dealloc(
    ordering: str,
) -> None:
    nothing = UNWAITED.replace("WAIT ", "").replace("USE", "")
    found = fault(nothing, block=64, schedule="late", ordering=ordering)
    assert isinstance(found, ReadWhileInFlight)
    waited = UNWAITED.replace("WAIT ", "WAIT_LD; ").replace("USE", "")
    for s in SCHEDULES:
        assert fault(waited, block=64, schedule=s, ordering=ordering) is None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_b74_half_of_the_lanes_use_what_was_not_waited_for(
    schedule: str | int,
) -> None:
    use = "if (lane < 16) out[lane] = v;"
    half = UNWAITED.replace("WAIT ", "").replace("USE", use)
    found = fault(half, block=64, schedule=schedule, races="raise")
    assert Failure.REGISTERS in failures_of(found)
    out, on = run(half, block=64, schedule=schedule, ordering="shipped")
    assert (out.view(np.uint32)[:16] == 7).all()
    assert sum(on.advisories.values()) == 1


SCALES = """extern "C" __global__ void k(u32* out) {
  extern __shared__ __align__(1024) u8 data[];
  __shared__ u64 bar; __shared__ u32 slot;
  u32 warp = threadIdx.x / 32, v;
  if (warp == 0) alloc(slot, 32);
  if (threadIdx.x == 0) init(bar, 1);
  ((volatile u32*)data)[threadIdx.x] = 0x38383838u;
  FENCE
  __syncthreads();
  u32 taddr = slot;
  if (warp == 0 && elect()) {
    u64 rows = (SHARED(data) >> 4) | 8ull << 32 | 1ull << 46;
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;"
                 :: "r"(taddr), "l"(rows));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one"
                 ".shared::cluster.b64 [%0];" :: "r"(SHARED(&bar)) : "memory");
  }
  __syncwarp();
  wait(bar, 0);
  asm volatile("tcgen05.fence::after_thread_sync;");
  LD1(v, taddr + (warp << 21)); WAIT_LD;
  out[threadIdx.x] = v;
  __syncthreads();
  if (warp == 0) dealloc(taddr, 32);
}"""


@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
def test_b82_scales_by_ordinary_stores_need_a_proxy_fence(ordering: str) -> None:
    options = {"block": 128, "smem_nbytes": 2048, "ordering": ordering}
    found = fault(SCALES.replace("FENCE", ""), **options)
    assert isinstance(found, MissingProxyFence)
    fenced = SCALES.replace("FENCE", 'asm volatile("fence.proxy.async.shared::cta;");')
    out, _ = run(fenced, **options)
    assert (out.view(np.uint32) == 0x38383838).all()
