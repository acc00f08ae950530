"""tcgen05.ld of lanes without values: they may be dropped, and a use is a fault."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.ptx.run.state import UndefinedRegister

BODY = """
    .shared .align 4 .b32 base;
    mov.u32 %r1, base; mov.u32 %r2, %laneid;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
    ld.shared.b32 %r3, [%r1];
    add.u32 %r4, %r2, 7;
    tcgen05.st.sync.aligned.16x64b.x1.b32 [%r3], {%r4};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r5, %r6}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    add.u32 %r7, %r5, %r6;
    setp.lt.u32 %p1, %r2, LANES; mad.wide.u32 %rd1, %r2, 4, OUT;
    @%p1 st.global.u32 [%rd1], %r7;
"""


def sums(lanes: int) -> list[int]:
    on = machine()
    out = on.gmem.upload("out", np.zeros(32, np.uint32))
    run(BODY.replace("LANES", str(lanes)).replace("OUT", str(out)), on=on)
    return on.gmem.contents(out, 128).view(np.uint32).tolist()


def test_what_is_dropped_needs_no_value() -> None:
    # 16x64b: lane i of TMEM, i below 8, has the registers of threads 2i and 2i + 1 in
    # the first two columns; lanes 8 to 15 are the same of threads 16 to 31.
    found = sums(16)
    assert sum(found[:16]) == sum(range(7, 39))
    assert not any(found[16:])


def test_what_is_stored_needs_one() -> None:
    with pytest.raises(UndefinedRegister, match="never written in lane 16"):
        sums(17)
