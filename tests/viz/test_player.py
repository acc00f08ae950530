"""test_player: the Python side: steps, views, text, static HTML, named refusals."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.errors import InputError, MisalignedAddress
from fp4ref.viz.player import PARTS, esm
from fp4ref.viz.strings import strings

SCENES = ("run_scene", "layout_scenes", "arithmetic_scenes", "fault_scene")
SCENES += ("quantiser_scene", "schedules")


def test_the_script_imports_nothing() -> None:
    assert not re.search(
        r"^\s*import\b|\bfetch\(|https?://(?!www\.w3\.org)", esm(), re.M
    )


def test_every_file_of_the_script_is_used() -> None:
    folder = resources.files("fp4ref.viz") / "js"
    found = {f"{p.name[:-3]}" for p in folder.iterdir() if p.name.endswith(".js")}
    found |= {f"views/{p.name[:-3]}" for p in (folder / "views").iterdir()}
    assert found == set(PARTS)


def test_every_sentence_is_in_the_file_and_used() -> None:
    """All strings in one file: a key that is missing or idle is an error."""
    folder = resources.files("fp4ref.viz")
    python = "".join(
        folder.joinpath(f"{name}.py").read_text("utf-8")
        for name in ("player", "text", "sentences", *SCENES)
    )
    asked = set(re.findall(r'\bT\("([\w.]+)"', esm()))
    asked |= set(re.findall(r'\bsay\(\s*"([\w.]+)"', python))
    assert asked <= set(strings())
    built = tuple(re.findall(r"T\(`([\w.]+)\$\{", esm()))  # T(`view.${...}`)
    assert set(built) == {"kind.", "view.", "bar.", "speed.", "role.", "category."} | {
        "known.",
        "fault.",
        "pace.",
        "milestone.",
        "stages.",
        "schedules.",
        "schedules.col.",
        "scales.axes",
        "tensors.col.",
    }
    # Of sentences: names of agents, barriers, tensors, buffers; and the operations.
    built += ("side.", "who.", "thing.", "is.", "box.", "place.", "part.", "words.")
    quoted = esm() + python
    idle = [
        key
        for key in strings()
        if key not in asked and not key.startswith(built) and f'"{key}"' not in quoted
    ]
    assert idle == []


def test_a_sentence_is_of_an_operation_that_there_is() -> None:
    """Each template is of an operation that some file of the machine names."""
    package = resources.files("fp4ref")
    files = [p for p in Path(str(package)).rglob("*.py") if "viz" not in p.parts]
    code = "\n".join(path.read_text("utf-8") for path in files)
    how = r"\.(issue|land|read|first|other|waited|not|plain|zero|one|node)"
    names = {re.sub(rf"({how})+$", "", key) for key in strings() if "words." in key}
    names = {name.removeprefix("words.") for name in names} - {"sync", "note"}
    names -= {"issue", "land"}
    # Names that are put together have their last word in the code.
    assert [n for n in names if n not in code and n.split(".")[-1] not in code] == []


def test_no_sentence_is_written_in_the_code() -> None:
    """Two words in a row between quotes or backticks of the script are a sentence."""
    found = re.findall(r'"([A-Z][a-z]+ [a-z]+[^"]*)"', esm())
    assert [each for each in found if each != "Segoe UI"] == []


def test_step_and_view_can_be_set(small: fp4ref.Run) -> None:
    player = viz.play(small, view="tmem", step=4)
    assert (player.step, player.view) == (4, "tmem")
    player.step, player.view = 9, "smem"
    assert (player.step, player.view) == (9, "smem")
    assert player.text().startswith("Step 9 of")


def test_the_widget_shares_step_and_view(small: fp4ref.Run) -> None:
    pytest.importorskip("anywidget", reason="anywidget is in the extra 'lab'")
    player = viz.play(small, step=4)
    widget = player.widget()
    widget.step = 11
    assert player.step == 11
    player.view = "barriers"
    assert widget.view == "barriers"
    data, _ = player._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_text_is_an_output_of_its_own(
    small: fp4ref.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook opened again has no widget any more; the text remains."""
    display = pytest.importorskip("IPython.display", reason="it is in the extra 'lab'")
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(display, "display", lambda data, **_: shown.append(data))
    player = viz.play(small)
    player._ipython_display_()
    assert ["text/html" in data for data in shown] == [False, True]
    assert "fp4ref-fallback" in shown[1]["text/html"]
    shown.clear()
    monkeypatch.setenv("FP4REF_STATIC", "1")
    player._ipython_display_()
    assert ["text/html" in data for data in shown] == [True]


