"""glossary: the words of glossary.toml, with every alias, as a page."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from wording import anchor, frame_link, index_entries, plain

from fp4ref.frames import frame

SOURCE = Path(__file__).with_name("glossary.toml")
SCRIPT = "_generated/static/glossary_words.js"
EVERYDAY = ("arrive", "box", "frame", "peer", "phase", "ptx", "device", "stage")
"""Words of the glossary that a text also uses for something else."""


def page() -> str:
    """Return every word by area; each has an anchor ``word-...``."""
    blocks = []
    for area in tomllib.loads(SOURCE.read_text("utf-8"))["area"]:
        blocks.append(f"## {area['title']}")
        blocks += [_entry(word) for word in area["word"]]
    return "\n\n".join(blocks) + "\n"


def _entry(word: dict[str, Any]) -> str:
    lines = [
        f"(word-{anchor(word['name'])})=",
        f"### {plain(word['name'])}",
        "",
        index_entries(_names(word), main=True),
        "",
        word["means"],
        "",
    ]
    fields = {
        "PTX": plain(word.get("ptx", "")),
        "CUTLASS": plain(word.get("cutlass", "")),
        "Also called": plain(", ".join(word.get("also", []))),
        "Frames": ", ".join(frame_link(frame(id)) for id in word.get("frames", [])),
    }
    lines += [f"{name}\n: {text}\n" for name, text in fields.items() if text]
    return "\n".join(lines).rstrip()


def _names(word: dict[str, Any]) -> list[str]:
    """Every name of the thing, without repeats."""
    lists = [word["name"], word.get("ptx", ""), word.get("cutlass", "")]
    names = [name for text in lists for name in text.split(", ") if name]
    return list(dict.fromkeys([*names, *word.get("also", [])]))


def script() -> str:
    """Return the words for ``static/book.js``: name, meaning and anchor of each.

    A word that other prose uses in an everyday sense is left out.
    """
    words = {
        name: [word["means"], f"word-{anchor(word['name'])}"]
        for area in tomllib.loads(SOURCE.read_text("utf-8"))["area"]
        for word in area["word"]
        for name in word["name"].split(", ")
        if name not in EVERYDAY
    }
    return f"const GLOSSARY = {json.dumps(words, ensure_ascii=False)};\n"
