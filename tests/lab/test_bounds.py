"""Bounds: the published issue intervals, and which resource binds."""

from __future__ import annotations

import random
from dataclasses import asdict, replace

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.bounds import (
    RESOURCES,
    band,
    bound,
    issue_interval,
    published_intervals,
)
from fp4ref.lab.workload import Workload, workloads
from fp4ref.parameters import MAY_BE_ZERO, Corner, Machine, published

PUBLISHED = published().machine(Corner.PUBLISHED)

INTERVALS = [
    # M, N, cta_group, A in TMEM, clocks: each as the published row has it.
    (128, 256, 1, False, 128.0),
    (128, 256, 1, True, 128.0),
    (128, 128, 1, False, 64.0),
    (128, 64, 1, False, 48),
    (128, 80, 1, False, 52),
    (128, 96, 1, False, 56),
    (128, 112, 1, False, 60),
    (128, 64, 1, True, 32),
    (128, 80, 1, True, 40),
    (128, 96, 1, True, 48),
    (128, 112, 1, True, 56),
    (64, 64, 1, False, 32),
    (64, 128, 1, False, 64),
    (64, 256, 1, False, 128),
    (256, 64, 2, False, 43.0),
    (256, 96, 2, False, 49.4),
    (256, 128, 2, False, 64.0),
    (256, 256, 2, False, 128.0),
    (128, 64, 2, False, 25.0),
    (128, 128, 2, False, 32.0),
    (128, 256, 2, False, 64.0),
]
TINY = Workload(
    name="tiny",
    what="four tiles",
    m=256,
    n=256,
    k=256,
    tile_m=128,
    tile_n=128,
    cta_group=1,
    element_bits=4,
    block_scaled=True,
    d_bits=32,
    added_bits=0,
    remark="",
)
BASE = Machine(
    sms=2,
    clock=1e9,
    power_slowdown=1,
    smem_bandwidth=256,
    smem_port_shared=0,
    mma_compute_interval=0.5,
    scale_copy_interval=0,
    tmem_read_bandwidth=1024,
    l2_bandwidth=1e13,
    hbm_bandwidth=1e13,
    first_load_latency=0,
    mma_end_latency=0,
    launch=0,
)
# Two waves of one tile: 4 MMAs of 64 clocks; 32,768 bytes of operands, 4,096 of scales
# in 8 atoms, 65,536 of D and of the accumulator. The seconds are worked out from these.
MADE_UP = [
    ({}, "MMA", 2 * 4 * 64 / 1e9),
    ({"smem_bandwidth": 64}, "SMEM", 2 * 32_768 / 64 / 1e9),
    ({"smem_port_shared": 1}, "SMEM", 2 * (32_768 + 172_032) / 256 / 1e9),
    ({"scale_copy_interval": 100}, "scale copies", 2 * 8 * 100 / 1e9),
    ({"tmem_read_bandwidth": 64}, "TMEM", 2 * 65_536 / 64 / 1e9),
    ({"l2_bandwidth": 1e11}, "L2", 4 * (36_864 + 65_536) / 1e11),
    ({"hbm_bandwidth": 1e11}, "GMEM", (73_728 + 262_144) / 1e11),
    ({"mma_compute_interval": 4}, "MMA", 2 * 4 * 512 / 1e9),
    ({"sms": 1}, "MMA", 4 * 4 * 64 / 1e9),
    ({"clock": 1e12}, "L2", 4 * (36_864 + 65_536) / 1e13),
]


@pytest.mark.parametrize(("m", "n", "group", "a_in_tmem", "clocks"), INTERVALS)
def test_a_published_issue_interval(
    m: int, n: int, group: int, a_in_tmem: bool, clocks: float
) -> None:
    found = issue_interval(m, n, group, PUBLISHED, a_in_tmem=a_in_tmem)
    assert found == pytest.approx(clocks, abs=0.05 if group == 1 else 4)


def test_the_table_shows_every_published_interval() -> None:
    shown = [(i.m, i.n, i.cta_group, i.a_in_tmem) for i in published_intervals()]
    assert shown == [each[:4] for each in INTERVALS]
    assert [i.clocks for i in published_intervals()] == [each[4] for each in INTERVALS]


