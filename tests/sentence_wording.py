"""sentence_wording: what holds for the sentence of any event."""

from __future__ import annotations

import re

from fp4ref.trace import Trace
from fp4ref.viz.sentences import sentences

MOST_WORDS = 25


def check_wording(trace: Trace) -> None:
    for event, words in zip(trace, sentences(trace), strict=True):
        said = f"{event.operation} ({event.kind}): {words!r}"
        assert len(words.split()) <= MOST_WORDS, said
        assert not re.search(r"0x|[{}]|\bsome\b|None", words), said
        assert words[0].isupper() or words[0].isdigit(), said
        assert words.endswith("."), said
        assert "  " not in words, said
        # An operation that only its name stands for has no sentence of its own.
        assert event.operation not in words, said
