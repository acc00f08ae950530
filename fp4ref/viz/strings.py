"""strings: every sentence of the player and of its text twins, from one file.

``strings.json`` is what a translation replaces. The script reads the same file.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def strings() -> dict[str, str]:
    """Return every sentence by its key."""
    text = resources.files("fp4ref.viz").joinpath("strings.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def say(key: str, **values: Any) -> str:
    """Return one sentence with its blanks filled in."""
    return strings()[key].format(**values)
