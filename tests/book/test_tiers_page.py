"""The page of tiers shows one product for each tier, and what its report says."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import tiers

from fp4ref.numerics.tier_report import Tier

PAGE = Path(__file__).parents[2] / "book" / "tiers.md"


def test_the_products_take_the_roads_that_the_page_tells() -> None:
    normal, binades, any_scale = (each.report.shares for each in tiers.shown())
    assert normal[Tier.FLOAT32] == 1
    assert binades[Tier.FLOAT64] > 0.99
    assert any_scale[Tier.FLOAT64] > 0.99
    assert 0 < any_scale[Tier.INTEGER] < 0.003


def test_the_picture_names_each_tier() -> None:
    drawn = [each.text for each in ElementTree.fromstring(tiers.picture()).iter()]
    assert {tier.value for tier in Tier} <= set(drawn)
    assert all(tier.value in tiers.page() for tier in Tier)


def test_the_page_has_the_margin_of_the_code() -> None:
    from fp4ref.numerics import groups

    assert f"room of {groups.MARGIN} such bits" in " ".join(PAGE.read_text().split())
