"""Readers', learners' and contributors' questions, each answered in three hops at most.

From the front page a hop is a click on a link or a query in the site's search box. From
the README it is a link that is followed, or a file that is opened because a text names
it.
The answer has to stand in the section that the last hop lands on, or in the page if it
lands on its top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import wording
from book_site import ROOT
from browser import local_page

pytestmark = pytest.mark.xdist_group("book")

MOST_HOPS = 3


@dataclass(frozen=True)
class Click:
    """Follow the first link with this text."""

    text: str


@dataclass(frozen=True)
class Search:
    """Type this into the search box and wait for the results."""

    query: str


@dataclass(frozen=True)
class Open:
    """Open the file that the text names by its path from the root of the repository."""

    path: str


@dataclass(frozen=True)
class Task:
    """A question, a plan, and a pattern of the answer for each place it must name."""

    question: str
    plan: tuple[Click | Search | Open, ...]
    answers: tuple[str, ...]


ON_THE_SITE = [
    Task(
        "Where is the phase flipped?",
        (Search("phase"), Click("Glossary"), Click("1.8")),
        (r"fp4ref/gemm/pipeline\.py:\d+", r"kernel/gemm/pipeline\.cuh:\d+"),
    ),
    Task(
        "Which line issues UTCCP?",
        (Search("UTCCP"), Click("Glossary"), Click("6.6.4")),
        (r"multiply/scale_copies\.py:\d+", r"multiply/scale_copies\.cuh:\d+"),
    ),
    Task(
        "How many bytes does a stage wait for?",
        (Search("tx-count"), Click("Glossary"), Click("5.4.8")),
        (r"36,864", r"Plan\.stage_tx_bytes"),
    ),
    Task(
        "Where do the scales of row 33 lie in the 128x4 atom?",
        (Search("SWIZZLE_32_4_4"), Click("Glossary")),
        (r"512 bytes", r"r \+ 32"),
    ),
    Task(
        "Which file of CUTLASS has the load loop?",
        (Click("frame index"), Click("5.4")),
        (r"sm100_blockscaled_mma_warpspecialized\.hpp",),
    ),
    Task(
        "What does the code of the scale copies look like in CUDA?",
        (Click("frame index"), Click("6.6.4"), Click("scale_copies:ScaleCopies.copy")),
        (r"def copy\(", r"__device__.*ScaleColumns copy\("),
    ),
    Task(
        "On what does the rounding of the MMA rest?",
        (Click("fidelity"),),
        (r"published model", r"MMA-Sim"),
    ),
    Task(
        "What is a data race, and how is it reported?",
        (Search("race"), Click("Data races")),
        (r"one of them is a write", r"RaceFault: "),
    ),
    Task(
        "How does the machine report a hang?",
        (Click("04. mbarriers and pipelines"),),
        (r"DeadlockError",),
    ),
]

LEARNERS = [
    Task(
        "What happens from the first byte to the stored tile?",
        (Click("the tour"),),
        (r"1\. The first bytes land", r"8\. The tile is stored"),
    ),
    Task(
        "When may a stage be filled again?",
        (Click("the tour"),),
        (r"empty barrier. Now the load warp may fill that stage again",),
    ),
    Task(
        "How much can four bits gain where only weights are read?",
        (Click("bytes, bounds and a roofline"),),
        (r"16 / 4\.5 is 3\.6", r"37\.7", r"model"),
    ),
    Task(
        "How many elements of K does one MMA take, by format?",
        (Click("bytes, bounds and a roofline"),),
        (r"64 numbers of four bits", r"16 of sixteen"),
    ),
    Task(
        "Where in a run are the bytes of a stage announced?",
        (Click("frame index"), Click("5.4.8"), Click("A page of its own")),
        (r"Step [\d,]+ of [\d,]+", r"mbarrier\.arrive\.expect_tx", r"def stage_tx"),
    ),
    Task(
        "What does one wrong byte count do?",
        (Click("Start with notebook 00"),),
        (r"4,064 bytes came that nobody expected", r"six other warps wait"),
    ),
    Task(
        "With which keys do I step a player?",
        (),
        (r"arrows step, brackets go to the next or last milestone",),
    ),
    Task(
        "What is a deadlock here?",
        (Search("deadlock"), Click("Glossary")),
        (r"none of them can send any more",),
    ),
    Task(
        "Where can I try an answer without installing anything?",
        (Click("twelve riddles"),),
        (r"Your answer", r"Check", r"Hint"),
    ),
    Task(
        "What do I lose with four bits, for a real layer?",
        (Click("bytes, bounds and a roofline"),),
        (r"Measured here", r"their product is 1\.5% off"),
    ),
]

FROM_THE_README = [
    Task(
        "Whose kernels have run on this machine?",
        (Click("conformance"),),
        (r"CUTLASS 72b", r"Triton", r"tutorial 01"),
    ),
    Task(
        "What was measured on real silicon, and on which card?",
        (Click("measured"),),
        (r"H200", r"mbarrier"),
    ),
]

FOR_CONTRIBUTORS = [
    Task(
        "How do I run one test?",
        (Click("Contributing"),),
        (r"make one T=\S+\.py", r"FILE::test_name", r"make lint"),
    ),
    Task(
        "Which unit does an address have?",
        (Click("Contributing"),),
        (r"shared address.*bytes", r"lane << 16 \\\| column", r"units of 16 bytes"),
    ),
    Task(
        "How do I add a fusion operation?",
        (Click("Contributing"), Click("a fusion operation")),
        (r"magnitude\.py", r"oracle\.py", r"magnitude\.cuh` in `kernel/gemm/fusion"),
    ),
    Task(
        "How do I add a PTX instruction?",
        (Click("Contributing"), Click("a PTX instruction")),
        (r"fp4ref/ptx/instructions", r"@instruction\(", r"gaps_instructions\.toml"),
    ),
    Task(
        "How do I add a configuration?",
        (Click("Contributing"), Click("a configuration")),
        (r"fp4ref/gemm/config\.py", r"gemm/plan/rules\.py", r"test_config\.py"),
    ),
    Task(
        "Where is the evidence of the rule that an MMA comes after a copy?",
        (
            Click("Contributing"),
            Click("a hardware rule"),
            Open("fp4ref/data/fidelity.toml"),
        ),
        (r"operation = \"tcgen05\.cp", r"evidence = \"\w+\"", r"checked_by = "),
    ),
]


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    with local_page(chromium, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def hop(page: Any, step: Click | Search | Open) -> None:
    """Do what a reader does."""
    if isinstance(step, Search):
        page.locator("button.search-button-field").first.click()
        box = page.locator("input[type=search]:visible").first
        box.fill(step.query)
        box.press("Enter")
        page.locator("#search-results li a").first.wait_for()
        return
    assert isinstance(step, Click), "the site has no files of the repository"
    link = page.locator("main a:visible", has_text=re.compile(re.escape(step.text)))
    exact = [each for each in link.all() if each.inner_text().strip() == step.text]
    (exact[0] if exact else link.first).click()
    page.wait_for_load_state("load")


def landed_on(page: Any) -> str:
    """Text of the section that the address names, or of the page."""
    text: str = page.evaluate(
        """() => {
          const id = decodeURIComponent(location.hash.slice(1));
          const place = id && document.getElementById(id);
          const section = place ? place.closest("section") : null;
          return (section ?? document.querySelector("article")).innerText;
        }"""
    )
    return text


@pytest.mark.rotating(4)
@pytest.mark.parametrize(
    "task", [*ON_THE_SITE, *LEARNERS], ids=lambda task: task.question
)
def test_on_the_site(page: Any, site: Path, task: Task) -> None:
    assert len(task.plan) <= MOST_HOPS
    page.goto((site / "index.html").as_uri(), wait_until="load")
    for step in task.plan:
        hop(page, step)
    text = landed_on(page)
    for answer in task.answers:
        assert re.search(answer, text), f"{page.url} says only:\n{text[:1500]}"


def section(text: str, anchor: str) -> str:
    """Section of a Markdown text whose heading has this anchor; all without one."""
    if not anchor:
        return text
    for found in re.finditer(r"^(#+) (.+)\n", text, re.MULTILINE):
        if wording.anchor(found[2]) == anchor:
            rest = text[found.end() :]
            following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
            return rest[: following.start()] if following else rest
    raise AssertionError(f"no heading for #{anchor}")


@pytest.mark.parametrize(
    "task", [*FROM_THE_README, *FOR_CONTRIBUTORS], ids=lambda task: task.question
)
def test_from_the_readme(task: Task) -> None:
    """The README is read where it lies; its links lead to files beside it."""
    assert len(task.plan) <= MOST_HOPS
    path = ROOT / "README.md"
    text = path.read_text("utf-8")
    for step in task.plan:
        if isinstance(step, Open):
            assert step.path in text, f"{path.name} does not name {step.path}"
            path, anchor = ROOT / step.path, ""
        else:
            assert isinstance(step, Click)
            links = dict(re.findall(r"\[([^\]]+)\]\(([^):]+)\)", text))
            target, _, anchor = links[step.text].partition("#")
            path = (path.parent / target).resolve()
        text = section(path.read_text("utf-8"), anchor)
    for answer in task.answers:
        assert re.search(answer, text), f"{path.name} has no {answer}"


def test_there_are_eleven_of_readers_ten_of_learners_and_six_of_contributors() -> None:
    assert len({task.question for task in LEARNERS}) == 10
    tasks = [*ON_THE_SITE, *FROM_THE_README]
    assert len({task.question for task in tasks}) == 11
    assert len({task.question for task in FOR_CONTRIBUTORS}) == 6
