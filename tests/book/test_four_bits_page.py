"""The page of four bits: its picture is drawn where the numbers of its table say."""

from __future__ import annotations

from math import log10
from xml.etree import ElementTree

import four_bits
import pytest

from fp4ref.lab.workload import workloads

SVG = "{http://www.w3.org/2000/svg}"


def rows(text: str) -> list[list[str]]:
    """Cells of a table's lines below its rule."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_the_picture_and_its_twin_have_the_same_points() -> None:
    """Signs are read back from the picture by its own axes, within a pixel."""
    root = ElementTree.fromstring(four_bits.picture())
    drawn = {}
    for sign in root:
        tip = sign.find(f"{SVG}title")
        if tip is not None and "tokens" in (tip.text or ""):
            half = float(sign.get("width", "0")) / 2
            x = float(sign.get("cx") or sign.get("x", "")) + half
            y = float(sign.get("cy") or sign.get("y", "")) + half
            drawn[tip.text] = (x, y)
    (x1, y1), (x2, y2) = four_bits.at(10, 100), four_bits.at(1_000, 10_000)
    twin = rows(four_bits.page_roofline())
    assert len(twin) == len(drawn) == 12
    for name, tokens, intensity, rate, _ in twin:
        x, y = drawn[f"{name} {tokens.replace(',', '')} tokens"]
        across = 1 + 2 * (x - x1) / (x2 - x1)
        up = 2 + 2 * (y - y1) / (y2 - y1)
        assert across == pytest.approx(
            log10(float(intensity.replace(",", ""))), abs=0.02
        )
        assert up == pytest.approx(log10(float(rate.replace(",", ""))), abs=0.02)


def test_the_figures_are_those_of_arithmetic() -> None:
    """Bytes, operations a byte and the roofs, by hand."""
    side = 8_192
    for (_, _, bits, mb, _), by_hand in zip(
        rows(four_bits.page_bytes()), (4.5, 8, 16), strict=True
    ):
        assert float(bits) == by_hand
        assert float(mb) == pytest.approx(side**2 * by_hand / 8 / 1e6, abs=0.05)
    for point in four_bits.points():
        bits = {"NVFP4": 4.5, "E4M3": 8, "BF16": 16}[point.format]
        moved = (side + point.tokens) * side * bits / 8 + side * point.tokens * 2
        assert point.intensity == pytest.approx(2 * side**2 * point.tokens / moved)
        assert point.rate <= four_bits.peaks()[point.format] * 1.0001
    # 148 SMs, each half of a pair that does 256 x 256 x 64 in 128 clocks
    peak = 148 * 256 * 256 * 64 * 2 / 2 / 128 * 1.845e9 / 1.16 / 1e12
    assert four_bits.peaks()["NVFP4"] == pytest.approx(peak)
    assert four_bits.peaks()["BF16"] == pytest.approx(peak / 4)


def test_every_record_of_the_laboratory_is_there_with_its_rate() -> None:
    found = rows(four_bits.page_records())
    measured = [each for each in workloads().values() if each.record_seconds]
    assert len(found) == len(measured)
    for cells, each in zip(found, measured, strict=True):
        rate = 2 * each.m * each.n * each.k / (each.record_seconds or 0) / 1e12
        assert float(cells[1].replace(",", "")) == pytest.approx(rate, abs=0.5)
        assert each.record_source in cells[3]


def test_what_the_text_says_of_few_and_of_many_tokens_holds() -> None:
    bounds = rows(four_bits.page_bounds())
    assert "GMEM" in bounds[0][1]
    assert "scale copies" in bounds[0][1]
    assert not any("scale copies" in cell for row in bounds for cell in row[2:])
    gains = [float(row[4].split(" to ")[-1]) for row in bounds]
    assert max(gains) <= 4
    assert max(gains[:2]) <= 3.6
