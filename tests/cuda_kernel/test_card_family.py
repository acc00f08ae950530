"""Each tree and kind that an H200 ran on the soft tensor core has the oracle's bits."""

from __future__ import annotations

import json

import card_family
import pytest

RECORDED = json.loads(card_family.RECORD.read_text())["cases"]


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(card_family.CASES)
    assert len(RECORDED) == len(set(RECORDED.values())) == 19


@pytest.mark.parametrize("name", card_family.CASES)
def test_the_card_had_the_bits_of_the_oracle(name: str) -> None:
    assert card_family.by_oracle(name) == RECORDED[name]
