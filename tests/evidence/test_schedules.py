"""Every schedule of a protocol: what the search counts, finds and leaves out."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from random import Random

import numpy as np
import pytest
from every_schedule import TooMany, try_all
from small_pipelines import FAULTS, mainloop, random_pipeline

import fp4ref
from fp4ref.errors import InputError, TraceError
from fp4ref.evidence.protocol import (
    Program,
    ProgramBuilder,
    certify_program,
    explore_program,
    programs,
    project,
    search,
    search_rings,
)
from fp4ref.evidence.protocol.counting import shows, witnesses
from fp4ref.evidence.protocol.order import reference
from fp4ref.evidence.protocol.projection import rings
from fp4ref.gemm.plan import rules
from fp4ref.trace import Trace


def recorded(k: int, schedule: str | int = "eager", stages: int = 2) -> fp4ref.Run:
    """One tile of a few stages, all roles."""
    rng = np.random.default_rng(0)
    a = fp4ref.quantize(rng.standard_normal((128, k), np.float32))
    b = fp4ref.quantize(rng.standard_normal((64, k), np.float32))
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=stages)
    return fp4ref.run(a, b, config=config, sms=1, schedule=schedule)


@pytest.fixture(scope="module")
def one_tile() -> fp4ref.Run:
    """The real pipeline: 1 tile, 2 stages, 4 k-tiles, all roles."""
    return recorded(1024)


@pytest.fixture(scope="module")
def pipeline(one_tile: fp4ref.Run) -> Program:
    (program,) = programs(one_tile.trace)
    return program


@pytest.fixture(scope="module")
def one_stage() -> Program:
    """Two k-tiles through one stage, which the kernel refuses only as too slow."""
    two = "the mainloop's ring has two stages"
    with pytest.MonkeyPatch.context() as patch:
        kept = [each for each in rules.RULES if each.name != two]
        assert len(kept) == len(rules.RULES) - 1
        patch.setattr(rules, "RULES", kept)
        (program,) = programs(recorded(512, stages=1).trace)
    return program


# The real pipeline


def test_all_interleavings_of_one_tile_are_explored_and_none_is_faulty(
    one_tile,
) -> None:
    (found,) = fp4ref.explore(one_tile)
    assert found.ok
    assert found.steps > 200
    assert found.interleavings == 196_608
    assert found.states < 5_000
    assert "196,608 distinguishable interleavings" in str(found)


def test_the_count_is_that_of_its_decisions(pipeline: Program) -> None:
    """Each of four k-tiles has 4 copies of which any may land last, and peeks."""
    found = search(project(pipeline, "mainloop"))
    yes_or_no = found.interleavings // 4**4
    assert found.interleavings % 4**4 == 0
    assert 1 < yes_or_no <= 2**8


@pytest.mark.parametrize("schedule", ["late", 7])
def test_another_recorded_schedule_gives_the_same_count(
    pipeline: Program, schedule: str | int
) -> None:
    run = recorded(1024, schedule)
    (found,) = fp4ref.explore(run, ring="mainloop")
    assert found.ok
    assert found.interleavings == search(project(pipeline, "mainloop")).interleavings


def test_each_planted_counting_fault_makes_a_state_faulty(pipeline: Program) -> None:
    """All but the arrival that nobody waits for: one tile asks the throttle once."""
    survivors = set()
    for name in ("dropped count", "wrong arrivals", "wrong bytes"):
        wanted, change = FAULTS[name]
        for number, step in enumerate(pipeline.steps):
            if not wanted(step):
                continue
            planted = pipeline.with_step(number, change(step, Random(number)))
            if search(planted).finding is None:
                survivors.add((name, pipeline.barriers[step.barrier].name))
    assert {barrier for _, barrier in survivors} <= {"throttle.empty[0]"}


REDUNDANT = {
    "bar 0": "the warp made the init itself, meets it again at bar 6, or has no work",
    "clc.full[0]": "the load warp refills a stage only after the MMA warp, which has "
    "read the answer, gave it back",
    "mainloop.empty[0]": "the load warp waited for this phase before it filled the "
    "stage that the MMA warp has waited for",
    "mainloop.empty[1]": "as mainloop.empty[0]",
}
"""Waits of one tile that other waits make redundant, by barrier, with the reason."""


def why_redundant(program: Program, number: int) -> str:
    """Return why nothing changes without a wait."""
    if program.generations[number] == -1:
        return "the round that never was: parity 1 passes at once on a fresh barrier"
    if program.actors[program.actor_of[number]][-1] == number:
        return "nothing follows it"
    return REDUNDANT.get(program.barriers[program.steps[number].barrier].name, "")


def test_each_dropped_wait_is_found_or_redundant(pipeline: Program) -> None:
    wanted, change = FAULTS["dropped wait"]
    found, redundant = 0, set()
    for number, step in enumerate(pipeline.steps):
        if not wanted(step):
            continue
        planted = pipeline.with_step(number, change(step, Random(0)))
        if certify_program(planted).findings:
            found += 1
        else:
            redundant.add(why_redundant(pipeline, number))
    assert found > 30
    assert "" not in redundant
    assert set(REDUNDANT.values()) <= redundant


def test_each_wrong_parity_of_an_mbarrier_is_found(pipeline: Program) -> None:
    for number, step in enumerate(pipeline.steps):
        if step.kind == "wait" and step.arrival < 0 and step.peek < 0:
            planted = pipeline.with_step(number, replace(step, parity=step.parity ^ 1))
            assert search(planted).finding
            assert certify_program(planted).findings


# Counts


@pytest.mark.parametrize("peeks", [False, True])
@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("readers", [0, 2])
def test_counts_are_those_of_brute_force_at_one_stage_and_two_k_tiles(
    peeks: bool, copies: int, readers: int
) -> None:
    program = mainloop(1, 2, copies=copies, peeks=peeks, readers=readers)
    tried, full = try_all(program), search(program, reduction=False)
    assert not tried.faulty
    assert full.schedules == tried.schedules
    assert full.states == tried.states
    assert len(tried.kinds) == full.interleavings == search(program).interleavings


@pytest.mark.parametrize("ring", ["mainloop", "accumulator", "throttle", "bar 1"])
def test_counts_of_the_recorded_rings_are_those_of_brute_force(ring: str) -> None:
    """The kernel has two stages at least; of one tile with two k-tiles."""
    (whole,) = programs(recorded(512).trace)
    program = project(whole, ring)
    tried, full = try_all(program), search(program, reduction=False)
    assert not tried.faulty
    assert (full.states, full.schedules) == (tried.states, tried.schedules)
    assert len(tried.kinds) == full.interleavings == search(program).interleavings


RINGS = ["mainloop", "accumulator", "throttle", "bar 0", "bar 1", "bar 6"]
LARGE_RINGS = ["clc", "other accesses"]


@pytest.mark.parametrize(
    "ring",
    [*RINGS, *(pytest.param(each, marks=pytest.mark.soak) for each in LARGE_RINGS)],
)
def test_counts_of_one_recorded_stage_are_those_of_brute_force(
    one_stage: Program, ring: str
) -> None:
    program = project(one_stage, ring)
    tried, full = try_all(program), search(program, reduction=False)
    assert not tried.faulty
    assert (full.states, full.schedules) == (tried.states, tried.schedules)
    assert len(tried.kinds) == full.interleavings == search(program).interleavings


def test_the_whole_of_one_recorded_stage_is_its_rings_together(
    one_stage: Program,
) -> None:
    """Brute force of each ring; nothing in one ring decides anything in another."""
    assert set(rings(one_stage)) == {*RINGS, *LARGE_RINGS}
    kinds = [len(try_all(project(one_stage, ring)).kinds) for ring in RINGS]
    clc = search(project(one_stage, "clc")).interleavings
    assert kinds == [128, 4, 1, 1, 1, 1]
    whole = search(one_stage)
    assert (whole.finding, whole.interleavings) == (None, prod(kinds) * clc)


def test_each_fault_of_one_recorded_stage_makes_a_state_faulty(
    one_stage: Program,
) -> None:
    """Brute force and search agree on each; what survives waits for nothing."""
    program, planted, survivors = project(one_stage, "mainloop"), 0, set()
    for name, (wanted, change) in FAULTS.items():
        for number, step in enumerate(program.steps):
            if not wanted(step):
                continue
            wrong = program.with_step(number, change(step, Random(number)))
            faulty = bool(try_all(wrong).faulty)
            assert (search(wrong).finding is not None) == faulty, (name, number)
            planted += 1
            if not faulty:
                survivors.add(name)
                assert name != "dropped wait" or why_redundant(program, number)
    assert planted == 60
    assert survivors <= {"dropped wait", "lost order"}


def test_the_reduction_visits_few_states_and_loses_no_class() -> None:
    program = mainloop(2, 4, copies=2)
    full, reduced = search(program, reduction=False), search(program)
    assert full.interleavings == reduced.interleavings == 4096
    assert reduced.states * 4 < full.states
    assert full.schedules > 10**12


def test_peeks_alone_double_the_count() -> None:
    build = ProgramBuilder()
    barrier = build.barrier("b", 1)
    build.count("a", barrier, arrivals=1)
    build.wait("c", barrier, 0, peek=build.peek("c", barrier, 0))
    assert search(build.program()).interleavings == 2


@pytest.mark.parametrize("arrivals", [2, 3, 4])
def test_only_the_last_arrival_tells_schedules_apart(arrivals: int) -> None:
    build = ProgramBuilder()
    barrier = build.barrier("b", arrivals)
    for i in range(arrivals):
        build.count(f"a{i}", barrier, arrivals=1)
    build.wait("c", barrier, 0)
    found = search(build.program(), reduction=False)
    assert search(build.program()).interleavings == found.interleavings == arrivals


# Three verdicts that agree


def agree(seed: int, most: int = 2_000) -> bool:
    """Compare searches, certificate and brute force on one pipeline; is it faulty?"""
    program = random_pipeline(seed)
    whole, certificate = search(program), certify_program(program)
    ringwise = search_rings(program)
    faulty = whole.finding is not None
    assert whole.complete
    assert certificate.verdict == ("error" if faulty else "clean"), seed
    assert any(found.finding for found in ringwise.values()) == faulty, seed
    try:
        tried = try_all(program, most=most)
    except TooMany:
        return faulty
    assert bool(tried.faulty) == faulty, seed
    if not faulty:
        assert len(tried.kinds) == whole.interleavings, seed
    return faulty


def test_projected_and_whole_verdicts_agree(rotating_seed: int) -> None:
    faulty = [agree(seed) for seed in range(rotating_seed, rotating_seed + 200)]
    assert 0.4 * len(faulty) <= sum(faulty) <= 0.8 * len(faulty)


@pytest.mark.soak
def test_projected_and_whole_verdicts_agree_on_a_thousand() -> None:
    faulty = [agree(seed, most=20_000) for seed in range(1000)]
    assert 0.4 * len(faulty) <= sum(faulty)


def test_the_witness_is_as_short_as_any(rotating_seed: int) -> None:
    compared = 0
    for seed in range(rotating_seed, rotating_seed + 100):
        program = random_pipeline(seed)
        full = search(program, reduction=False, most_states=20_000)
        found = explore_program(program)
        if full.complete and full.finding:
            nobody = full.finding.failure == "deadlock"
            assert len(found.finding.witness) <= len(full.path) + nobody, seed
            compared += 1
    assert compared > 20


def test_every_witness_of_the_certificate_can_be_executed(rotating_seed: int) -> None:
    shown = 0
    for seed in range(rotating_seed, rotating_seed + 200):
        program = random_pipeline(seed)
        first = reference(program)
        for finding, steps in witnesses(program, first):
            found = shows(program, first, steps)
            assert found is not None, (seed, finding)
            shown += 1
    assert shown > 100


# Rings


def test_rings_together_have_all_steps_and_each_is_clean(pipeline: Program) -> None:
    names = rings(pipeline)
    assert {"mainloop", "accumulator", "clc", "throttle", "bar 1"} < set(names)
    kept = [project(pipeline, name) for name in names]
    events = {step.event for program in kept for step in program.steps}
    visible = {s.event for s in pipeline.steps if s.kind != "pass" and _matters(s)}
    assert visible <= events
    assert all(found.finding is None for found in search_rings(pipeline).values())


def _matters(step) -> bool:
    return bool(step.barrier >= 0 or step.reads or step.writes)


# Limits and bad input


def test_a_search_that_is_cut_short_is_incomplete(one_tile: fp4ref.Run) -> None:
    (found,) = fp4ref.explore(one_tile, most_states=100)
    assert found.verdict == "incomplete"
    assert not found.ok
    assert "100 states were visited and more are left" in str(found)


def test_a_program_too_large_is_refused_with_the_nearest_choice(
    one_tile: fp4ref.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fp4ref.evidence.protocol.exploration.MOST_STEPS", 100)
    with pytest.raises(InputError, match=r"221 steps, and 100 .* one tile.*certify"):
        fp4ref.explore(one_tile)


def test_an_unknown_ring_is_refused(one_tile: fp4ref.Run) -> None:
    with pytest.raises(InputError, match="mainloop"):
        fp4ref.explore(one_tile, ring="main")


def test_a_trace_without_barriers_or_plan_is_a_sentence(one_tile: fp4ref.Run) -> None:
    with pytest.raises(TraceError, match="no mbarrier events"):
        fp4ref.explore(Trace())
    bare = Trace(one_tile.trace.events, base=one_tile.trace.base)
    with pytest.raises(TraceError, match="plan"):
        fp4ref.certify(bare)
    with pytest.raises(InputError, match="run is an int; need a Trace"):
        fp4ref.certify(3)  # type: ignore[arg-type]
