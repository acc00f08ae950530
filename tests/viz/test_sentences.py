"""Every event has a sentence: short, without addresses, and true.

The wording is checked over traces of our kernel on both machines, of its mistakes and
of kernels written by hand. What a sentence counts is counted here another way: from the
plan, and from the barriers' recorded states.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sentence_wording import check_wording

import fp4ref
from fp4ref import GemmConfig
from fp4ref.errors import HardwareFault
from fp4ref.evidence.faults import catch
from fp4ref.evidence.faults.gallery import GALLERY
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.viz.sentences import sentence, sentences

SHAPE = (200, 192, 512)
CONFIGS = {
    "default": GemmConfig(),
    "pair with C": GemmConfig.nvfp4(
        cta_group=2, tile_m=256, cluster_m=2, c_format="bf16", beta=0.5
    ),
    "split": GemmConfig.nvfp4(splits=2),
    "static, NVFP4 out": GemmConfig.nvfp4(scheduler="static", d_format="nvfp4"),
}
CASES = [(name, machine) for name in CONFIGS for machine in ("emulator", "ptx")]


def traced(name: str, machine: Any) -> Trace:
    rng = np.random.default_rng(5)
    m, n, k = SHAPE
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, k), np.float32)) for rows in (m, n)
    )
    c = rng.standard_normal((m, n)).astype(ml_dtypes.bfloat16)
    more = {"c": c} if name == "pair with C" else {}
    run = fp4ref.run(
        a, b, config=CONFIGS[name], backend=machine, trace=True, schedule=3, **more
    )
    assert run.trace is not None
    return run.trace


@pytest.fixture(scope="module", params=CASES, ids=lambda case: " on ".join(case))
def trace(request: pytest.FixtureRequest) -> Trace:
    return traced(*request.param)


def test_sentences_are_short_and_name_no_address(trace: Trace) -> None:
    check_wording(trace)


def test_an_mma_is_counted_in_its_tile_and_sums_its_k(trace: Trace) -> None:
    plan, shape = RecordedPlan.required(trace.meta), trace.meta["shape"]
    splits = trace.meta["config"]["tiles"]["splits"]
    each = plan.k_tiles(shape["k"]) // splits * plan.k_blocks
    issued: dict[int, list[str]] = defaultdict(list)
    for event, words in zip(trace, sentences(trace), strict=True):
        if event.operation == "tcgen05.mma" and event.kind == "issue":
            issued[event.sm].append(words)
        if event.operation == "tcgen05.mma" and event.kind == "land":
            (number,) = re.findall(r"MMA (\d+) of", words)
            assert f"now sums {int(number) * plan.mma_k} of K" in words
    for words in issued.values():
        numbers = [re.findall(r"MMA (\d+) of (\d+) ", each) for each in words]
        wanted = [(str(i % each + 1), str(each)) for i in range(len(words))]
        assert [found for (found,) in numbers] == wanted
        assert ["new sum" in each for each in words] == [i == "1" for i, _ in wanted]


def test_each_tile_is_named_as_often_as_it_has_mmas(trace: Trace) -> None:
    plan, (m, n, k) = RecordedPlan.required(trace.meta), SHAPE
    tiles = re.findall(
        r"starts MMA \d+ of \d+ of tile (\(\d+, \d+\))", "\n".join(sentences(trace))
    )
    # The leader of a pair starts the MMAs of both CTAs' tiles.
    rows = range(0, -(-m // plan.tile_m), trace.meta["config"]["cluster"]["cta_group"])
    each = plan.k_tiles(k) * plan.k_blocks
    wanted = {f"({i}, {j})": each for i in rows for j in range(-(-n // plan.tile_n))}
    assert {name: tiles.count(name) for name in tiles} == wanted


def test_a_barrier_is_said_to_be_complete_when_its_phase_flips(trace: Trace) -> None:
    """Both ways, from the recorded phases: no other sentence says "is full"."""
    seen = 0
    for event, words in zip(trace, sentences(trace), strict=True):
        if not event.barrier or event.operation == "mbarrier.init":
            continue
        flipped = event.barrier[0].before[0] != event.barrier[0].after[0]
        done = re.search(r"; .* is (full|free|summed|there|open|read|passed)", words)
        done = done or re.search(r"; .* is no longer needed", words)
        assert bool(done) == flipped, (event.operation, words)
        seen += flipped
    assert seen > 10


def test_a_stage_holds_what_the_plan_says(trace: Trace) -> None:
    """The stage that a load is said to fill, against where its bytes went."""
    plan = RecordedPlan.required(trace.meta)
    for event, words in zip(trace, sentences(trace), strict=True):
        if event.kind != "land" or not event.operation.endswith(".load"):
            continue
        space, start = event.writes[0].space, event.writes[0].start
        tensor, offset = event.operands["tensor"], start - trace.base[space]
        (part,) = [
            p
            for p in plan.smem
            if p.name == tensor and 0 <= offset - p.offset < p.nbytes
        ]
        name = "C buffer" if tensor == "C" else "stage"
        assert re.search(rf" to {name} {part.stage}[;.]", words), words
        letter = tensor.removeprefix("SF")
        assert re.search(rf"\b{letter}\b", words), words


def test_one_sentence_is_that_of_all() -> None:
    trace = traced("default", "emulator")
    told = sentences(trace)
    for step in (0, 7, len(trace) // 2, len(trace) - 1):
        assert sentence(trace, step) == told[step]


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", GALLERY)
def test_a_run_that_goes_wrong_has_sentences(name: str) -> None:
    each = GALLERY[name]
    form = "emulator" if "emulator" in each.forms else "ptx"
    found = catch.run_fault(each, form).fault
    if not isinstance(found, HardwareFault) or not isinstance(found.trace, Trace):
        pytest.skip("this mistake ends in a wrong number or a refusal, without a trace")
    check_wording(found.trace)
