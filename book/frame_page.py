"""frame_page: the frame index, from the package's index."""

from __future__ import annotations

from collections import Counter

from evidence_links import linked, linked_path
from frame_pages import path_of as own_page
from notebook_pages import link_to, path_of
from wording import (
    FILTER,
    VERDICTS,
    code_anchor,
    errata_anchor,
    frame_anchor,
    frame_link,
    index_entries,
    plain,
    row,
)

from fp4ref.cuda_kernel.twins import twin
from fp4ref.frames import FRAMES, Frame, Verdict
from fp4ref.lessons.errata import ERRATA
from fp4ref.lessons.exercise import every
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.show import python_excerpt

PARTS = {
    1: "Pipelines and mbarriers",
    2: "Tile scheduler",
    3: "Partitioning and TMA descriptors",
    4: "TMEM",
    5: "Load warp",
    6: "MMA warp",
    7: "Epilogue",
    8: "Cleanup",
}

NO_BREAK = "\N{NO-BREAK SPACE}"

KINDS = {
    "event": "A run emits it.",
    "constructed": "Set-up, shown by its values.",
    "derived": "A summary of a trace.",
    "cond": "Only in some configurations.",
}


def page() -> str:
    """Return the map of the frames, then one entry for each."""
    blocks = [_meanings(), _map(), _counts(), FILTER]
    for part, title in PARTS.items():
        blocks.append(f"## Part {part}. {title}")
        blocks += [_entry(f) for f in FRAMES.values() if f.part == part]
    return "\n\n".join(blocks) + "\n"


def _meanings() -> str:
    """Return each verdict with its sign, and when a frame has it."""
    return "\n".join(f"{VERDICTS[each]}\n: {each.meaning}\n" for each in Verdict)


def _map() -> str:
    """Every frame as a link with its verdict's sign, a line for each part."""
    lines = []
    for part, title in PARTS.items():
        links = [
            f"{frame_link(f)}{NO_BREAK}{VERDICTS[f.verdict][0]}"
            for f in FRAMES.values()
            if f.part == part
        ]
        lines.append(f"**Part {part}. {title}**\n: {', '.join(links)}\n")
    return "\n".join(lines)


def _counts() -> str:
    lines = [row("part", *VERDICTS.values()), row(*["---"] * (1 + len(VERDICTS)))]
    for part, title in PARTS.items():
        found = Counter(f.verdict for f in FRAMES.values() if f.part == part)
        counts = (str(found[verdict]) for verdict in VERDICTS)
        lines.append(row(f"{part}. {title}", *counts))
    total = Counter(f.verdict for f in FRAMES.values())
    lines.append(row("all", *(str(total[verdict]) for verdict in VERDICTS)))
    return "\n".join(lines)


def _entry(f: Frame) -> str:
    verdict = VERDICTS[f.verdict]
    lines = [
        f"({frame_anchor(f.id)})=",
        f"### {f.id} {plain(f.title)}",
        "",
        index_entries([f"frame {f.id}", *f.operations]),
        "",
        f"**{verdict[0]} {verdict[2:].capitalize()}.** {KINDS[f.kind.value]} "
        f"Taught in {link_to(LESSONS[f.notebook])}. "
        f'<a href="{own_page(f)}">A page of its own</a> has a player at its step.',
        "",
    ]
    about = "Note" if f.verdict is Verdict.RIGHT else "What is so"
    fields = {
        "The document says": plain(f.claim),
        about: plain(f.truth),
        "Source": _path_or_text(f.source),
        "Python": f"[`{f.emulator}`](#{code_anchor(f.emulator)}), {_place(f)}",
        "CUDA": _cuda(f),
        "CUTLASS": linked_path(f.cutlass) if f.cutlass else "",
        "In a trace": ", ".join(f"`{name}`" for name in f.operations),
        "Exercises": _exercises(f),
        "Errata": _errata(f),
    }
    lines += [f"{name}\n: {text}\n" for name, text in fields.items() if text]
    return "\n".join(lines).rstrip()


def _place(f: Frame) -> str:
    return f"`{python_excerpt(f.emulator).place}`"


def _cuda(f: Frame) -> str:
    found = twin(f.emulator)
    if found is None:
        return f"`{f.kernel}`" if f.kernel else ""
    return f"`{found.file}:{found.first}-{found.last}`"


def _exercises(f: Frame) -> str:
    """Every exercise about the frame, as a link to its notebook."""
    numbers = {lesson.number: lesson for lesson in LESSONS.values()}
    links = [
        f"[{exercise.id}]({path_of(numbers[exercise.id[:2]].name)}) {exercise.title}"
        for exercise in every().values()
        if f.id in exercise.frames
    ]
    return "; ".join(links)


def _errata(f: Frame) -> str:
    """Every entry of the errata about the frame, as a link to it."""
    found = [entry.id for entry in ERRATA.values() if f.id in entry.frames]
    return ", ".join(f"[{id}](#{errata_anchor(id)})" for id in found)


def _path_or_text(source: str) -> str:
    return linked_path(source) if source.startswith("include/") else linked(source)
