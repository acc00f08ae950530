"""skipped_waits: where a wait stands that a peek made unnecessary.

Such a wait left no event. It is put where its result is first needed: before the first
later statement of the warp that names the stage's other barrier, or that touches bytes
which the awaited phase brought. Had the peek said no, the warp would have waited there
at the latest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fp4ref.trace import Event, Range

PEEK, WAIT = "mbarrier.test_wait", "mbarrier.try_wait"


def places(events: Sequence[Event]) -> dict[int, list[Event]]:
    """Return the peeks whose wait is due before an event, by the event's step.

    A peek whose result is never needed is due at once, before the warp's next event.
    """
    partner = _partners(events)
    landings: dict[int, list[Event]] = {}
    brought: dict[tuple[str, int], set[Range]] = {}
    for event in events:
        if event.kind == "land":
            landings.setdefault(event.issued, []).append(event)
        for changed in event.barrier:
            place = brought.setdefault((changed.space, changed.address), set())
            if event.kind == "land":
                place.update(event.writes)
    due: dict[int, list[Event]] = {}
    warps: dict[str, list[Event]] = {}
    for event in events:
        if event.kind in ("issue", "sync"):
            warps.setdefault(event.agent, []).append(event)
    for statements in warps.values():
        for i, peek in enumerate(statements):
            if not peek.operation.startswith(PEEK) or not peek.operands.get("done"):
                continue
            later = statements[i + 1 :]
            asked = f"smem{peek.sm}", peek.operands["mbar"]
            other = partner.get(asked[1])
            found = _needed(peek, later, other, brought.get(asked, set()), landings)
            if found is not None:
                due.setdefault(found.step, []).append(peek)
    return due


def _partners(events: Iterable[Event]) -> dict[int, int]:
    """Return the address of each barrier's counterpart: of full the empty one."""
    labels: dict[str, int] = {}
    for event in events:
        for changed in event.barrier:
            if changed.label:
                labels[changed.label] = changed.address
    pairs = {}
    for label, address in labels.items():
        swapped = (
            label.replace(".full[", ".empty[")
            if ".full[" in label
            else label.replace(".empty[", ".full[")
        )
        if swapped != label and swapped in labels:
            pairs[address] = labels[swapped]
    return pairs


def _needed(
    peek: Event,
    later: Sequence[Event],
    other: int | None,
    brought: set[Range],
    landings: dict[int, list[Event]],
) -> Event | None:
    """Return the statement that needs the answer; None if the wait has an event."""
    mbar, parity = peek.operands["mbar"], peek.operands["parity"]
    for event in later:
        named = event.operands.get("mbar")
        if named == mbar and event.operation.startswith((WAIT, PEEK)):
            same = event.operands.get("parity") == parity
            return None if same and event.operation.startswith(WAIT) else event
        if other is not None and named == other:
            return event
        touched = [*event.reads, *event.writes]
        for landing in landings.get(event.step, ()):
            touched += [*landing.reads, *landing.writes]
        if any(a.overlaps(b) for a in touched for b in brought):
            return event
    return later[0] if later else None
