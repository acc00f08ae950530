"""The certificate of a run's protocol: what it proves, and where a fault breaks it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import HardwareFault, InputError
from fp4ref.evidence.protocol import (
    Program,
    ProgramBuilder,
    certify_program,
    explore_program,
    programs,
)
from fp4ref.gemm import mma_warp
from fp4ref.hardware import mbarrier
from fp4ref.walk import DEFAULT_SCHEDULE, load_problem, make_config, walk


@pytest.fixture(scope="module")
def default_walk() -> fp4ref.Run:
    """The default walk: 2 CTAs with 3 tiles each, 5 stages, 6 k-tiles, all roles."""
    problem = load_problem(None)
    done = walk(
        problem,
        config=make_config("f32", None),
        sms=2,
        tiles=None,
        schedule=DEFAULT_SCHEDULE,
        backend="emulator",
        progress=None,
    )
    return done.run


def quantized(m: int, n: int, k: int) -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    rng = np.random.default_rng(3)
    a = fp4ref.quantize(rng.standard_normal((m, k), np.float32))
    return a, fp4ref.quantize(rng.standard_normal((n, k), np.float32))


# What is right


def test_the_default_walk_is_certified_in_five_seconds(default_walk) -> None:
    begin = time.perf_counter()
    found = fp4ref.certify(default_walk)
    assert time.perf_counter() - begin < 5
    assert found.ok
    assert [cta.steps > 800 for cta in found.ctas] == [True, True]
    assert all(cta.barriers == 25 and cta.phases > 70 for cta in found.ctas)
    assert "no deadlock, no overrun" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == "clean"


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_every_recorded_schedule_of_both_roads_is_certified(backend, schedule) -> None:
    a, b = quantized(256, 64, 768)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64)
    run = fp4ref.run(a, b, config=config, backend=backend, schedule=schedule, sms=1)
    assert fp4ref.certify(run).ok


@pytest.mark.parametrize(
    "config",
    [
        fp4ref.GemmConfig.nvfp4(tile_n=64, scheduler="static"),
        fp4ref.GemmConfig.nvfp4(tile_n=64, accumulator_stages=1),
        fp4ref.GemmConfig.nvfp4(stages=3, d_format="bf16"),
        fp4ref.GemmConfig.nvfp4(d_format="nvfp4"),
    ],
)
def test_other_configurations_are_certified(config: fp4ref.GemmConfig) -> None:
    a, b = quantized(256, 128, 512)
    assert fp4ref.certify(fp4ref.run(a, b, config=config, sms=1)).ok


def test_a_kernel_that_loads_c_is_certified() -> None:
    a, b = quantized(256, 256, 512)
    config = fp4ref.GemmConfig.example_72b()
    c = np.ones((256, 256), np.float32)
    assert fp4ref.certify(fp4ref.run(a, b, c, config=config, schedule=4)).ok


def test_one_scale_buffer_is_right_only_as_shipped_kernels_have_it() -> None:
    """PTX orders no copy after an earlier MMA; no run shows it under ``eager``."""
    a, b = quantized(128, 128, 1024)
    config = fp4ref.GemmConfig.nvfp4(scale_buffers=1)
    run = fp4ref.run(a, b, config=config, ordering="shipped")
    assert fp4ref.certify(run).ok
    found = fp4ref.certify(fp4ref.run(a, b, config=config, ordering="ptx", races="off"))
    assert found.verdict == "error"
    assert {finding.failure for finding in found.findings} == {"race"}
    assert "TMEM SFA 0" in found.findings[0].what
    assert "scale_copies.py" in found.findings[0].source


# Counting faults of the default walk


def counting_faults(program: Program) -> Iterator[tuple[Program, int, str]]:
    """Plant each wrong count; say where, and the line."""
    for number, step in enumerate(program.steps):
        if step.kind != "count":
            continue
        changes = [replace(step, arrivals=step.arrivals + d) for d in (-1, 1)]
        changes = changes if step.arrivals else []
        if step.tx_bytes:
            changes += [replace(step, tx_bytes=step.tx_bytes + d) for d in (-16, 16)]
        changes.append(replace(step, kind="pass", arrivals=0, tx_bytes=0))
        for changed in changes:
            yield program.with_step(number, changed), step.barrier, step.source
    for at, barrier in enumerate(program.barriers):
        for count in (barrier.count - 1, barrier.count + 1):
            if count:
                barriers = list(program.barriers)
                barriers[at] = replace(barrier, count=count)
                yield replace(program, barriers=barriers), at, ""


NOT_WAITED_FOR = {"throttle.empty[0]", "throttle.empty[1]"}
"""Barriers whose last phase nobody waits for: a wrong count there changes nothing."""


def check_counting_faults(program: Program, start: int, stride: int) -> tuple[int, int]:
    """Check some of the faults; return how many break it, and how many do not."""
    planted = harmless = 0
    for faulty, at, source in islice(counting_faults(program), start, None, stride):
        found = certify_program(faulty).findings
        name = program.barriers[at].name
        if not found:
            assert name in NOT_WAITED_FOR
            harmless += 1
            continue
        first = found[0]
        assert (first.barrier, first.generation >= 0) == (name, True)
        assert first.expected
        assert first.found
        assert first.expected != first.found
        assert not source or source in (first.source, first.other_source)
        planted += 1
    return planted, harmless


def test_a_counting_fault_breaks_the_certificate_where_it_is(
    default_walk: fp4ref.Run, rotating_seed: int
) -> None:
    program = programs(default_walk.trace)[0]
    planted, _ = check_counting_faults(program, rotating_seed % 10, 10)
    assert planted > 80


@pytest.mark.soak
def test_each_counting_fault_breaks_the_certificate_where_it_is(default_walk) -> None:
    planted, harmless = check_counting_faults(programs(default_walk.trace)[0], 0, 1)
    assert planted > 850
    assert harmless <= 5


def test_a_missing_arrival_is_told_with_its_books(default_walk) -> None:
    program = programs(default_walk.trace)[0]
    number = next(
        n
        for n, step in enumerate(program.steps)
        if step.arrivals == 32 and "accumulator.empty" in program.describe(n)
    )
    step = replace(program.steps[number], arrivals=31)
    finding = certify_program(program.with_step(number, step)).findings[0]
    assert finding.failure == "deadlock"
    assert finding.barrier == "accumulator.empty[0]"
    assert finding.generation == 0
    assert finding.expected.startswith("128 arrivals")
    assert finding.found.startswith("127 arrivals")
    assert finding.other_source == program.steps[number].source
    for label in ("where: ", "expected: ", "found: ", "rule: ", "remedy: ", "witness"):
        assert label in str(finding)


# Faults that a run does not show


def test_a_stage_given_back_too_early_is_found_in_a_run_that_was_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under ``eager`` the MMAs land at once, so the run gives the right bits."""

    def release(warp, stage):
        mbarrier.arrive(warp, stage.empty)

    a, b = quantized(128, 64, 2048)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=2)
    right = fp4ref.run(a, b, config=config)
    monkeypatch.setattr(mma_warp, "release_stage", release)
    run = fp4ref.run(a, b, config=config, races="off")
    assert (run.d == right.d).all()
    (finding, *_) = fp4ref.certify(run).findings
    assert finding.failure == "race"
    assert "cp.async.bulk.tensor" in finding.who
    (explored,) = fp4ref.explore(run)
    assert explored.verdict == "error"
    assert len(explored.finding.witness) == len(finding.witness)


