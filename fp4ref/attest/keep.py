"""keep: a transcript becomes part of the repository.

The fidelity table takes its measured rows from there (`fp4ref.evidence.attested`), and
the tests hold every kept transcript against today's predictions.
"""

from __future__ import annotations

import re
from pathlib import Path

from fp4ref.attest.verdict import Judged
from fp4ref.errors import InputError
from fp4ref.evidence.attested import KEPT

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"


def keep(judged: Judged, folder: Path = TRANSCRIPTS) -> Path:
    """Copy a whole transcript that contradicts nothing; returns where it is.

    Raises
    ------
    InputError
        It is not complete, asks otherwise than today's rungs, or contradicts a row:
        then the rule comes first.
    """
    transcript = judged.transcript
    wrong = [row for row, m in judged.moves.items() if m.verdict == "contradicted"]
    what = ""
    if not transcript.complete:
        what = "the ladder was not climbed to its end; climb it to its end"
    elif judged.stale:
        what = f"{', '.join(judged.stale)} is asked otherwise today; climb again"
    elif wrong:
        what = f"it contradicts {', '.join(wrong)}; mend the rule or the row first"
    if what:
        raise InputError(f"{transcript.path}: {what}")
    card = str(transcript.facts["card"] or transcript.facts["backend"]).lower()
    path = folder / f"{KEPT}{re.sub('[^a-z0-9]+', '_', card)}.json"
    transcript.write(path)
    return path
