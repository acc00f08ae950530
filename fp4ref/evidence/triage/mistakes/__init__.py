"""mistakes: the list. A new one is one entry of one of these modules' lists.

Those that happen later come first, from the store of D back to the host that laid the
operands out: two at once are applied in this order.
"""

from __future__ import annotations

from collections.abc import Iterator

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Mistake, Variant
from fp4ref.evidence.triage.mistakes.epilogue import EPILOGUE
from fp4ref.evidence.triage.mistakes.k_tiles import K_TILES
from fp4ref.evidence.triage.mistakes.operands import OPERANDS
from fp4ref.evidence.triage.mistakes.scales import SCALES
from fp4ref.evidence.triage.mistakes.store import STORE

MISTAKES: tuple[Mistake, ...] = (*STORE, *EPILOGUE, *K_TILES, *SCALES, *OPERANDS)
"""Every mistake that triage knows."""


def variants(case: Case) -> Iterator[Variant]:
    """Yield every form of every mistake that a case has a place for."""
    for mistake in MISTAKES:
        for where, change in mistake.variants(case):
            yield Variant(mistake, where, change)
