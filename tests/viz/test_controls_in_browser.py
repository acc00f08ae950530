"""The player's keys, clicks and fields, in a real Chromium."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.tensors.one_block import WAYS


def test_keyboard_alone_plays_steps_and_rewinds(
    small: fp4ref.Run, open_players: Any
) -> None:
    page = open_players(viz.play(small))
    player = page.locator(".fp4ref-player")
    keys = page.keyboard

    def step() -> int:
        return int(player.get_attribute("data-step"))

    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "fp4ref-player"
    for _ in range(3):
        keys.press("ArrowRight")
    assert step() == 3
    keys.press("ArrowLeft")
    assert step() == 2
    keys.press("PageDown")
    assert step() == 52
    keys.press("End")
    assert step() == len(small.trace or []) - 1
    keys.press("Home")
    assert step() == 0
    keys.press("3")
    assert player.get_attribute("data-view") == "barriers"
    keys.press("n")
    assert step() > 0
    keys.press("Home")
    keys.press("Space")
    page.wait_for_function(
        "+document.querySelector('.fp4ref-player').dataset.step >= 2"
    )
    keys.press("Space")
    held = step()
    page.wait_for_timeout(600)
    assert step() == held
    for _ in range(200):  # Tab reaches the tabs and a control of the view
        keys.press("Tab")
        if page.evaluate("document.activeElement.role") == "tab":
            break
    keys.press("ArrowRight")
    assert player.get_attribute("data-view") == "smem"
    assert page.evaluate("document.activeElement.role") == "tab"


def test_next_event_on_this_barrier(small: fp4ref.Run, open_players: Any) -> None:
    page = open_players(viz.play(small, view="barriers"))
    trace = small.trace
    assert trace is not None
    label = "mainloop.empty[1]"
    page.locator("[data-control=barrier]").select_option(label=label)
    want = [e.step for e in trace if any(b.label == label for b in e.barrier)]
    seen = []
    for _ in want:
        page.locator("[data-control=after]").click()
        seen.append(int(page.locator(".fp4ref-player").get_attribute("data-step")))
    assert seen == want if want[0] > 0 else seen == want[1:]


def test_a_link_leads_to_the_step(small: fp4ref.Run, open_players: Any) -> None:
    page = open_players(viz.play(small), query="?view=tmem&step=37")
    player = page.locator(".fp4ref-player")
    assert player.get_attribute("data-step") == "37"
    assert player.get_attribute("data-view") == "tmem"
    page.locator("[data-act=link]").click()
    assert (
        page.locator(".fp4ref-link a")
        .get_attribute("href")
        .endswith("?view=tmem&step=37")
    )


def test_one_scale_lights_up_in_all_four_pictures(open_players: Any) -> None:
    """A click in any picture chooses the scale that the layout puts there."""
    page = open_players(viz.scale_journey())
    for panel in range(4):
        area = page.locator(f'[data-area*=",126,{panel}"]').first
        box = area.bounding_box()
        page.mouse.click(box["x"] + 0.4 * box["width"], box["y"] + 0.7 * box["height"])
        row = int(page.locator("[data-control=row]").input_value())
        group = int(page.locator("[data-control=group]").input_value())
        fx, fy = 0.4, 0.7
        if panel == 0:
            assert (row, group) == (int(fy * 128), int(fx * 16))
        elif panel == 3:
            byte, lane = int(fx * 64), int(fy * 128) % 32
            assert (row, group) == (
                byte // 4 % 4 * 32 + lane,
                byte // 16 * 4 + byte % 4,
            )
        else:
            line, byte = int(fy * 32), int(fx * 16)
            assert row == byte // 4 * 32 + line
            assert group % 4 == byte % 4
        assert page.locator(".f-lit").count() == 3 + 4  # four lane quarters


def test_drag_over_a_tie(open_players: Any) -> None:
    player = viz.quantiser([6.0, *[0.0] * 15])
    page = open_players(player)
    page.locator("[data-control=element]").fill("1")
    for value, code in ((2.5, 2), (2.5001, 3), (3.5, 4), (-0.25, 0), (-0.2501, -0.5)):
        page.locator("[data-control=value]").fill(str(value))
        caption = page.locator(".fp4ref-picture").inner_text()
        assert f"= {code};" in caption.replace("−", "-"), (value, caption)
    dot = page.locator("[data-drag='1']")
    box = dot.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 3)
    page.mouse.up()
    assert float(page.locator("[data-control=value]").input_value()) > 1


def test_a_click_in_one_view_picks_the_same_in_the_others(
    small: fp4ref.Run, open_players: Any
) -> None:
    """A cell of TMEM is a scale of the journey, or an element of the microscope."""
    assert small.trace is not None
    page = open_players(viz.play(small, view="tmem", step=len(small.trace) - 1))
    page.locator("[data-grid]").scroll_into_view_if_needed()
    grid = page.locator("[data-grid]").bounding_box()

    def click(lane: int, column: int) -> None:
        x = grid["x"] + (column + 0.9) / 512 * grid["width"]
        page.mouse.move(x, grid["y"] + (lane + 0.9) / 128 * grid["height"])
        hovered = page.locator("figcaption").inner_text()
        assert f"lane {lane}, column {column}, " in hovered
        page.mouse.down()
        page.mouse.up()

    def shown(view: str, *names: str) -> list[str]:
        page.locator(f"[role=tab][data-view={view}]").click()
        values = [
            page.locator(f"[data-control={name}]").input_value() for name in names
        ]
        page.locator("[data-view=tmem]").first.click()
        return values

    click(70, 19)
    assert shown("mma", "m", "n") == ["70", "19"]
    click(37, 256 + 6)  # SFA: column 6 is K block 1, rows 64 to 95
    assert shown("scales", "operand", "row", "group") == ["SFA", str(64 + 5), "4"]
    page.locator("[data-view=scales]").first.click()
    page.locator("[data-control=row]").fill("33")
    page.locator("[data-control=group]").fill("15")
    lane, column = shown("tmem", "lane", "column")
    assert (lane, column) == ("1", str(256 + 3 * 4 + 1))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("text", ["1.5", "-1", "999", "", "1e99"])
def test_a_number_that_cannot_be_is_refused(
    small: fp4ref.Run, open_players: Any, text: str
) -> None:
    """The picture stays, the field says that it is wrong, and returns when left."""
    page = open_players(viz.play(small, step=len(small.trace or []) - 1))
    for view, name in (("mma", "m"), ("tmem", "column"), ("smem", "row")):
        page.locator(f"[role=tab][data-view={view}]").click()
        before = page.locator(".fp4ref-picture").inner_html()
        field = page.locator(f"[data-control={name}]")
        kept = field.input_value()
        field.fill(text)
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator(".fp4ref-picture").inner_html() == before
        page.locator(".fp4ref-player").focus()
        assert field.input_value() == kept


def test_the_quantiser_lands_on_ties_and_refuses_no_scale(open_players: Any) -> None:
    page = open_players(viz.quantiser())
    page.locator(".fp4ref-twin summary").click()
    page.locator(".fp4ref-twin tbody tr").first.wait_for()
    ties = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0}
    page.locator("[data-control=element]").fill("1")  # the largest is 6 wherever it is
    page.locator("[data-control=tie]").click()
    assert "No float32 value" in page.locator("figcaption").inner_text()
    for element in (0, *range(2, 16)):
        page.locator("[data-control=element]").fill(str(element))
        page.locator("[data-control=tie]").click()
        row = page.locator(".fp4ref-twin tbody tr").nth(element).inner_text()
        _, value, scaled, *_ = row.split("\t")
        assert abs(float(scaled)) in ties, row
        shown = page.locator("[data-control=value]").input_value()
        assert np.float32(shown) == np.float32(value)
    for text in ("1.5", "21", "-21", ""):
        page.locator("[data-control=power]").fill(text)
        assert page.locator("[data-control=power]").get_attribute("aria-invalid")
    page.locator(".fp4ref-player").focus()
    assert page.locator("[data-control=power]").input_value() == "0"


@pytest.mark.rotating(1)
@pytest.mark.parametrize("width", [390, 1280])
def test_every_recipe_is_on_one_picture(open_players: Any, width: int) -> None:
    """Each name once; what differs is marked, and the table says where."""
    page = open_players(
        viz.quantiser(view="recipes"), viewport={"width": width, "height": 900}
    )
    picture = page.locator(".fp4ref-picture")
    names = " ".join(picture.inner_text().split())
    page.locator(".fp4ref-twin summary").click()
    page.locator(".fp4ref-twin tbody tr").first.wait_for()
    rows = [
        row.split("\t")
        for row in page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    ]
    assert sorted(row[0] for row in rows) == sorted(WAYS)
    for name in WAYS:
        assert len(re.findall(rf"(?<!\w){re.escape(name)}[,:]", names)) == 1, name
    by_name = {row[0]: row for row in rows}
    assert by_name["cutlass"][5] == "no"
    assert by_name["modelopt"][5:7] == ["12", "12"]  # 4.6875 / 1.875 is a tie
    assert by_name["four_over_six_mse_448_tie_six"][2].endswith("0x43 = 2.75")
    marked = len({tuple(row[1:]) for row in rows if row[5] != "no"})
    seen = picture.locator(".f-cell.f-differs")
    count = {row[1]: len(row[5].split()) for row in rows if row[5] != "no"}
    scales = {row[1] for row in rows if row[0].startswith("four_over_six_mse")}
    assert marked == len(count)
    assert seen.count() == sum(count.values()) + len(scales)
    box = page.locator(".fp4ref-player").bounding_box()
    assert box["width"] <= width
    right = picture.locator("text").evaluate_all(
        "(all) => Math.max(...all.map((e) => e.getBoundingClientRect().right))"
    )
    assert right <= width


def test_the_microscope_by_keys_alone(open_players: Any) -> None:
    page = open_players(viz.quantiser())
    keys = page.keyboard
    page.locator(".fp4ref-player").focus()

    def shown(name: str) -> str:
        return page.locator(f"[data-control={name}]").input_value()

    keys.press("ArrowLeft")
    assert (shown("element"), shown("value")) == ("15", "6")
    keys.press("ArrowUp")
    assert float(shown("value")) == pytest.approx(6 + 1.875 / 16)
    keys.press("PageDown")
    assert shown("way") == "cutlass UE8M0"
    keys.press("2")
    assert page.locator(".fp4ref-player").get_attribute("data-view") == "recipes"
    assert (shown("way"), shown("element")) == ("cutlass UE8M0", "15")
    assert float(shown("value")) == pytest.approx(6 + 1.875 / 16)
    keys.press("PageUp")
    keys.press("t")
    keys.press("1")
    assert ", a tie" in page.locator("figcaption").inner_text()


def test_a_power_of_two_in_g_moves_the_scale(open_players: Any) -> None:
    page = open_players(viz.quantiser([6.0] * 16, recipe="vllm"))
    for power, scale in ((3, "0x50"), (8, "0x78"), (9, "0x7E"), (-9, "0x01")):
        page.locator("[data-control=power]").fill(str(power))
        assert f"{scale} = " in page.locator("figcaption").inner_text()


def test_scales_outside_a_small_matrix_are_said_to_be(open_players: Any) -> None:
    rng = np.random.default_rng(2)
    qa = fp4ref.quantize(rng.standard_normal((130, 96)).astype(np.float32))
    qb = fp4ref.quantize(rng.standard_normal((72, 96)).astype(np.float32))
    page = open_players(viz.play(fp4ref.run(qa, qb), view="scales"))
    assert page.locator("[data-control=group]").input_value() == "5"
    assert "outside the matrix" not in page.locator(".fp4ref-picture").inner_text()
    page.locator("[data-control=group]").fill("6")
    assert page.locator(".fp4ref-picture").inner_text().count("outside the matrix") == 1
    page.locator("[data-control=group]").fill("10")
    assert page.locator(".fp4ref-picture").inner_text().count("outside the matrix") == 2
