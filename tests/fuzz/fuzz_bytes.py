"""fuzz_bytes: damage to bytes, texts and JSON values, all drawn from one generator."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD_NUMBERS = (-1, 0, 1, 7, 2**31, 2**63, 2**64, -(2**70), 10**30, 1.5, 1e308)
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    "[/b]",
    "\x1b[31m",
    "\ud800",
    "A" * 300,
    [],
    {},
    [[]],
    float("nan"),
    float("inf"),
    *ODD_NUMBERS,
)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Flip, cut, double, insert or overwrite a few bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not out:
            break
        at = rng.randrange(len(out))
        match rng.randrange(6):
            case 0 | 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                del out[at:]
            case 3:
                out[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                out[at : at + 4] = rng.choice((b"\xff" * 4, b"\0" * 4))
            case 5:
                piece = out[at : at + rng.randrange(1, 64)]
                out[at:at] = piece
    return bytes(out)


def altered(rng: random.Random, value: Any) -> Any:
    """Change one to three places of a JSON value."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 3))):
        _alter_somewhere(rng, value)
    return value


def _alter_somewhere(rng: random.Random, value: Any) -> None:
    """Walk down at random; change the place where the walk ends."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            value = inner
            continue
        match rng.randrange(4):
            case 0:
                del value[key]
            case 1:
                other = rng.choice(keys)
                value[key] = copy.deepcopy(value[other])
            case 2 if isinstance(inner, int):
                value[key] = inner + rng.choice((-1, 1, 64, -64, 1 << 20))
            case _:
                value[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        return


def altered_words(rng: random.Random, text: str) -> str:
    """Drop, double, swap or replace a few words of a text."""
    words = text.split(" ")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(words))
        match rng.randrange(5):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, rng.choice(words))
            case 2:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = str(rng.choice(ODD_NUMBERS))
            case _:
                words[at] += rng.choice(("{", "}", ";", "(", "[", "\0", "\xe9", ".b32"))
    return " ".join(words)
