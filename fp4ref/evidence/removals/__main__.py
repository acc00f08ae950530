"""Leave out every synchronisation operation in turn, and write the record.

``python -m fp4ref.evidence.removals`` makes all removals; ``--missing`` only those that
the record has no row for, and drops rows of operations that are gone.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace

from fp4ref.evidence.removals.case import Form
from fp4ref.evidence.removals.record import FILE, Row, computed, recorded, write
from fp4ref.evidence.removals.removal import sites

FORMS: tuple[Form, ...] = ("emulator", "ptx")


def main(words: list[str]) -> None:
    """Make the removals and print how many were noticed, and by what."""
    wanted = [removal for form in FORMS for removal in sites(form)]
    known = dict(recorded()) if "--missing" in words and FILE.is_file() else {}
    rows: list[Row] = [known[each] for each in wanted if each in known]
    for removal in wanted:
        if removal not in known:
            start = time.perf_counter()
            row = computed(removal)
            rows.append(replace(row, seconds=time.perf_counter() - start))
            write(rows)
    write(rows)
    print(f"{len(rows)} removals, {sum(row.seconds for row in rows):.0f} s")
    counts = Counter((row.removal.form, row.ptx.by) for row in rows)
    for (form, by), count in sorted(counts.items()):
        print(f"{form}: {count} by {by}")


if __name__ == "__main__":
    main(sys.argv[1:])
