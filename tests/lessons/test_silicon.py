"""silicon: the records that the page and notebook 21 show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.device.driver import DeviceError, Gpu
from fp4ref.evidence.faults.gallery import GALLERY
from fp4ref.lessons import silicon, silicon_pictures

DATA = Path(__file__).parents[1] / "data"
CHECKERS = json.loads((DATA / "soft_core_h200.json").read_text())["checkers"]


def test_a_soft_part_is_in_the_folder_of_soft_bodies_and_a_real_one_is_not() -> None:
    for part in silicon.PARTS:
        assert (kernel_root() / part.file).is_file(), part
        assert part.real == ("soft" not in part.file)


@pytest.mark.parametrize("name", ["cluster", "smem", "named_barrier"])
def test_what_is_the_cards_own_has_no_soft_body(name: str) -> None:
    assert not (kernel_root() / silicon.SOFT_HARDWARE / f"{name}.cuh").exists()


def test_a_load_of_a_pair_is_the_cards_own_too() -> None:
    soft = (kernel_root() / silicon.SOFT_HARDWARE / "tma.cuh").read_text()
    assert '#include "../hardware/tma.cuh"' in soft
    assert "cp.async.bulk" not in soft


def test_the_counts_are_those_of_the_record() -> None:
    family = json.loads((DATA / "card_family.json").read_text())
    found = silicon.kernel_runs()
    assert found.launches == len(family["cases"]) * family["runs"] + 27_000
    assert found.delayed == 27_000
    assert set(found.sets) == {1}
    assert found.wrong == 0


def test_code_that_the_card_did_not_run_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = silicon.probes_module("kernel.soft_sources")
    ran = silicon.record("soft_core_h200")["sources"]
    monkeypatch.setattr(sources, "soft_sources", lambda: ran)
    assert silicon.age() == ""
    monkeypatch.setattr(sources, "soft_sources", lambda: "another")
    assert silicon.age().endswith("today's are another.")


def test_every_descriptor_is_equal_and_a_wrong_place_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = silicon.descriptors()
    assert sum(count for count, _ in found.values()) == 522
    assert all(count == equal for count, equal in found.values())
    module = silicon.probes_module("descriptors")
    right = module.places

    def one_off(*given: object) -> np.ndarray:
        answer = right(*given).copy()
        answer[0, 0] ^= 1
        return answer

    monkeypatch.setattr(module, "places", one_off)
    assert not any(equal for _, equal in silicon.descriptors().values())


def test_chunks_name_the_row_and_the_half() -> None:
    k, n = np.meshgrid(np.arange(16), np.arange(2), indexing="ij")
    names = silicon.chunks(n * 128 + (k // 8 ^ n) * 16 + k % 8 * 2, 2)
    assert names[0][:3] == ["0a", "0b", ""]
    assert names[1][:3] == ["1b", "1a", ""]


def test_a_flip_that_is_not_as_predicted_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = silicon.record("soft_core_h200")
    wrong = found | {"flips": ["0" * 16, *found["flips"][1:]]}
    monkeypatch.setattr(silicon, "record", lambda name: wrong)
    assert sum(silicon.flips().as_predicted) == 199


def test_unseen_reports_are_said_to_be_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {each.name: each for each in silicon.checkers()}
    assert said["synccheck"].said == "192 reports, 100 printed, 92 not seen"
    assert "What the 92 others name is not known" in said["synccheck"].means
    assert "36 a bar.sync of that kind" in said["synccheck"].means
    assert said["racecheck, with a planted race"].said == "0x7b8 besides"
    summary = ["ERROR SUMMARY: 160 errors", "ERROR SUMMARY: 60 errors were not printed"]
    less = CHECKERS["synccheck-small"] | {"summary": summary}
    found = {"checkers": CHECKERS | {"synccheck-small": less}}
    monkeypatch.setattr(silicon, "record", lambda name: found)
    said = {each.name: each for each in silicon.checkers()}
    assert said["synccheck"].said == "160 reports, 100 printed, 60 not seen"
    assert "What the 60 others name is not known" in said["synccheck"].means


def test_a_fault_of_the_gallery_is_shown_if_a_card_was_asked() -> None:
    shown = {each.mistake.partition(":")[0]: each for each in silicon.shown()}
    asked = [name for name, each in GALLERY.items() if "An H200" in each.cause]
    assert asked == [name for name in GALLERY if name in shown]
    pairs = {
        each.mistake: each for each in silicon.shown() if "a pair:" in each.mistake
    }
    late = [each for name, each in pairs.items() if "no mistake" in name]
    assert all(each.on_the_card.startswith("wrong in 0 of") for each in late)
    assert len(pairs) - len(late) == 3
    assert shown["map-not-acquired"].on_the_card == "wrong in 800 of 800 launches"


@pytest.mark.parametrize(
    "make",
    [
        silicon_pictures.parts_picture,
        silicon_pictures.descriptor_picture,
        silicon_pictures.flips_picture,
    ],
)
def test_a_picture_has_its_sentence_and_its_text(make) -> None:
    page = make()
    title = re.search("<title>(.+)</title>", page.html)
    assert title is not None
    assert len(title[1]) > 80
    assert "role='img'" in page.html
    assert len(page.text.splitlines()) >= 5
    assert repr(page) == page.text


def test_a_card_that_fails_is_said_and_the_record_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(*_: object, **options: object) -> None:
        assert options == {"backend": "device"}
        raise DeviceError("the GPU is busy")

    monkeypatch.setattr(silicon, "find_gpu", lambda: Gpu("H200", (9, 0), "580"))
    monkeypatch.setattr(silicon, "run", busy)
    said, found = silicon.run_on_a_card(*silicon.operands())
    assert found is None
    assert said.startswith("recorded: NVIDIA H200")
    assert "the GPU is busy" in said
    monkeypatch.setattr(silicon, "run", lambda *_, **__: "a run")
    assert silicon.run_on_a_card(*silicon.operands()) == (
        "live: H200, compute capability 9.0, driver 580",
        "a run",
    )