@pytest.mark.parametrize(
    ("m", "n", "group"), [(256, 128, 1), (64, 64, 2), (128, 264, 1), (128, 128, 3)]
)
def test_no_interval_is_made_up(m: int, n: int, group: int) -> None:
    with pytest.raises(InputError, match=r"published|need a whole number"):
        issue_interval(m, n, group, PUBLISHED)


@pytest.mark.parametrize(("changed", "binding", "seconds"), MADE_UP)
def test_what_binds_on_a_made_up_machine(
    changed: dict[str, float], binding: str, seconds: float
) -> None:
    found = bound(TINY, replace(BASE, **changed))
    assert (found.binding, found.shortest) == (binding, pytest.approx(seconds))


def test_the_start_is_launch_first_load_last_mma_and_read() -> None:
    machine = replace(BASE, launch=1e-6, first_load_latency=900, mma_end_latency=100)
    assert bound(TINY, machine).start == pytest.approx(1e-6 + (900 + 100 + 64) / 1e9)


def test_power_slows_the_sm_and_not_the_memory() -> None:
    plain, slow = bound(TINY, BASE), bound(TINY, replace(BASE, power_slowdown=2))
    for name in RESOURCES:
        factor = 1 if name in ("L2", "GMEM") else 2
        assert slow.seconds[name] == pytest.approx(factor * plain.seconds[name])


def test_no_roofline_promises_more_than_one_of_its_resources_allows() -> None:
    rng = random.Random(0)
    for work in workloads().values():
        for _ in range(100):
            figures = asdict(PUBLISHED)
            for name in sorted(set(figures) - {"sms"}):
                figures[name] *= rng.uniform(0.2, 5)
            machine = Machine(**figures)
            found = bound(work, machine)
            assert set(found.seconds) == set(RESOURCES)
            rate = work.flop / found.shortest
            assert all(rate <= work.flop / s for s in found.seconds.values() if s)
            interval = machine.mma_compute_interval * work.tile_n
            k = 256 // work.element_bits
            flop = 2 * work.tile_m / work.cta_group * work.tile_n * k
            peak = machine.sms * flop / interval * machine.clock
            assert rate <= peak / machine.power_slowdown * (1 + 1e-12)
            memory = machine.hbm_bandwidth * work.flop / work.gmem_nbytes
            assert rate <= memory * (1 + 1e-12)


def test_the_tiles_and_stages_of_document_003() -> None:
    work = workloads()["003"]
    assert (work.tiles, work.stages, work.mmas) == (10_878, 65_268, 24)
    assert work.operand_nbytes == 32_768
    assert work.gmem_nbytes == 928_256 * 768 + 768 * 768 + 2 * 928_256 * 768


def test_a_stage_of_the_default_gemm_has_its_bytes() -> None:
    work = workloads()["72b-1024"]
    assert (work.operand_nbytes, work.scale_nbytes) == (32_768, 4_096)
    assert (work.tiles, work.k_tiles, work.scale_atoms) == (64, 4, 8)


def test_a_pair_of_128_by_256_copies_twelve_scale_atoms_a_stage() -> None:
    assert workloads()["nvfp4-4096"].scale_atoms == 12


RECORDS = [
    ("nvfp4-1024", 4.38e-6),
    ("nvfp4-4096", 27.4e-6),
    ("nvfp4-16384", 1444e-6),
    ("bf16-8192", 629.7e-6),
    ("003", 543e-6),
]


@pytest.mark.parametrize(("name", "seconds"), RECORDS)
def test_a_record_lies_in_the_band(name: str, seconds: float) -> None:
    found = band(workloads()[name], published())
    assert found.workload.record_seconds == seconds
    assert found.low <= seconds <= found.high
    assert found.holds_record


def test_a_record_outside_is_said_to_be_outside() -> None:
    work = replace(workloads()["nvfp4-4096"], record_seconds=10e-6)
    assert band(work, published()).holds_record is False
    assert band(workloads()["72b-4096"], published()).holds_record is None


def test_the_corners_are_in_order() -> None:
    for work in workloads().values():
        found = band(work, published()).bounds
        times = [found[corner].shortest for corner in Corner]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("name", sorted(asdict(BASE)))
def test_a_machine_of_negative_figures_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"machine: {name} = -1: need"):
        bound(TINY, replace(BASE, **{name: -1}))
    if name not in MAY_BE_ZERO:
        with pytest.raises(InputError, match=f"{name} = 0: need more than zero"):
            bound(TINY, replace(BASE, **{name: 0}))
