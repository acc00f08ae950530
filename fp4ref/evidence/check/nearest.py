"""nearest: the supported form of an instruction that is nearest to one that is not.

A form is near if few modifiers have to be put in, left out or exchanged. Whether a
form is supported is asked of the executor's registry itself, so no list can be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from fp4ref.ptx.run.registry import ENTRIES, find
from fp4ref.ptx.text.program import base_name

_WORD = re.compile(r"[.]?([a-z][a-z0-9_]*(?:::[a-z0-9_]+)*)", re.IGNORECASE)
_CHOICE = re.compile(r"(\w+::)\(([^()]+)\)")
_OPERATIONS = ("bulk", "tensor", "tensormap", "async")
"""Not modifiers: what has them is another instruction."""

_MOST_TRIED = 4000
_TYPES = re.compile(r"[busf]\d+(x2)?|bf16(x2)?|e\dm\d(x\d)?")


@cache
def _modifiers(base: str) -> tuple[str, ...]:
    """Every word that stands in a supported form of an instruction."""
    found: dict[str, None] = {}
    for entry in ENTRIES.get(base, ()):
        text = entry.opcode.pattern.replace("[.]", ".").replace("\\", "")
        text = re.sub(r"\?P<\w+>|\?:", "", text)
        text = _CHOICE.sub(
            lambda m: " ".join(m[1] + word for word in m[2].split("|")), text
        )
        for word in _WORD.findall(text):
            if word not in (base, *_OPERATIONS):
                found[word] = None
    for kind in ("u", "s", "b", "f"):
        for bits in (16, 32, 64):
            found[f"{kind}{bits}"] = None
    return tuple(found)


def _edits(words: tuple[str, ...], base: str) -> Iterator[tuple[str, ...]]:
    """Opcodes that are one word away: without an unknown one, then any."""
    known = _modifiers(base)
    free = [i for i, word in enumerate(words) if word not in _OPERATIONS]
    for i in free:
        if words[i] not in known and not _TYPES.fullmatch(words[i]):
            yield (*words[:i], *words[i + 1 :])
    for i in free:
        for other in known:
            if bool(_TYPES.fullmatch(words[i])) == bool(_TYPES.fullmatch(other)):
                yield (*words[:i], other, *words[i + 1 :])
    for i in free:
        yield (*words[:i], *words[i + 1 :])
    for other in known:
        yield (*words, other)
        yield (other, *words)


def nearest(opcode: str) -> str:
    """Return the nearest supported opcode; '' if the instruction has none near."""
    base = base_name(opcode.split(" ")[0])
    if base not in ENTRIES:
        return ""
    if find(opcode) is not None:
        # Its operands are what is refused, or the use of it.
        return opcode
    first = tuple(opcode.split(" ")[0].split(".")[1:])
    seen = {first}
    waiting = [first]
    while waiting and len(seen) < _MOST_TRIED:
        # Two edits of a long opcode are too many: what has fewer words goes on.
        shorter = []
        for words in waiting:
            for other in _edits(words, base):
                if other in seen:
                    continue
                seen.add(other)
                name = ".".join((base, *other))
                if find(name) is not None:
                    return name
                if len(other) < len(words):
                    shorter.append(other)
        waiting = shorter
    return ""
