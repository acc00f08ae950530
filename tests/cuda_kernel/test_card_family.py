"""What an H200 ran on the soft tensor core has the oracle's and the emulator's bits."""

from __future__ import annotations

import json

import card_family
import pytest

import fp4ref

RECORDED = json.loads(card_family.RECORD.read_text())
DIGESTS = RECORDED["cases"]


def test_the_record_is_of_these_sources() -> None:
    if RECORDED["sources"] != card_family.soft_sources():
        pytest.skip(f"{card_family.RECORD.name} is of older sources: card_family.py")


def test_every_case_is_recorded_with_one_set_of_bits() -> None:
    assert {*DIGESTS, *card_family.NOT_ASKED} == set(card_family.CASES)
    assert not set(DIGESTS) & set(card_family.NOT_ASKED)
    assert len(DIGESTS) >= 60
    assert sum("cta_group=2" in n or n.startswith("a pair") for n in DIGESTS) >= 25
    assert [name for name, found in DIGESTS.items() if len(found) != 1] == []
    assert RECORDED["runs"] >= 3
    assert RECORDED["seconds"] < 20


def recorded(name: str) -> list[str]:
    if name in card_family.NOT_ASKED:
        pytest.skip(f"{name} is newer than {card_family.RECORD.name}: card_family.py")
    return DIGESTS[name]


@pytest.mark.rotating(8)
@pytest.mark.parametrize("name", card_family.CASES)
def test_the_card_had_the_bits_of_the_oracle(name: str) -> None:
    assert [card_family.by_oracle(name)] == recorded(name)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", card_family.CASES)
def test_the_card_had_the_bits_of_the_emulator(name: str) -> None:
    wanted = recorded(name)
    found = fp4ref.run(**card_family.CASES[name](), sms=8, trace=False)
    assert [card_family.digest(found)] == wanted


@pytest.mark.soak
def test_the_large_product_had_the_bits_of_the_oracle() -> None:
    found = card_family.oracle.expected(**card_family.large())
    assert card_family.digest(found) == RECORDED[card_family.LARGE]
