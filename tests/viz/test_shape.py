"""Full screen, tabs as a list on phones, words at the pointer and under a finger."""

from __future__ import annotations

from typing import Any

from player_page import PLAYER

from fp4ref import viz
from fp4ref.viz.packet import unpack

BAR = ".fp4ref-picture rect.f-bar"
TIP = ".fp4ref-tip"


def test_words_stand_at_the_pointer(whole: viz.Player, open_players: Any) -> None:
    page = open_players(whole)
    page.evaluate(f"() => {PLAYER}.go(400)")
    assert not page.locator(TIP).is_visible()
    bar = page.locator(BAR).first
    bar.hover()
    words = bar.get_attribute("data-tip")
    assert page.locator(TIP).inner_text() == words
    assert page.locator("figcaption").inner_text() == words
    at, tip = bar.bounding_box(), page.locator(TIP).bounding_box()
    assert abs(tip["x"] - (at["x"] + at["width"] / 2)) < 40
    assert 0 < tip["y"] - at["y"] < 60
    page.mouse.move(2, 2)
    assert not page.locator(TIP).is_visible()
    page.locator("[data-act=full]").click()
    page.wait_for_function("document.fullscreenElement !== null")
    wide = page.locator(".fp4ref-player").bounding_box()["width"]
    assert wide == page.evaluate("innerWidth")
    page.locator("[data-act=full]").click()
    page.wait_for_function("document.fullscreenElement === null")
    assert not page.locator("[data-act=wide]").is_visible()  # that is for the book
    page.evaluate(f"() => {PLAYER}.show('tmem')")
    page.locator("[data-control=lane]").fill("999")
    assert (
        page.locator("figcaption").inner_text() == "Lane: a whole number from 0 to 127."
    )
    page.locator(".fp4ref-player").focus()
    assert "Lane:" not in page.locator("figcaption").inner_text()


def test_a_phone_has_a_list_of_views_and_a_finger_sees_words(
    whole: viz.Player, open_players: Any
) -> None:
    size = {"width": 390, "height": 844}
    page = open_players(whole, viewport=size, has_touch=True, is_mobile=True)
    page.evaluate(f"() => {PLAYER}.go(400)")
    assert not page.locator("[role=tablist]").is_visible()
    header, _ = unpack(whole.packet)
    views = page.locator("[data-act=view] option")
    values = views.evaluate_all("(all) => all.map((o) => o.value)")
    assert values == header["views"]
    bar = page.locator(BAR).first
    words = bar.get_attribute("data-tip")
    bar.tap()
    assert page.locator(TIP).inner_text() == words
    step = page.locator(".fp4ref-player").get_attribute("data-step")
    assert words.startswith(f"{step}: ")  # and the tap went there
    page.locator(".fp4ref-says").tap()
    assert not page.locator(TIP).is_visible()
    page.locator("[data-act=view]").select_option("barriers")
    assert page.locator(".fp4ref-player").get_attribute("data-view") == "barriers"
    assert page.locator("[data-act=view]").bounding_box()["height"] >= 44


def test_an_event_leads_to_ptx_and_cutlass(
    whole: viz.Player, open_players: Any
) -> None:
    page = open_players(whole)
    header, _ = unpack(whole.packet)
    landed = header["tables"]["operation"].index("tcgen05.mma")
    step = header["columns"]["operation"].index(landed)
    page.evaluate(f"() => {PLAYER}.go({step})")
    links = page.locator(".fp4ref-where a").evaluate_all(
        "(all) => all.map((a) => [a.textContent, a.href])"
    )
    words = dict(links)
    assert words["PTX tcgen05.mma"].endswith("#tcgen05-mma-instructions-mma")
    file = next(name for name in words if name.startswith("CUTLASS "))
    assert words[file].endswith("/" + file.split()[1])
