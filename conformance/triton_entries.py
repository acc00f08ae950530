"""triton_entries: Triton's ``dot_scaled`` on wide operands, and as a check sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from entry import SCHEDULES, Entry


def triton(name: str, block: tuple[int, int, int]) -> Callable[[], None]:
    """Bits of D equal the integer model, on wide-range operands with specials."""

    def check() -> None:
        from test_triton import run as run_triton

        m, n, k = block
        for shape in ((m, n, k), (2 * m, n, 2 * k), (m, 2 * n, 4 * k)):
            for schedule in SCHEDULES:
                d, want = run_triton(
                    name, block, shape, schedule=schedule, ordering="shipped"
                )
                assert np.array_equal(d, want), f"{shape}, {schedule}: D differs"

    return check


def dot_scaled() -> Iterator[Entry]:
    """Rows of one kernel, in both formats and with two tiles."""
    for name in ("nvfp4", "mxfp4"):
        for block in ((128, 128, 256), (128, 64, 256)):
            yield Entry(
                f"Triton dot_scaled {name.upper()}, tile {'x'.join(map(str, block))}",
                "PyPI triton 3.9",
                "tcgen05.st of scales and accumulator, no TMA, no UTCCP",
                f"3 shapes, {len(SCHEDULES)} schedules, against the integer model",
                triton(name, block),
            )


def checked() -> Iterator[Entry]:
    """`fp4ref check` on a text of Triton's, as compiled and with mistakes put in."""

    def check() -> None:
        import test_check_triton as edited

        edited.test_as_compiled_it_is_clean_and_relies_on_known_things_only()
        for name in edited.EDITS:
            edited.test_an_edit_is_named_at_its_line(name)

    yield Entry(
        "Triton dot_scaled NVFP4, as fp4ref check sees it",
        "PyPI triton 3.9",
        "clean as compiled; ten mistakes, one at a time, each named at its line",
        "1 shape, 4 schedules and both orderings; of a mistake 2 schedules",
        check,
    )
