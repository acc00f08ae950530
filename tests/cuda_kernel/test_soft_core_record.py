"""What an H200 did with wrong decoders, flips, sleeps and a planted race, replayed."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import compile_soft
from fp4ref.cuda_kernel.sass import disassemble
from fp4ref.gemm.problem import GemmProblem

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from probes.kernel import delays, flips  # noqa: E402
from probes.kernel.mistakes import (  # noqa: E402
    LATENESS,
    MISTAKES,
    PAIR_MISTAKES,
    race,
)
from probes.kernel.record import LONG_PAIR, RECORD, tile_problem  # noqa: E402
from probes.kernel.soft_sources import soft_sources  # noqa: E402

RECORDED = json.loads(RECORD.read_text())
CHECKERS = RECORDED["checkers"]
NAMELESS = "nvfp4_gemm+0x203e0"
RACED_WORD = 0x400 + 896 + 56


def digest(d: NDArray[np.float32]) -> str:
    return hashlib.sha256(d.tobytes()).hexdigest()[:16]


def emulated(problem: GemmProblem) -> str:
    """The digest of D and SFD that the emulator leaves, as the card's record has it."""
    problem.launch()
    gmem = problem.machine.gmem
    found = [each for each in gmem.allocations if each.name in ("D", "SFD")]
    data = b"".join(gmem.contents(o.address, o.nbytes).tobytes() for o in found)
    return hashlib.sha256(data).hexdigest()[:16]


def test_the_record_is_of_these_sources() -> None:
    if RECORDED["sources"] != soft_sources():
        pytest.skip(f"{RECORD.name} is of older sources: probes.kernel.record")


def test_the_card_and_the_emulator_have_the_oracles_bits() -> None:
    right = digest(flips.expected(None))
    assert emulated(tile_problem()) == right
    assert RECORDED["right"] == [right] * 2
    assert RECORDED["pair"] == [emulated(delays.small_pair())] * 2


def test_every_wrong_decoder_was_caught_on_the_card() -> None:
    recorded = RECORDED["mistakes"]
    assert set(recorded) == {each.name for each in MISTAKES}
    caught = [found for each in MISTAKES for found in recorded[each.name]]
    assert len(set(caught)) == len(caught) == 6
    assert RECORDED["right"][0] not in caught
    assert all(len(found) == 16 for found in caught)


@pytest.mark.parametrize("mistake", PAIR_MISTAKES, ids=lambda each: each.name)
def test_every_wrong_pair_was_caught_on_the_card(mistake) -> None:
    found = RECORDED["pairs"][mistake.name]
    assert len(found) == 20
    assert found.count(emulated(delays.long_pair())) <= 5  # where nothing came late
    assert {len(each) for each in found} == {16}


@pytest.mark.parametrize("name", [LONG_PAIR, *(each.name for each in LATENESS)])
def test_a_pair_whose_peer_is_late_is_right_on_the_card(name: str) -> None:
    assert RECORDED["pairs"][name] == [emulated(delays.long_pair())] * 20


def test_every_mistake_is_in_the_sources_once() -> None:
    assert all(each.changed() for each in (*MISTAKES, *PAIR_MISTAKES))
    assert len(race()) == 2


def test_launches_with_sleeps_had_one_set_of_bits() -> None:
    recorded = RECORDED["delays"]
    assert set(recorded) == set(delays.CASES)
    assert all(len(found) == 1 for found in recorded.values())
    counts = {name: sum(found.values()) for name, found in recorded.items()}
    assert sum(counts.values()) >= 20_000
    assert sum(n for name, n in counts.items() if name.startswith("pairs")) >= 10_000


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", delays.CASES)
def test_launches_with_sleeps_had_the_emulators_bits(name: str) -> None:
    shape, changes = delays.CASES[name]
    problem = delays.problem(shape, GemmConfig.nvfp4(**changes))
    assert list(RECORDED["delays"][name]) == [emulated(problem)]


def test_200_flipped_bits_changed_d_as_predicted() -> None:
    right = RECORDED["right"][0]
    expected = [digest(flips.expected(each)) for each in flips.flips()]
    assert expected == RECORDED["flips"]
    assert len(expected) == 200
    used = [each for each in expected if each != right]
    assert len(set(used)) >= 100
    assert expected.count(right) >= 50


def test_a_prediction_without_the_swizzle_is_found() -> None:
    flip = flips.Flip(tile=0, before=0, buffer="a", offset=3 * 128, bit=2)
    plain = flips.Flip(tile=0, before=0, buffer="a", offset=3 * 128 + 48, bit=2)
    assert digest(flips.expected(flip)) != digest(flips.expected(plain))


@pytest.mark.parametrize("name", ["small", "small-pair"])
def test_memcheck_reports_nothing(name: str) -> None:
    assert CHECKERS[f"memcheck-{name}"]["summary"] == ["ERROR SUMMARY: 0 errors"]


def answer_bytes(config: GemmConfig) -> set[int]:
    """Where the answers of cluster launch control are, in a CTA."""
    first = 0x400 + plan(config).smem.clc_response
    return set(range(first, first + 16 * config.tiles.clc_stages))


def hazards(name: str) -> set[int]:
    """Places of hazards, in a CTA: a peer's have its rank in the high bits."""
    return {int(at, 16) & 0xFFFFFF for at in CHECKERS[f"racecheck-{name}"]["hazards"]}


@pytest.mark.parametrize("name", ["small", "small-pair"])
def test_racecheck_reports_the_answer_of_cluster_launch_control_alone(name) -> None:
    """It does not follow ``mbarrier.complete_tx``, which orders the bytes."""
    config = GemmConfig() if name == "small" else delays.small_pair().config
    assert hazards(name)
    assert hazards(name) <= answer_bytes(config)


def test_racecheck_reports_the_planted_race() -> None:
    assert hazards("planted-race") - answer_bytes(GemmConfig()) == {RACED_WORD}


@pytest.mark.parametrize("name", ["small", "small-pair"])
def test_synccheck_reports_barriers_with_a_number_of_threads_alone(name: str) -> None:
    """PTX lets a part of a CTA's warps meet; the tool calls that divergent."""
    places = CHECKERS[f"synccheck-{name}"]["places"]
    assert set(places) - {NAMELESS} == {"named_barrier_sync in named_barrier.cuh"}


@pytest.mark.soak
def test_what_synccheck_gives_without_a_line_is_such_a_barrier() -> None:
    """At this address the kernel that ran has bar.sync 0 with the CTA's threads."""
    made = compile_soft(GemmConfig())
    if f"NVRTC {made.nvrtc}" != RECORDED["compiler"]:
        pytest.skip(f"{made.nvrtc} compiled; the card had {RECORDED['compiler']}")
    address = NAMELESS.partition("+0x")[2]
    (line,) = [x for x in disassemble(made.cubin).splitlines() if f"/*{address}*/" in x]
    assert "BAR.SYNC.DEFER_BLOCKING 0x0, 0x100" in line
