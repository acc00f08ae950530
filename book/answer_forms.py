"""answer_forms: the exercises of a notebook, as JSON that its page can check.

The page holds no answer: of each part of one it has a salted hash, and with that the
page finds the first difference as `fp4ref.lessons.answer` does and says it in the same
words. Title, hints and reason are encoded, so that nobody reads them by accident. An
exercise that asks for a function has its hints only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections.abc import Mapping
from enum import Enum
from typing import Any

from fp4ref.lessons import progress
from fp4ref.lessons.exercise import Exercise, ids, of_lesson
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.verdict import BLANK

Json = dict[str, Any]

LISTED = "_generated/static/exercise_ids.js"
"""Path of the script for ``static/progress.js``."""


def script(docname: str) -> str:
    """Return the JSON for a page of the site; '' if it has no exercises."""
    name = docname.removeprefix("notebooks/")
    if name == docname or name not in LESSONS:
        return ""
    found = of_lesson(LESSONS[name].number)
    if not found:
        return ""
    page = {
        "blank": BLANK,
        "ids": ids(),
        "exercises": [form(e) for e in found.values()],
    }
    return json.dumps(page, ensure_ascii=False).replace("<", "\\u003c")


def listed() -> str:
    """Return a script with the ids that pages ask, by the number of their notebook."""
    asked = {
        lesson.number: [e.id for e in of_lesson(lesson.number).values() if not e.cases]
        for lesson in LESSONS.values()
    }
    return f"const EXERCISES = {json.dumps({n: i for n, i in asked.items() if i})};\n"


def form(exercise: Exercise) -> Json:
    """Return what a page needs to ask one exercise."""
    following = progress.following_of(exercise.id)
    said = {
        "title": exercise.title,
        "hints": exercise.hints,
        "why": exercise.because,
        "next": progress.next_after(exercise.id),
    }
    found: Json = {"id": exercise.id, "said": _encoded(said), "unit": exercise.unit}
    if following:
        found["next"] = {"id": following, "page": f"{_page_of(following)}.html"}
    if exercise.cases is None:
        found["truth"] = hashes(exercise.id, exercise.truth)
    return found


def _page_of(id: str) -> str:
    return next(name for name, each in LESSONS.items() if each.number == id[:2])


def _encoded(said: Json) -> str:
    return base64.b64encode(json.dumps(said).encode()).decode()


def digest(salt: str, words: str) -> str:
    """Return the hash of one part of an answer; `salt` says which part."""
    return hashlib.sha256(f"fp4ref {salt} {words}".encode()).hexdigest()[:32]


def hashes(salt: str, truth: Any, place: str = "") -> Json:
    """Return kind and hash of an answer, part by part.

    Parameters
    ----------
    salt
        Id of the exercise.
    place
        Where the part is, as a message says it.

    Raises
    ------
    TypeError
        A page cannot ask for this kind of answer.
    """
    here = {"place": place}
    at = f"{salt}{place}"
    match truth:
        case bool():
            return here | {"kind": "flag", "hash": [digest(at, str(truth))]}
        case None:
            return here | {"kind": "none", "hash": [digest(at, "None")]}
        case Enum():
            names = (truth.name, str(truth.value))
            return here | {
                "kind": "name",
                "hash": [digest(at, _text(n)) for n in names],
            }
        case int():
            return here | {"kind": "integer", "hash": [digest(at, str(truth))]}
        case float():
            return here | {"kind": "number", "hash": [digest(at, _bits(truth))]}
        case str():
            return here | {"kind": "text", "hash": [digest(at, _text(truth))]}
        case list() | tuple():
            parts = [hashes(salt, e, f"{place}[{i}]") for i, e in enumerate(truth)]
            return here | {"kind": "list", "parts": parts}
        case set() | frozenset():
            members = sorted(digest(at, each) for each in truth)
            return here | {"kind": "set", "hash": members}
        case Mapping():
            parts = [
                {"key": str(key)} | hashes(salt, each, f"{place}[{key!r}]")
                for key, each in truth.items()
            ]
            return here | {"kind": "dict", "parts": parts}
    raise TypeError(f"{salt}: no page asks for {type(truth).__name__}")


def _text(text: str) -> str:
    return text.strip().lower()


def _bits(number: float) -> str:
    """Bits of a float64; there is one NaN."""
    return "nan" if math.isnan(number) else struct.pack(">d", number).hex()