def test_static_html_is_whole(
    small: fp4ref.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FP4REF_STATIC", "1")
    data = viz.play(small)._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    page = data["text/html"]
    assert "fp4ref-fallback" in page
    assert "<script src" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_same_player_twice_has_two_names(small: fp4ref.Run) -> None:
    player = viz.play(small)
    names = {re.search(r'<div id="([^"]+)"', player.static_html())[1] for _ in "ab"}  # type: ignore[index]
    assert len(names) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: viz.play(run, step=10**6), "has steps 0 to"),
        (lambda run: viz.play(run, view="nothing"), "take .timeline"),
        (lambda run: viz.play(run, view="sides"), "needs the kernel's run"),
        (lambda run: viz.play(3), "need a Trace"),
        (lambda run: viz.play(run, sms=[9]), "SM 9 did nothing"),
        (lambda run: viz.quantiser([1.0] * 15), "values: 15"),
        (lambda run: viz.quantiser([np.nan] * 16), "finite"),
        (lambda run: viz.quantiser(recipe="int4"), "recipe: 'int4'"),
        (lambda run: viz.swizzle("256B"), "take .none"),
        (lambda run: viz.scale_journey(64, 64), "a stage holds"),
        (lambda run: viz.microscope([0], [0], [0], [0]), "need 64"),
        (lambda run: viz.fault(ValueError("x")), "need a HardwareFault"),
        (lambda run: viz.play(run, step="3"), "a whole number"),
        (lambda run: viz.play(run, step=2.7), "a whole number"),
        (lambda run: viz.play(run, step=True), "a whole number"),
        (lambda run: viz.play(run, sms=0), "a list of whole numbers"),
        (lambda run: viz.play(run, tiles=-3), "at least 0"),
        (lambda run: viz.play(run, views=5), "a list of names"),
        (lambda run: viz.play(run, views=[]), "none of them is there"),
        (lambda run: viz.play(run, views=["tmem"], view="mma"), "not among the views"),
        (lambda run: viz.play(run, run.trace, view="sides"), "pass both as Run"),
        (lambda run: setattr(viz.play(run), "view", "fault"), "there is timeline"),
        (lambda run: setattr(viz.play(run), "step", None), "a whole number"),
        (lambda run: viz.quantiser("abc"), "no array of numbers"),
        (lambda run: viz.quantiser([1e300] * 16), "finite"),
        (lambda run: viz.quantiser(global_scale="x"), "need a number"),
        (lambda run: viz.quantiser(global_scale=0), "positive"),
        (lambda run: viz.quantiser(recipe=[1]), "recipe: "),
        (lambda run: viz.quantiser(largest=1e-39), "finite in float32"),
        (lambda run: viz.quantiser(largest=1, global_scale=2), "one of them"),
        (lambda run: viz.quantiser(view="table"), "take .quantiser"),
        (lambda run: viz.swizzle([1]), "take .none"),
        (lambda run: viz.scale_journey(128.5, 256), "a whole number"),
        (lambda run: viz.microscope(*[[1.5] * 64] * 4), "whole numbers of 0 to 255"),
        (lambda run: viz.microscope(None, 1, 2, 3), "no array of numbers"),
    ],
)
def test_bad_input_is_named(small: fp4ref.Run, call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        call(small)


def test_a_run_without_a_trace_is_refused() -> None:
    q = fp4ref.quantize(np.ones((128, 256), np.float32))
    with pytest.raises(InputError, match="has no trace"):
        viz.play(fp4ref.run(q, q, trace=False))


def test_a_fault_without_a_trace_is_text() -> None:
    error = MisalignedAddress("what", where="taddr 0x00200005", rule="r", remedy="m")
    assert viz.fault(error).text() == str(error)


def test_the_text_of_the_microscope_is_the_models_result() -> None:
    one = np.full(64, 2, np.uint8)  # E2M1 1.0
    scale = np.full(4, 0x38, np.uint8)  # UE4M3 1.0
    assert "D 64.5 (0x42810000)" in viz.microscope(one, one, scale, scale, 0.5).text()


def test_the_text_follows_the_view(small: fp4ref.Run) -> None:
    assert small.trace is not None
    mma = [e.step for e in small.trace if e.operation == "tcgen05.mma"][-1]
    player = viz.play(small, step=mma, view="tmem")
    assert "tmem0 D 0, columns 0 to 127: 16,384 of 16,384 words" in player.text()
    a_desc = small.trace.events[mma].operands["a_desc"]
    assert f"a_desc {a_desc:#x}" in player.text()
    player.view = "barriers"
    assert "mainloop.full[0]: phase" in player.text()
    assert "D 0, columns" not in player.text()


def test_a_slider_of_ipywidgets_can_be_linked(small: fp4ref.Run) -> None:
    ipywidgets = pytest.importorskip("ipywidgets", reason="it is in the extra 'lab'")
    player = viz.play(small)
    slider = ipywidgets.IntSlider(max=100)
    link = ipywidgets.link((slider, "value"), (player.widget(), "step"))
    slider.value = 12
    assert player.step == 12
    player.step = 7
    assert slider.value == 7
    link.unlink()
