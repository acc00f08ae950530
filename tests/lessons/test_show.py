"""What cells show: the package's own text, readable and safe in every theme."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fp4ref import lessons
from fp4ref.cuda_kernel.twins import twin
from fp4ref.errors import InputError
from fp4ref.frames import FRAMES
from fp4ref.lessons import first_cell, page
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.show import cuda_excerpt, python_excerpt

ROOT = Path(__file__).parents[2]
EMULATORS = sorted({each.emulator for each in FRAMES.values()})


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def words_of(html: str) -> str:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert not parser.open
    return parser.text


@pytest.mark.parametrize("name", EMULATORS)
def test_the_text_is_the_files(name: str) -> None:
    excerpt = python_excerpt(name)
    file, _, lines = excerpt.place.partition(":")
    first, last = map(int, lines.split("-"))
    text = (ROOT / file).read_text().splitlines()
    assert "\n".join(text[first - 1 : last]) == excerpt.text
    assert name.rpartition(".")[2].rpartition(":")[2] in excerpt.text
    shown = lessons.source(name)
    assert repr(shown) == f"{excerpt.place}\n{excerpt.text}"
    assert excerpt.text in words_of(shown.html)


@pytest.mark.parametrize("name", [name for name in EMULATORS if twin(name)])
def test_both_sides(name: str) -> None:
    shown = lessons.beside(name)
    words = words_of(shown.html)
    assert python_excerpt(name).text in words
    assert cuda_excerpt(name).text in words
    assert repr(lessons.cuda(name)) in repr(shown)


def test_decorators_comments_values_and_modules() -> None:
    assert "@dataclass" in python_excerpt("fp4ref.frames:Frame").text
    table = python_excerpt("fp4ref.frames:FRAMES").text
    assert table.endswith('"""All frames by id, in the document\'s order."""')
    assert "    def peek(" in python_excerpt("fp4ref.gemm.pipeline:Producer.peek").text
    whole = python_excerpt("fp4ref.gemm.pipeline")
    assert whole.text == (ROOT / "fp4ref/gemm/pipeline.py").read_text().rstrip("\n")


@pytest.mark.parametrize(
    "name", ["fp4ref.gemm.pipeline:Nothing", "fp4ref.nothing:f", "os:path", "", "a b"]
)
def test_what_does_not_exist(name: str) -> None:
    for show in (lessons.source, lessons.beside, lessons.cuda):
        with pytest.raises(InputError):
            show(name)


def test_a_frame() -> None:
    for id, entry in FRAMES.items():
        shown = lessons.frame(id)
        words = words_of(shown.html)
        for text in (entry.claim, entry.truth, entry.source, entry.verdict.value):
            assert text.replace("`", "") in words.replace("`", "")
        assert entry.claim.replace("`", "") in repr(shown)
    html = lessons.frame("6.6.4").html
    assert "<caption" in html
    assert 'scope="row"' in html
    with pytest.raises(InputError, match="no frame"):
        lessons.frame("9.9")


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_of_code_have_contrast_in_both_themes() -> None:
    pairs = re.findall(r"light-dark\((#\w{6}),(#\w{6})\)", page._SURFACE)
    ground, *inks = pairs
    inks += re.findall(
        r"light-dark\((#\w{6}),(#\w{6})\)", "".join(page._TOKENS.values())
    )
    assert len(inks) > 5
    for ink in inks:
        for theme in (0, 1):
            a, b = sorted([luminance(ink[theme]), luminance(ground[theme])])
            assert (b + 0.05) / (a + 0.05) >= 4.5, ink[theme]


def test_code_can_be_scrolled_by_keyboard_and_has_a_name() -> None:
    html = lessons.source("fp4ref.gemm.multiply.scale_copies:ScaleCopies.copy").html
    assert re.search(
        r'<pre role="region" aria-label="fp4ref/gemm/\S+" tabindex="0"', html
    )
    assert "<style" not in html
    assert "class=" not in html


@pytest.mark.parametrize("name", [*LESSONS, "no_such_notebook", ""])
def test_start_takes_five_lines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lessons.start(name)
    lines = capsys.readouterr().out.splitlines()
    assert 2 <= len(lines) <= 5
    assert all(0 < len(line) <= 120 for line in lines)
    if name in LESSONS:
        assert f"{LESSONS[name].minutes} minutes" in lines[0]


def test_start_never_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise OSError("a broken driver")

    monkeypatch.setattr(first_cell, "doctor", broken)
    first_cell.start("00_start_here")
    assert "could not be looked at (OSError)" in capsys.readouterr().out


def test_start_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_cell, "nvrtc_version", lambda: None)
    first_cell.start("00_start_here")
    assert "packaged PTX on the emulated SM" in capsys.readouterr().out


def test_the_outline() -> None:
    numbers = [lesson.number for lesson in LESSONS.values()]
    assert numbers == sorted(numbers)
    for lesson in LESSONS.values():
        assert all(need in numbers for need in lesson.needs)
        assert all(need < lesson.number for need in lesson.needs)
        assert 5 <= lesson.minutes <= 30
    assert {each.notebook for each in FRAMES.values()} <= set(LESSONS)


def test_the_body_is_shown_and_not_an_overload() -> None:
    text = repr(lessons.source("fp4ref.layout.swizzle:Swizzle.__call__"))
    assert "row_bits" in text


@pytest.mark.parametrize("name", [None, 3, [], "", "os:path", "é" * 10**6, "fp4ref;"])
@pytest.mark.parametrize("show", [lessons.source, lessons.cuda, lessons.beside])
def test_what_is_no_name_is_refused_in_a_sentence(show, name) -> None:
    with pytest.raises(InputError, match="is no name; write it like"):
        show(name)
