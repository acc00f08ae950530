"""broken_rows: which rungs see that a row of the fidelity table is made wrong.

``python tests/attest/broken_rows.py ID ...`` breaks each row in turn and prints, as
JSON, the part that saw it: a prediction that is not what was recorded, or a run of the
rung on the emulated machine that is not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "evidence")]

from mutate import applied  # noqa: E402

from fp4ref.attest.catalogue import question  # noqa: E402
from fp4ref.attest.keep import TRANSCRIPTS  # noqa: E402
from fp4ref.attest.on_ptx import OnPtx  # noqa: E402
from fp4ref.errors import Fp4refError  # noqa: E402
from fp4ref.evidence.attested import facts  # noqa: E402
from fp4ref.evidence.fidelity import RULES  # noqa: E402
from fp4ref.evidence.transcript import read  # noqa: E402

BY_ID = {rule.id: rule for rule in RULES}


def seen(row: str) -> str:
    """The first part that shows `row` and saw it broken; '' if none did."""
    for rung in read(TRANSCRIPTS / "attest_ptx.json").rungs:
        rows = facts()[rung.name].parts
        parts = {p.name: p.words for p in rung.parts if row in rows[p.name]}
        asked = question(rung.name)
        of = [part for part in asked.parts if part.name in parts]
        if not of:
            continue
        with applied(BY_ID[row].mutation):
            try:
                for part in of:
                    assert part.predict is not None
                    if not np.array_equal(part.predict(), parts[part.name]):
                        return f"{rung.name}, {part.name}: predicted otherwise"
                buffers = OnPtx(asked).run()
            except Fp4refError as error:
                return f"{rung.name}: {type(error).__name__}"
            for part in of:
                if not np.array_equal(part.of(buffers), parts[part.name]):
                    return f"{rung.name}, {part.name}: ran otherwise"
    return ""


if __name__ == "__main__":
    print(json.dumps({row: seen(row) for row in sys.argv[1:]}))
