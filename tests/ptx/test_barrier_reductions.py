"""``bar.red``: counts, ``.and`` and ``.or`` over a CTA, and what the barrier orders."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.ptx.run.state import PartialWarp

THREADS = 96
VOTE = """
    mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, OUT;
    setp.lt.u32 %p1, %r1, BOUND; mov.u32 %r2, 0;
"""


def told(reduction: str, bound: int, schedule: str | int = "eager") -> set[int]:
    """Return what the threads are told; the first `bound` say yes."""
    on = machine(schedule)
    out = on.gmem.upload("out", np.zeros(THREADS, np.uint32))
    body = VOTE.replace("OUT", str(out)).replace("BOUND", str(bound))
    run(f"{body}{reduction} st.global.u32 [%rd1], %r2;", threads=THREADS, on=on)
    return set(on.gmem.contents(out, 4 * THREADS).view(np.uint32).tolist())


@pytest.mark.parametrize("bound", [0, 1, 33, 95, 96])
@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_all_threads_are_told_what_all_have_voted(
    bound: int, schedule: str | int
) -> None:
    chosen = "selp.u32 %r2, 1, 0, %p2;"
    assert told("bar.red.popc.u32 %r2, 0, %p1;", bound, schedule) == {bound}
    assert told("barrier.red.popc.aligned.u32 %r2, 7, 96, !%p1;", bound) == {96 - bound}
    found = told(f"bar.cta.red.and.pred %p2, 0, %p1; {chosen}", bound, schedule)
    assert found == {int(bound == 96)}
    assert told(f"barrier.cta.red.or.pred %p2, 1, 96, %p1; {chosen}", bound) == {
        int(bound > 0)
    }


REDUCES = "setp.eq.u32 %p1, %r1, 0; bar.red.or.pred %p2, 0, %p1;"
EXCHANGE = """
    .shared .align 4 .b32 tile[96];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    {barrier}
    sub.u32 %r4, 95, %r1; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r5, [%r4];
"""


@pytest.mark.parametrize("barrier", [REDUCES, "bar.sync 0;", ""])
def test_it_orders_what_is_before_and_after(barrier: str) -> None:
    on = machine(races="collect")
    smem = on.sms[0].smem
    # All words are written: the order alone is asked.
    smem.forget = lambda: smem.written.fill(True)  # type: ignore[method-assign]
    run(EXCHANGE.replace("{barrier}", barrier), threads=THREADS, on=on)
    assert bool(on.order.findings.races) == (not barrier)


def test_a_part_of_a_warp_is_refused() -> None:
    body = "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 7; "
    with pytest.raises(PartialWarp, match="7 of 32"):
        run(f"{body}@%p1 bar.red.or.pred %p2, 0, %p1;")