def test_a_commit_before_the_mmas_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accumulator is handed over by an arrival, not by a commit."""

    def commit(warp, stage):
        mbarrier.arrive(warp, stage.full)

    a, b = quantized(128, 64, 512)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64)
    monkeypatch.setattr(mma_warp, "commit_accumulator", commit)
    finding = fp4ref.certify(fp4ref.run(a, b, config=config, races="off")).findings[0]
    assert finding.failure == "race"
    assert "TMEM D 0" in finding.what


def test_a_tail_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ``eager`` the last commits have landed when the load warp ends."""
    monkeypatch.setattr("fp4ref.gemm.cleanup.load_tail", _nothing)
    a, b = quantized(128, 64, 1024)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=2)
    finding = fp4ref.certify(fp4ref.run(a, b, config=config, races="off")).findings[0]
    assert finding.failure == "exit"
    assert "tcgen05.commit" in finding.other
    assert "mma_warp.py" in finding.other_source


def _nothing(*_: object) -> Iterator[None]:
    yield from ()


def test_a_run_that_ended_in_a_fault_is_never_clean(monkeypatch) -> None:
    monkeypatch.setattr(mma_warp, "release_stage", lambda warp, stage: None)
    a, b = quantized(128, 64, 2048)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=2)
    with pytest.raises(HardwareFault) as raised:
        fp4ref.run(a, b, config=config)
    found = fp4ref.certify(raised.value.trace)
    assert found.verdict != "clean"
    assert "DeadlockError" in str(found)


