"""generate: everything in the book that the package already knows.

``python book/generate.py`` writes ``book/_generated`` (parts of pages) and
``book/notebooks`` (the notebooks, each with links to its frames). Both engines need
them: Sphinx's conf.py calls `generate`, Jupyter Book's check does too. A file that
would not change is not written.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

BOOK = Path(__file__).parent
sys.path[:0] = [str(BOOK)] if str(BOOK) not in sys.path else []

import answer_forms  # noqa: E402
import check_page  # noqa: E402
import clusters  # noqa: E402
import code_page  # noqa: E402
import concepts  # noqa: E402
import data_flow  # noqa: E402
import epilogue_builder  # noqa: E402
import executions  # noqa: E402
import fault_page  # noqa: E402
import formats  # noqa: E402
import four_bits  # noqa: E402
import frame_page  # noqa: E402
import frame_pages  # noqa: E402
import glossary  # noqa: E402
import hero  # noqa: E402
import k_groups  # noqa: E402
import lab_page  # noqa: E402
import lab_records_page  # noqa: E402
import markdown_twins  # noqa: E402
import microscope_page  # noqa: E402
import notebook_pages  # noqa: E402
import pairs  # noqa: E402
import pieces  # noqa: E402
import quantisers  # noqa: E402
import races  # noqa: E402
import removals  # noqa: E402
import rings  # noqa: E402
import rooms  # noqa: E402
import silicon  # noqa: E402
import split_k  # noqa: E402
import tables  # noqa: E402
import tiers  # noqa: E402
import tour  # noqa: E402
import triage_page  # noqa: E402
import walk_page  # noqa: E402

FOLDERS = (
    "_generated",
    "_generated/site",
    frame_pages.FOLDER,
    markdown_twins.FOLDER,
    "_generated/static",
    "notebooks",
    f"notebooks/{concepts.FOLDER}",
)


def files() -> dict[str, str]:
    """Text of every generated file by its path from ``book/``."""
    made = parts()
    twins = markdown_twins.pages(made)
    scripts = {
        glossary.SCRIPT: glossary.script(),
        answer_forms.LISTED: answer_forms.listed(),
    }
    return {**made, **twins, **scripts}


def parts() -> dict[str, str]:
    """Text of parts of pages, of notebooks and of pages of their own."""
    return {
        "_generated/road.md": notebook_pages.road(),
        "_generated/hero.md": hero.page(),
        "_generated/evidence.md": tables.evidence(),
        "_generated/folders.md": tables.folders(),
        "_generated/fidelity.md": tables.fidelity(),
        "_generated/attest.md": tables.attest(),
        "_generated/family.md": tables.family(),
        "_generated/choice.md": tables.choice(),
        "_generated/frames.md": frame_page.page(),
        "_generated/code.md": code_page.page(),
        "_generated/faults.md": fault_page.page(),
        "_generated/glossary.md": glossary.page(),
        "_generated/executions.svg": executions.picture(),
        "_generated/executions.md": executions.page(),
        "_generated/pairs.md": pairs.page(),
        "_generated/clusters.md": clusters.page(),
        "_generated/tile_order.md": clusters.order_page(),
        **clusters.pictures(),
        "_generated/k_groups.md": k_groups.page(),
        f"_generated/{k_groups.FILE}": k_groups.picture(),
        "_generated/split_k.md": split_k.page(),
        f"_generated/{split_k.FILE}": split_k.picture(),
        "_generated/formats.md": formats.page(),
        f"_generated/{formats.FILE}": formats.picture(),
        "_generated/epilogue_rules.md": epilogue_builder.rules(),
        "_generated/epilogue_builder.md": epilogue_builder.page(),
        f"_generated/{epilogue_builder.FILE}": epilogue_builder.picture(),
        **pairs.pictures(),
        "_generated/pieces.md": pieces.page(),
        "_generated/quantisers.md": quantisers.page(),
        "_generated/tiers.md": tiers.page(),
        f"_generated/{tiers.FILE}": tiers.picture(),
        "_generated/races.md": races.page(),
        "_generated/removals.md": removals.page(),
        **four_bits.pages(),
        "_generated/tour.md": tour.page(walk_page.trace()),
        **of_the_laboratory(),
        **check_page.pages(),
        **frame_pages.pages(),
        "_generated/triage.md": triage_page.page(),
        f"_generated/{triage_page.FILE}": triage_page.picture(),
        "_generated/rings.md": rings.page(),
        f"_generated/{rings.FILE}": rings.picture(rings.drawn()),
        "_generated/rooms.md": rooms.page(),
        **rooms.pictures(),
        "_generated/silicon.md": silicon.page(),
        **silicon.pictures(),
        "_generated/site/walk.html": walk_page.page(),
        "_generated/site/microscope.html": microscope_page.page(),
        **notebook_pages.pages(),
        "notebooks/data_flow.svg": data_flow.svg(),
        **{f"notebooks/{name}": text for name, text in concepts.pictures().items()},
    }


def of_the_laboratory() -> dict[str, str]:
    """Return the parts of the laboratory's page."""
    return {
        "_generated/lab_bounds.md": lab_page.bounds(),
        "_generated/lab_banks.md": lab_page.banks(),
        "_generated/lab_clock.md": lab_page.clock(),
        "_generated/lab_compiled.md": lab_page.compiled(),
        "_generated/lab_figures.md": lab_page.figures(),
        f"_generated/{lab_page.FILE}": lab_page.picture(),
        "_generated/lab_records.md": lab_records_page.experiments(),
        "_generated/lab_models.md": lab_records_page.models(),
        "_generated/lab_predictions.md": lab_records_page.predictions(),
        "_generated/lab_doubtful.md": lab_records_page.doubtful(),
        f"_generated/{lab_records_page.FILE}": lab_records_page.picture(),
    }


def generate(book: Path = BOOK) -> list[str]:
    """Write what changed below `book`; return the paths written."""
    wanted = files()
    written = []
    for name, text in wanted.items():
        path = book / name
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
        written.append(name)
    for folder in FOLDERS:
        for path in (book / folder).glob("[!.]*"):
            if path.is_file() and f"{folder}/{path.name}" not in wanted:
                path.unlink(missing_ok=True)
    return written


if __name__ == "__main__":
    for name in generate():
        print("wrote", name)
