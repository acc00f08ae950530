"""barrier_text: PTX that initialises an mbarrier, and its word read back."""

from __future__ import annotations

from fp4ref.hardware.mbarrier_unit import MbarrierState

BAR = ".shared .align 8 .b64 bar; mov.u32 %r1, bar; mov.u32 %r2, %tid.x;"
FIRST = "setp.eq.u32 %p1, %r2, 0;"


def init(count: int) -> str:
    return (
        f"{BAR}{FIRST} @%p1 mbarrier.init.shared::cta.b64 [%r1], {count}; bar.sync 0;"
    )


def word(on: object) -> MbarrierState:
    data = on.sms[0].smem.data[:8].tobytes()  # type: ignore[attr-defined]
    return MbarrierState.decode(int.from_bytes(data, "little"))