def test_an_untraced_run_is_refused() -> None:
    a, b = quantized(128, 64, 256)
    with pytest.raises(InputError, match="trace=True"):
        fp4ref.certify(fp4ref.run(a, b, trace=False))


def test_what_is_not_modelled_is_named() -> None:
    program = replace(_handover(), unmodelled=("barrier.cluster.arrive",))
    found = certify_program(program)
    assert found.verdict == "incomplete"
    assert "barrier.cluster.arrive is not modelled" in str(found)
    assert explore_program(program).verdict == "incomplete"


def test_what_comes_from_another_cta_is_not_taken_for_missing() -> None:
    """A pair is not certified, and no right kernel is called broken."""
    pair = fp4ref.GemmConfig.nvfp4(cta_group=2, tile_m=256, cluster_m=2, tile_n=64)
    found = fp4ref.certify(fp4ref.run(*quantized(256, 64, 256), config=pair))
    assert found.verdict == "incomplete"
    assert "on another CTA's mbarrier is not modelled" in str(found)
    assert not found.findings


# One failure each, by hand


def _handover(
    parity: int = 0, expected: int = 16, arrivals: int = 1, wait: bool = True
) -> Program:
    """A copy fills a stage, and a reader waits for it."""
    build = ProgramBuilder()
    full, stage = build.barrier("ring.full[0]", 1), build.cell("stage")
    issue = build.count("load", full, arrivals=arrivals, tx_bytes=expected)
    build.count("tma", full, tx_bytes=-16, writes=[stage], after=[issue])
    if wait:
        build.wait("mma", full, parity)
    build.access("mma", reads=[stage])
    return build.program()


def failures(program: Program) -> set[str]:
    found = {finding.failure for finding in certify_program(program).findings}
    explored = explore_program(program)
    assert (explored.finding is not None) == bool(found)
    return found


def test_each_failure_has_its_name() -> None:
    assert failures(_handover()) == set()
    assert failures(_handover(wait=False)) == {"race"}
    assert failures(_handover(parity=1)) == {"overrun"}
    assert "deadlock" in failures(_handover(expected=32))
    assert "over-arrival" in failures(_handover(arrivals=2))


def test_bytes_that_are_left_over() -> None:
    build = ProgramBuilder()
    build.count("load", build.barrier("ring.full[0]", 1), arrivals=1, tx_bytes=16)
    assert failures(build.program()) == {"bytes"}


def test_bytes_expected_after_the_last_arrival() -> None:
    build = ProgramBuilder()
    full = build.barrier("ring.full[0]", 1)
    build.count("load", full, arrivals=1)
    expect = build.count("other", full, tx_bytes=16)
    build.count("tma", full, tx_bytes=-16, after=[expect])
    assert failures(build.program()) & {"early phase", "stale count"}


def test_a_second_arrival_that_nothing_orders_after_the_first_phase() -> None:
    build = ProgramBuilder()
    full = build.barrier("ring.full[0]", 2)
    for _ in range(2):
        build.count("a", full, arrivals=1)
        build.count("b", full, arrivals=1)
    assert failures(build.program()) == {"stale count"}


def test_a_waiter_that_is_lapped() -> None:
    build = ProgramBuilder()
    full = build.barrier("ring.full[0]", 1)
    build.count("a", full, arrivals=1)
    build.count("a", full, arrivals=1)
    build.wait("b", full, 0)
    assert failures(build.program()) == {"overrun"}


def test_a_phase_that_never_comes_overtakes_nobody() -> None:
    """An arrival may come early if the next phase needs the waiter's own."""
    build = ProgramBuilder()
    full = build.barrier("ring.full[0]", 2)
    for actor in ("a", "b"):
        build.count(actor, full, arrivals=1)
    wait = build.wait("b", full, 0)
    build.count("c", full, arrivals=1, after=[wait])
    build.wait("d", full, 0)
    assert failures(build.program()) == set()


def test_a_named_barrier_arrived_at_twice() -> None:
    build = ProgramBuilder()
    bar = build.barrier("bar 1", 64, named=True)
    build.count("warp0", bar, arrivals=32, operation="bar.arrive")
    build.count("warp0", bar, arrivals=32, operation="bar.arrive")
    build.sync("warp1", bar, 32)
    assert failures(build.program()) == {"deadlock", "stale count"}
    found = certify_program(build.program()).findings
    assert {finding.barrier for finding in found} == {"bar 1"}
