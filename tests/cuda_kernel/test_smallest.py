"""The fewest sleeps that make a launch wrong are found, and no more."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from probes.kernel import silicon_faults
from probes.kernel.smallest import smallest


@given(st.data(), st.integers(1, 200))
def test_what_is_needed_is_kept_and_nothing_else(
    data: st.DataObject, size: int
) -> None:
    whole = list(range(size))
    needed = data.draw(st.sets(st.sampled_from(whole), min_size=1, max_size=5))
    asked: list[list[int]] = []

    def differs(chosen: list[int]) -> bool:
        asked.append(chosen)
        return needed <= set(chosen)

    assert smallest(differs, whole) == sorted(needed)
    assert len(asked) <= 40 * len(needed) * (1 + size.bit_length())


@given(st.sets(st.integers(0, 99), min_size=2))
def test_one_of_two_causes_is_enough(causes: set[int]) -> None:
    found = smallest(lambda chosen: bool(causes & set(chosen)), range(100))
    assert len(found) == 1
    assert set(found) <= causes


def test_what_differs_without_anything_needs_nothing() -> None:
    assert smallest(lambda _: True, range(9)) == []


RIGHT = hashlib.sha256(bytes(4)).hexdigest()[:16]


class TwoSleepsAreWrong:
    """A card on which D is wrong if the sites 70 and 4000 sleep."""

    SITES = (3, 70, 900, 4000)

    def __init__(self, _: bytes) -> None:
        self.filled: dict[str, bytes | None] = {}

    def fill(self, name: str, data: bytes | None = None) -> None:
        self.filled[name] = data

    def _sleeping(self) -> set[int]:
        left_out = self.filled["soft_delay_left_out"]
        assert left_out is not None
        if self.filled["soft_delay_seed"] == bytes(4):
            return set()
        bits = np.unpackbits(np.frombuffer(left_out, np.uint8), bitorder="little")
        return {site for site in self.SITES if not bits[site]}

    def run(self, call: Any) -> dict[str, np.ndarray]:
        if call is not None:
            assert call.entry == "poison"
            return {}
        wrong = {70, 4000} <= self._sleeping()
        return {"D": np.array([wrong, 0, 0, 0], np.uint8)}

    def read(self, name: str) -> np.ndarray:
        if name == silicon_faults.DUMP:
            return np.zeros(16, np.uint8)
        words = np.zeros((silicon_faults.SITES, 4), np.uint32)
        for site in self._sleeping():
            words[site] = 6, 0x800, 2, 100 + site
        return words.view(np.uint8).reshape(-1)


def test_a_wrong_launch_is_reduced_to_the_sleeps_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silicon_faults, "Module", TwoSleepsAreWrong)
    kernel = silicon_faults.Kernel(b"", None, ("D",))  # type: ignore[arg-type]
    found = silicon_faults.OnCard(kernel).reduced(7, RIGHT)
    assert found is not None
    assert [site[0] for site in found["kept"]] == [70, 4000]
    assert found["sleeps"] == 4
    assert found["wrong"] == {
        "all": 100,
        "kept": 100,
        "without one of them": [0, 0],
        "none": 0,
    }


def test_a_kernel_that_is_wrong_without_sleeps_is_not_reduced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silicon_faults, "Module", TwoSleepsAreWrong)
    kernel = silicon_faults.Kernel(b"", None, ("D",))  # type: ignore[arg-type]
    card = silicon_faults.OnCard(kernel)
    assert card.reduced(7, "another") is None
    assert card.reduced(0, RIGHT) is None


def test_what_the_launches_did_is_counted() -> None:
    said = [RIGHT, "1" * 16, "1" * 16, "2" * 16, "hangs", "error: a trap"]
    said += ["gave up: CTA 0, warp 2, 0x408, parity 0"] * 2
    assert silicon_faults.summary(said, RIGHT) == {
        "same": 1,
        "other": 3,
        "hangs": 1,
        "error": 1,
        "gave up": 2,
        "sets": 2,
        "wait": "warp 2, 0x408, parity 0",
        "error said": "a trap",
        "without sleeps": "same",
    }
