"""Names of sources become links, and their words stay."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import evidence_links
import frame_page
import notebook_pages
import pytest
import tables
from wording import plain

from fp4ref.evidence.fidelity import RULES
from fp4ref.frames import FRAMES
from fp4ref.lessons.errata import ERRATA

LINK = re.compile(r"\[((?:\\.|[^\]\\])+)\]\((https://[^)]+)\)")
SOURCES = sorted(
    {row.source for rows in (FRAMES, ERRATA) for row in rows.values()}
    | {rule.source for rule in RULES}
)
CUTLASS = "https://github.com/NVIDIA/cutlass"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("PTX ISA: tcgen05.cp", {"tcgen05.cp": "#tcgen05-instructions-tcgen05-cp"}),
        (
            "PTX ISA: mbarrier.arrive, tcgen05.commit",
            {"mbarrier.arrive": "-mbarrier-arrive", "tcgen05.commit": "-commit"},
        ),
        ("PTX, mbarrier: ranges", {"mbarrier": "-instructions-mbarrier"}),
        ("PTX, mbarrier.strange", {}),
        ("no PTX, mbarrier", {}),
        (
            "PTX, atom; sm100_tile_scheduler.hpp:782, after it",
            {"atom": "-atom", "sm100_tile_scheduler.hpp:782": "scheduler.hpp#L782"},
        ),
        ("CUTLASS sm90_common.inl", {}),
        ("detail/layout.hpp", {"detail/layout.hpp": "cutlass/detail/layout.hpp"}),
        ("CUTLASS issue 3435: it", {"CUTLASS issue 3435": "/issues/3435"}),
        ("arXiv 2511.10909", {"arXiv 2511.10909": "https://arxiv.org/abs/2511.10909"}),
        ("FlashInfer quantization_utils.cuh", {}),
    ],
)
def test_what_is_known_is_a_link(text: str, links: dict[str, str]) -> None:
    made = evidence_links.linked(text, escape=str)
    found = dict(LINK.findall(made))
    assert set(found) == set(links)
    assert all(found[name].endswith(end) for name, end in links.items())


def test_no_word_of_a_source_is_lost() -> None:
    for source in SOURCES:
        assert LINK.sub(r"\1", evidence_links.linked(source)) == plain(source)


def test_frames_errata_and_rules_lead_to_their_evidence() -> None:
    """A share, so that new rows which name nothing that has an address may come."""
    for rows in (FRAMES, ERRATA):
        texts = [row.source for row in rows.values()]
        texts = [text for text in texts if text.startswith(("PTX ISA", "include/"))]
        bare = [text for text in texts if "](" not in evidence_links.linked(text)]
        assert bare == []
    ptx = [rule.source for rule in RULES if rule.source.startswith("PTX,")]
    assert sum("](" in evidence_links.linked(text) for text in ptx) > len(ptx) / 2


def test_every_section_is_used_by_some_source() -> None:
    sections = evidence_links.KNOWN["ptx"]["sections"]
    used = {url for text in SOURCES for _, url in LINK.findall(_linked(text))}
    assert [name for name in sections if evidence_links.ptx(name) not in used] == []


def _linked(text: str) -> str:
    return evidence_links.linked(text, escape=str)


def test_every_file_is_in_the_cutlass_of_the_record() -> None:
    spec = importlib.util.find_spec("cutlass_library")
    if spec is None or not spec.origin:
        pytest.skip("nvidia-cutlass is not installed; it is in the extra 'cutlass'")
    root = Path(spec.origin).parent / "source"
    assert [
        path for path in evidence_links.files() if not (root / path).is_file()
    ] == []


def test_the_pages_have_the_links() -> None:
    frames = frame_page.page()
    for frame in FRAMES.values():
        if frame.cutlass:
            assert f"]({CUTLASS}/blob/v4.2.0/{frame.cutlass})" in frames
    assert tables.fidelity().count(evidence_links.KNOWN["ptx"]["address"]) > 50
    pages = notebook_pages.pages()
    errata = pages["notebooks/10_errata.ipynb"]
    assert errata.count("](https://") > len(ERRATA) / 2
    assert (
        "](https://arxiv.org/abs/2511.10909)"
        in pages["notebooks/06_mma_arithmetic.ipynb"]
    )
