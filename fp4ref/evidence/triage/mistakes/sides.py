"""sides: one change for A, for B and for both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fp4ref.evidence.triage.mistake import Change
from fp4ref.evidence.triage.reading import Map, Reading


def of_codes(words: str, a: Map, b: Map) -> Iterator[tuple[str, Change]]:
    """Yield a map of codes for A and one for B, each alone and both."""
    yield _said("A", words), lambda r: replace(r, a=r.a.with_codes(a))
    yield _said("B", words), lambda r: replace(r, b=r.b.with_codes(b))
    yield _said("A and B", words), lambda r: codes_of_both(r, a, b)


def of_scales(words: str, a: Map, b: Map) -> Iterator[tuple[str, Change]]:
    """Yield a map of scales for SFA and one for SFB, each alone and both."""
    yield _said("SFA", words), lambda r: replace(r, a=r.a.with_scales(a))
    yield _said("SFB", words), lambda r: replace(r, b=r.b.with_scales(b))
    yield _said("SFA and SFB", words), lambda r: scales_of_both(r, a, b)


def codes_of_both(reading: Reading, a: Map, b: Map) -> Reading:
    """Return the reading with a map of A's codes and one of B's."""
    return replace(reading, a=reading.a.with_codes(a), b=reading.b.with_codes(b))


def scales_of_both(reading: Reading, a: Map, b: Map) -> Reading:
    """Return the reading with a map of A's scales and one of B's."""
    return replace(reading, a=reading.a.with_scales(a), b=reading.b.with_scales(b))


def _said(side: str, words: str) -> str:
    return f"{side}: {words}" if words else side
