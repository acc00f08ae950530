"""faults: what PTX forbids and the card ends with an error."""

from __future__ import annotations

from probes.forms.catalogue import Form
from probes.forms.memory_shapes import ROOM
from probes.forms.shapes import Shape

# The kernel goes on with the barrier: one that ends at once is not reported.
_BARRIER = (
    ".shared .align 8 .b64 bar; .reg .b32 %w; .reg .b64 %s; .reg .pred %first, %p; "
    "mov.u32 %w, bar; setp.eq.u32 %first, %thread, 0; "
    "@%first mbarrier.init.shared.b64 [%w], {count}; bar.sync 0; "
    "setp.lt.u32 %p, %thread, {lanes}; @!%p bra SKIP; {arrive} SKIP: bar.sync 0; "
    "mbarrier.test_wait.parity.shared.b64 %p, [%w], 0; selp.b32 %d0, 1, 0, %p; "
    "bar.sync 0; @%first mbarrier.inval.shared.b64 [%w]; bar.sync 0; "
    "@%first ld.shared.b32 %d0, [%w];"
)
_ARRIVALS = {
    "arrive": "mbarrier.arrive.shared.b64 _, [%w];",
    "arrive with a state": "mbarrier.arrive.shared.b64 %s, [%w];",
    "arrive.expect_tx": "mbarrier.arrive.expect_tx.shared.b64 _, [%w], 0;",
}
# Every part of a load is used: a compiler narrows it otherwise.
_MISALIGNED = {
    "ld.global.v4.b32 at 4": (
        ".reg .b32 %x<3>; and.b64 %at, %at, -16; "
        "ld.global.v4.b32 {%d0, %x0, %x1, %x2}, [%at+4]; "
        "add.u32 %d0, %d0, %x0; add.u32 %d0, %d0, %x1; add.u32 %d0, %d0, %x2;"
    ),
    "ld.shared.b64 at 4": (
        f"{ROOM}st.shared.v4.b32 [%room], {{%a, %a, %a, %a}}; .reg .b64 %x; "
        ".reg .b32 %low, %high; ld.shared.b64 %x, [%room+4]; "
        "mov.b64 {%low, %high}, %x; add.u32 %d0, %low, %high;"
    ),
    "st.shared.b16 at 1": f"{ROOM}st.shared.u16 [%room+1], %a; mov.b32 %d0, 0;",
    "atom.shared.add.u32 at 2": f"{ROOM}atom.shared.add.u32 %d0, [%room+2], %a;",
    "ldmatrix at 8": (
        f"{ROOM}ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%d0}}, [%room+8];"
    ),
}


def faults() -> dict[str, Form]:
    """Return the kernels that must not come to their end, by name."""
    bodies = {f"{name} bytes": body for name, body in _MISALIGNED.items()}
    for name, arrive in _ARRIVALS.items():
        for lanes, count in ((2, 1), (32, 1), (3, 2)):
            bodies[f"{lanes} lanes {name}, count {count}"] = (
                _BARRIER.replace("{count}", str(count))
                .replace("{lanes}", str(lanes))
                .replace("{arrive}", arrive)
            )
    return {
        name: Form(name, Shape(body, ("b32",), (32,)), "faults")
        for name, body in bodies.items()
    }
