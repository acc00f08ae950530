"""replay: the machine's times again from the trace alone, and by other durations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from gemm_timed import CASES, operands, ran, traced_on

import fp4ref
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.timing import Durations
from fp4ref.lab.bounds import bound
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.paths import by_operation, critical_path, stalls
from fp4ref.lab.timing.replay import Replay
from fp4ref.lab.timing.what_if import (
    BANDWIDTHS,
    drawn,
    faster,
    run_clocks,
    slowed,
)
from fp4ref.lab.workload import Workload
from fp4ref.parameters import Corner, Machine, published
from fp4ref.trace import Trace

SHAPE = 256, 384, 1024


def last(trace: Trace) -> float:
    return max(event.end for event in trace)


@pytest.mark.parametrize("name", CASES)
def test_the_times_of_the_run_follow_from_its_trace(name: str) -> None:
    graph = Graph(ran(name, "emulator", "timed").trace)
    replay = Replay(graph)
    for step, node in graph.nodes.items():
        assert replay.starts[step] == pytest.approx(node.event.start, abs=1e-6)
        assert replay.ends[step] == pytest.approx(node.event.end, abs=1e-6)
    assert len(graph.nodes) == sum(e.kind != "note" for e in graph.trace)


def test_compiled_code_is_replayed_too() -> None:
    trace = ran("pair", "ptx", "timed").trace
    assert Replay(Graph(trace)).end == pytest.approx(last(trace), abs=1e-6)


def test_other_durations_give_nearly_what_a_run_with_them_takes() -> None:
    """The order is the recorded one: a run anew may serve in another, and be faster."""
    graph = Graph(traced_on(Durations.of(), SHAPE))
    for corner in (Corner.SLOW, Corner.FAST):
        durations = Durations.of(corner=corner)
        replayed = Replay(graph, durations).end
        assert replayed == pytest.approx(last(traced_on(durations, SHAPE)), rel=0.1)


@pytest.mark.parametrize("name", CASES)
def test_the_critical_path_is_the_whole_run_without_a_gap(name: str) -> None:
    replay = Replay(Graph(ran(name, "emulator", "timed").trace))
    links = critical_path(replay)
    assert sum(link.clocks for link in links) == pytest.approx(replay.end)
    assert sum(by_operation(replay, links).values()) == pytest.approx(replay.end)
    now = 0.0
    for link in links:
        assert link.start == pytest.approx(now, abs=1e-4)
        now = link.start + link.clocks


def test_what_is_off_the_critical_path_may_take_longer() -> None:
    """And what is on it may not: a clock more of the first load is one of the run."""
    graph = Graph(ran("clc", "emulator", "timed").trace)
    replay = Replay(graph)
    more = replace(replay.durations, clc_latency=replay.durations.clc_latency + 1)
    assert Replay(graph, more).end == replay.end
    initial = replay.durations.warp_instruction
    longer = replace(replay.durations, warp_instruction=initial + 1)
    count = sum(
        link.what == "warp" and link.clocks == pytest.approx(initial)
        for link in critical_path(replay)
    )
    assert Replay(graph, longer).end >= replay.end + count


def test_a_stall_says_which_barrier_and_whose_arrival_was_last() -> None:
    trace = ran("clc", "emulator", "timed").trace
    found = stalls(Replay(Graph(trace)))
    full = [s for s in found if s.on == "mainloop.full[0]"]
    assert {s.agent for s in full} == {"warp0"}
    assert {s.by_agent for s in full} == {"tma"}
    ready = [s for s in found if s.on.startswith("accumulator.full")]
    assert {s.by_operation for s in ready} == {"tcgen05.commit"}
    for stall in found:
        event = trace.events[stall.step]
        assert stall.start == pytest.approx(event.start)
        assert stall.start + stall.clocks <= event.end + 1e-6


def test_a_trace_without_times_is_refused() -> None:
    a, b = operands(128, 128, 256)
    trace = fp4ref.run(a, b, schedule=3, trace=True).trace
    with pytest.raises(InputError, match=r"^a trace of the schedule .seed 3. has no"):
        Graph(trace)


# -- the bound ------------------------------------------------------------------------

WORK = Workload(
    name="test",
    what="",
    m=SHAPE[0],
    n=SHAPE[1],
    k=SHAPE[2],
    tile_m=128,
    tile_n=128,
    cta_group=1,
    element_bits=4,
    block_scaled=True,
    d_bits=32,
    added_bits=0,
    remark="",
)


def machine_of(durations: Durations) -> Machine:
    """The same machine as `lab.bounds` has it: two SMs."""
    d, sms = durations, 2
    return Machine(
        sms=sms,
        clock=d.clock,
        power_slowdown=1,
        smem_bandwidth=d.smem_bandwidth,
        smem_port_shared=d.smem_port_shared,
        mma_compute_interval=d.mma_column or 1e-30,
        scale_copy_interval=d.scale_copy,
        tmem_read_bandwidth=4 * d.tmem_load_bandwidth,
        l2_bandwidth=d.l2_bandwidth * sms * d.clock,
        hbm_bandwidth=d.hbm_bandwidth * sms * d.clock,
        first_load_latency=0,
        mma_end_latency=0,
        launch=0,
    )


@pytest.mark.parametrize(
    ("resource", "changed"),
    [
        ("MMA", {"mma_column": 0.5}),
        ("SMEM", {"smem_bandwidth": 64}),
        ("scale copies", {"scale_copy": 51}),
        ("TMEM", {"tmem_load_bandwidth": 55}),
        ("L2", {"l2_bandwidth": 60}),
        ("GMEM", {"hbm_bandwidth": 25}),
    ],
)
def test_without_latency_one_resource_gives_its_bound(resource, changed) -> None:
    durations = Durations.ideal(**changed)
    found = bound(WORK, machine_of(durations))
    assert found.binding == resource
    took = last(traced_on(durations, SHAPE)) / durations.clock
    # Stores of the last tile to shared memory go by the same figure, after its MMAs.
    slack = 0.05 if resource == "SMEM" else 1e-9
    assert found.shortest * (1 - 1e-9) <= took <= found.shortest * (1 + slack)


def test_no_machine_is_faster_than_its_bound() -> None:
    graph = Graph(traced_on(Durations.of(), SHAPE))
    machines = drawn(200, seed=1)
    took = run_clocks(graph, machines)
    for i in range(200):
        one = replace(
            machines,
            **{
                name: float(value[i])
                for name, value in machines.to_dict().items()
                if isinstance(value, np.ndarray)
            },
        )
        assert took[i] >= bound(WORK, machine_of(one)).shortest * one.clock


# -- a thousand machines --------------------------------------------------------------


def test_more_bandwidth_or_a_faster_epilogue_slows_no_machine() -> None:
    graph, machines = Graph(traced_on(Durations.of(), SHAPE)), drawn(1000)
    before = run_clocks(graph, machines)
    assert before.std() > 0
    for name in (*BANDWIDTHS, "epilogue_element"):
        after = run_clocks(graph, faster(machines, (name,), 1.5))
        assert not slowed(before, after, 0).size, name


def test_more_stages_slow_no_machine() -> None:
    machines, took = drawn(1000, seed=2), []
    for stages in (2, 3, 4, 5):
        config = GemmConfig.nvfp4(stages=stages, d_format="bf16")
        graph = Graph(traced_on(Durations.of(), SHAPE, config))
        took.append(run_clocks(graph, machines))
    for fewer, more in pairwise(took):
        assert not slowed(fewer, more).size
    assert took[0].mean() > 1.1 * took[-1].mean()


def test_machines_are_drawn_within_the_ranges() -> None:
    machines, rows = drawn(1000), published()
    assert machines.mbarrier_wake.min() >= rows["mbarrier_wake"].low
    assert machines.mbarrier_wake.max() <= rows["mbarrier_wake"].high
    assert np.ptp(machines.mbarrier_wake) > 50
    with pytest.raises(InputError, match="count"):
        drawn(0)
