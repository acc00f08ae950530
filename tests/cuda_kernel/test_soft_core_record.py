"""What an H200 did with wrong decoders, flipped bits and a planted race, replayed."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fp4ref import GemmConfig, plan

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from probes.kernel import flips  # noqa: E402
from probes.kernel.mistakes import MISTAKES, race  # noqa: E402
from probes.kernel.record import RECORD, tile_problem  # noqa: E402

RECORDED = json.loads(RECORD.read_text())
CHECKERS = RECORDED["checkers"]
RACED_WORD = 0x400 + 896 + 56


def digest(d: NDArray[np.float32]) -> str:
    return hashlib.sha256(d.tobytes()).hexdigest()[:16]


def test_the_card_and_the_emulator_have_the_oracles_bits() -> None:
    problem = tile_problem()
    problem.launch()
    gmem = problem.machine.gmem
    (d,) = (each for each in gmem.allocations if each.name == "D")
    emulated = gmem.contents(d.address, d.nbytes)
    assert emulated.tobytes() == flips.expected(None).tobytes()
    assert RECORDED["right"] == [digest(flips.expected(None))] * 2


def test_every_wrong_decoder_was_caught_on_the_card() -> None:
    assert set(RECORDED["mistakes"]) == {each.name for each in MISTAKES}
    caught = [found for (found,) in RECORDED["mistakes"].values()]
    assert len(set(caught)) == 6
    assert RECORDED["right"][0] not in caught
    assert all(len(found) == 16 for found in caught)


def test_every_mistake_is_in_the_sources_once() -> None:
    assert all(each.changed() for each in MISTAKES)
    assert len(race()) == 2


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


def test_memcheck_reports_nothing() -> None:
    assert CHECKERS["memcheck-small"]["summary"] == ["ERROR SUMMARY: 0 errors"]


def answer_bytes() -> set[int]:
    """Where the answers of cluster launch control are."""
    config = GemmConfig()
    first = 0x400 + plan(config).smem.clc_response
    return set(range(first, first + 16 * config.tiles.clc_stages))


def test_racecheck_reports_the_answer_of_cluster_launch_control_alone() -> None:
    """It does not follow ``mbarrier.complete_tx``, which orders the bytes."""
    hazards = {int(at, 16) for at in CHECKERS["racecheck-small"]["hazards"]}
    assert hazards
    assert hazards <= answer_bytes()


def test_racecheck_reports_the_planted_race() -> None:
    hazards = {int(at, 16) for at in CHECKERS["racecheck-planted-race"]["hazards"]}
    assert hazards - answer_bytes() == {RACED_WORD}


def test_synccheck_reports_barriers_with_a_number_of_threads_alone() -> None:
    """PTX lets a part of a CTA's warps meet; the tool calls that divergent."""
    places = CHECKERS["synccheck-small"]["places"]
    assert set(places) == {"named_barrier_sync in named_barrier.cuh"}
