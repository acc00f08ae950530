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
_OPERATIONS = ("bulk", "tensor")
"""Not modifiers: what has them is another instruction."""

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
    """Opcodes that are one word away: one more, one fewer, another one."""
    for i, word in enumerate(words):
        for other in _modifiers(base):
            if bool(_TYPES.fullmatch(word)) == bool(_TYPES.fullmatch(other)):
                yield (*words[:i], other, *words[i + 1 :])
    for i in range(len(words) + 1):
        for other in _modifiers(base):
            yield (*words[:i], other, *words[i:])
    for i in range(len(words)):
        yield (*words[:i], *words[i + 1 :])


def nearest(opcode: str) -> str:
    """Return the nearest supported opcode; '' if the instruction has none near."""
    base = base_name(opcode.split(" ")[0])
    if base not in ENTRIES:
        return ""
    if find(opcode) is not None:
        # Its operands are what is refused, or the use of it.
        return opcode
    words = tuple(opcode.split(" ")[0].split(".")[1:])
    level: dict[tuple[str, ...], None] = dict.fromkeys([words])
    for _ in range(2):
        following: dict[tuple[str, ...], None] = {}
        for each in level:
            for other in _edits(each, base):
                if other not in following:
                    following[other] = None
                    if find(name := ".".join((base, *other))) is not None:
                        return name
        # Two edits of long opcodes are too many: the second one starts from deletions.
        level = {each: None for each in following if len(each) < len(words)}
    return ""
