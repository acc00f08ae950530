"""What an H200 did with the gallery's mistakes, against the machine and the gallery."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import card_family
import pytest

from fp4ref.evidence.faults.gallery import GALLERY
from fp4ref.lessons import silicon_faults as lesson

sys.path.insert(0, str(Path(__file__).parents[2]))

from probes.kernel import record, wrong_kernels
from probes.kernel import silicon_faults as probe
from probes.kernel.soft_sources import soft_sources
from probes.timing.record import RECORD as TIMING

RECORDED = json.loads(probe.RECORD.read_text())
CLEAN = {wrong_kernels.twin(each): each for each in wrong_kernels.asked().values()}


def test_all_records_are_of_one_card_and_of_these_sources() -> None:
    files = (probe.RECORD, record.RECORD, card_family.RECORD)
    records = [json.loads(each.read_text()) for each in files]
    ran = {each["sources"] for each in records}
    if ran != {soft_sources()}:
        pytest.skip(f"a card ran {', '.join(sorted(ran))}; today is {soft_sources()}")
    assert len({(each["card"], each["driver"]) for each in records}) == 1


def test_the_kernel_without_mmas_is_of_these_sources() -> None:
    ran = json.loads(TIMING.read_text())["sources"]
    if ran != soft_sources():
        pytest.skip(f"{TIMING.name} is of {ran}: probes.timing.record")


def test_every_mistake_of_the_gemm_was_put_on_the_card() -> None:
    assert set(RECORDED["faults"]) == set(wrong_kernels.asked())
    assert len(RECORDED["faults"]) >= 100
    assert set(RECORDED["clean"]) == set(CLEAN)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", CLEAN)
def test_without_the_mistake_every_launch_had_the_emulators_bits(name: str) -> None:
    problem = wrong_kernels.problem_of(CLEAN[name])
    problem.launch()
    gmem, outputs = problem.machine.gmem, wrong_kernels.outputs_of(problem)
    kept = [each for each in gmem.allocations if each.name in outputs]
    data = b"".join(gmem.contents(o.address, o.nbytes).tobytes() for o in kept)
    right = hashlib.sha256(data).hexdigest()[:16]
    assert RECORDED["clean"][name] == {right: probe.LAUNCHES}


def test_wrong_data_is_wrong_in_every_launch() -> None:
    rows = [each for each in lesson.on_silicon() if each.of_data]
    assert len(rows) >= 30
    assert [each.fault.name for each in rows if each.often != "always"] == []


def test_what_the_card_showed_is_counted() -> None:
    """Of the rules those that Hopper can show, and of these what was shown."""
    rules = [each for each in lesson.on_silicon() if not each.of_data]
    hard = [each for each in rules if each.often != "never" or not each.soft]
    shown = [each for each in rules if each.often != "never"]
    assert (len(rules), len(hard), len(shown)) == (90, 76, 52)
    assert all(each.machine for each in rules)


@pytest.mark.parametrize("name", RECORDED["reduced"])
def test_a_reduced_run_needs_each_sleep_that_is_left(name: str) -> None:
    found = RECORDED["reduced"][name]
    wrong, launches = found["wrong"], found["launches"]
    assert len(found["kept"]) < found["sleeps"]
    assert wrong["kept"] >= launches // 2
    assert max(*wrong["without one of them"], wrong["none"]) < wrong["kept"] // 4


def test_the_sleep_that_is_left_is_named() -> None:
    (each,) = lesson.reduced()
    assert each.kept == ("warp 5, 614 ns before try_wait on c.full[1]",)
    assert each.fault is GALLERY["mixed-rows-not-met"]


def test_a_barrier_is_named_by_its_address() -> None:
    fault = GALLERY["producer-parity"]
    assert lesson.waits_for(fault, "warp 2, 0x410, parity 0") == (
        "warp 2 on mainloop.empty[0]"
    )
    assert lesson.barrier(fault, 0x780) == "a barrier of the soft unit"
