"""Mistakes of public kernels are caught under ``eager``, in both forms.

A row of the gallery that names a case is taken by itself. What must be said of a case
is written here, from the report of the kernel's fault, and not from the row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.evidence.faults import GALLERY, Catch, Fault, run_fault, run_twin
from fp4ref.evidence.faults.gallery import GEMM

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


class Said(NamedTuple):
    """What a report has; `fault` is empty for an advisory and for other bits."""

    fault: str
    rule: str
    remedy: str
    where: str = ""


ARRIVALS = "every wait needs an arrival that will come"
ALLOCATED = Said(
    "TmemAllocationFault", "only allocated columns may be used", "allocate", "tmem0"
)
INIT = Said(
    "RaceFault",
    "mbarrier.init is an ordinary write: other threads need a barrier after it",
    "then a barrier that all users pass",
)
CASES: dict[str, list[Said]] = {
    "B28": [
        Said("DeadlockError", ARRIVALS, "number of real arrivals", ".empty[0]"),
        Said("DeadlockError", ARRIVALS, "number of real arrivals", ".full[0]"),
        Said("DeadlockError", ARRIVALS, "start a producer with phase 1", "parity 0"),
    ],
    "B29": [
        Said(
            "MbarrierFault",
            "a phase takes exactly its expected arrivals",
            "initialise the barrier with the number of real arrivals",
            "accumulator.empty[0]",
        )
    ],
    "B30": [
        Said(
            "UninitialisedRead",
            "no defined value before its first write",
            "wait for the operation that fills it",
            "smem1",
        ),
        Said(
            "MbarrierFault",
            "mbarrier.init comes first",
            "make the init visible",
            "smem1",
        ),
    ],
    "B31": [
        Said(
            "TmemAllocationFault",
            "both CTAs of a pair perform an allocation and its deallocation",
            "put a cluster barrier between",
            "tmem1",
        )
    ],
    "B32": [
        Said("DeadlockError", ARRIVALS, "", "512 of 512 in use"),
        Said("TmemAllocationFault", "a power of two in 32..512", "round up"),
    ],
    "B38": [Said("", "SFA at m 0, n 0, k 256, batch 0: scale of row 0", "")],
    "B69": [
        INIT,
        Said(
            "MbarrierFault",
            "a parity tells only the current phase from the one before",
            "an arrival from every waiter",
        ),
        ALLOCATED,
        Said("OutOfBounds", "stay inside an allocation", "check pointer", "gmem"),
    ],
    "B71": [Said("", "scales at an odd TMEM column", "")],
    "B73": [
        Said("RaceFault", "causality order", "arrive on a barrier", "smem0"),
        Said(
            "UninitialisedRead",
            "no defined value before its first write",
            "wait for the operation that fills it",
            "tmem_pointer",
        ),
        INIT,
    ],
    "B74": [
        Said(
            "RaceFault",
            "an asynchronous operation uses its memory until its completion",
            "tcgen05.wait",
            "tmem0",
        )
    ],
    "B82": [
        Said(
            "MissingProxyFence",
            "a generic-proxy write needs fence.proxy.async",
            "execute fence.proxy.async",
            "smem0",
        )
    ],
}
"""Each case of the field with its parts; every part has a row, and every row a part."""


def rows() -> list[Any]:
    """Every row that names a case, in every form."""
    found = []
    for each in GALLERY.values():
        for case in each.field:
            for form in each.forms:
                marks = [needs_nvrtc] if each.subject == GEMM and form == "ptx" else []
                name = f"{case}-{each.name}-{form}"
                found.append(pytest.param(case, each, form, id=name, marks=marks))
    return found


def says(found: Catch, part: Said) -> bool:
    """Whether a report is that of a part."""
    report = found.report()
    if found.fault is None:
        return part.fault == "" and part.rule in report
    return (
        part.fault == type(found.fault).__name__
        and part.rule in str(found.fault.rule)
        and part.remedy in report
        and part.where in report
    )


@pytest.mark.parametrize(("case", "each", "form"), rows())
def test_a_case_is_caught_under_eager(case: str, each: Fault, form: Any) -> None:
    """By its rule, at the statement that the row names, with a remedy."""
    found = run_fault(each, form)
    assert any(says(found, part) for part in CASES[case]), found.report()
    if found.fault is not None:
        assert found.fault.remedy
        assert each.form(form).place in found.places
    assert run_twin(each, form).silent


def test_every_part_of_every_case_has_a_row() -> None:
    assert {case for each in GALLERY.values() for case in each.field} == set(CASES)
    for case, parts in CASES.items():
        named = [each for each in GALLERY.values() if case in each.field]
        reports = [run_fault(each, "emulator") for each in named]
        for part in parts:
            assert any(says(found, part) for found in reports), (case, part)


def test_a_part_is_not_found_in_another_report() -> None:
    """The check can fail."""
    found = run_fault(GALLERY["scales-not-fenced"], "ptx")
    others = [part for case in CASES if case != "B82" for part in CASES[case]]
    assert not any(says(found, part) for part in others)
    silent = run_twin(GALLERY["scales-not-fenced"], "ptx")
    assert not any(says(silent, part) for parts in CASES.values() for part in parts)
