"""seeded_rungs: rungs that break on purpose."""

from __future__ import annotations

from fp4ref.attest.question import Part, Question, of_file, one_cta


def hang() -> Question:
    """A kernel that never ends."""
    return of_file("seeded.cu", one_cta("hang", 2, threads=1), _part("none"))


def fault() -> Question:
    """A store to an address that is nobody's."""
    return of_file("seeded.cu", one_cta("fault", 2, threads=1), _part("none"))


def stuck() -> Question:
    """A wait for an arrival that does not come; it gives up after a few tries."""
    return of_file(
        "seeded.cu",
        one_cta("stuck", 1, threads=32),
        _part("done"),
        defines={"ATTEST_TRIES": "64", "ATTEST_HEARTBEAT": "1"},
    )


def _part(name: str) -> tuple[Part, ...]:
    return (Part(name, "out", 0, 1, None),)
