"""outside_texts: small texts on which ptxas and the machine have to agree.

Each is a kernel that ptxas refuses, and its twin that ptxas takes. The machine, which
reads the same words, has to refuse the first when it comes to execute it, and to run
the second.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ptx"))

from assembler import complaint, ptxas  # noqa: E402

from fp4ref.errors import HardwareFault  # noqa: E402
from fp4ref.hardware.instr_descriptor import InstrDescriptor  # noqa: E402
from fp4ref.hardware.machine import Machine  # noqa: E402
from fp4ref.ptx import Program, launch, parse  # noqa: E402

KERNEL = """\
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k()
{{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
.reg .pred %p<4>;
.shared .align 128 .b8 s[1024];
{body}
ret;
}}
"""
_ALLOC = """\
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [s+{at}], {columns};
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared.b32 %r1, [s+{at}];
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r1, {columns};"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A text that ptxas refuses and its twin; CTAs of the cluster that run it."""

    wrong: str
    right: str
    ctas: int = 1


_ONE, _TWO = (_ALLOC.format(group=g, at=8 * g, columns=64) for g in (1, 2))
_FIRST = "mov.u32 %r7, %tid.x;\nsetp.eq.u32 %p1, %r7, 0;\n@%p1"
PAIRS = {
    "columns of an alloc": Pair(_ALLOC.format(group=1, at=8, columns=48), _ONE),
    "both CTA groups": Pair(f"{_ONE}\n{_TWO}", f"{_TWO}\n{_TWO}", 2),
    "count of an mbarrier": Pair(
        *(f"{_FIRST} mbarrier.init.shared::cta.b64 [s], {n};" for n in (0, 1))
    ),
    "threads of a barrier": Pair("bar.sync 1, 33;", "bar.sync 1, 32;"),
    "number of a barrier": Pair("bar.sync 16, 32;", "bar.sync 15, 32;"),
}


@cache
def refused(text: str) -> bool:
    """Whether ptxas refuses a kernel's body."""
    with tempfile.TemporaryDirectory() as folder:
        return bool(complaint(KERNEL.format(body=text), Path(folder)))


def runs(text: str, ctas: int) -> bool:
    """Whether the machine runs it to its end."""
    program = Program.of(parse(KERNEL.format(body=text)), "k")
    shape = (ctas, 1, 1)
    try:
        launch(Machine(ctas), program, shape, (32, 1, 1), b"", cluster=shape)
    except HardwareFault:
        return False
    return True


def disagreements(name: str) -> list[str]:
    """Where ptxas and the machine differ on a pair of texts."""
    pair, found = PAIRS[name], []
    for text in (pair.wrong, pair.right):
        if runs(text, pair.ctas) == refused(text):
            said = "refuses" if refused(text) else "takes"
            found.append(
                f"ptxas {said} {text.splitlines()[-1]!r}, the machine does not"
            )
    return found


# -- modifiers that go together ----------------------------------------------------

_MMA = (
    "tcgen05.mma.cta_group::1.kind::{}.block_scale{} "
    "[%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;"
)
VECTORS = {
    "": "",
    "1X": ".scale_vec::1X",
    "2X": ".scale_vec::2X",
    "4X": ".scale_vec::4X",
    "block16": ".block16",
    "block32": ".block32",
}


def modifiers() -> list[str]:
    """Compare which kind takes which ``scale_vec``."""
    found = []
    for kind, vector in product(("mxf4", "mxf4nvf4", "mxf8f6f4"), VECTORS):
        text = _MMA.format(kind, VECTORS[vector])
        if _takes(kind, vector) == refused(text):
            said = "refuses" if refused(text) else "takes"
            found.append(f"ptxas {said} kind::{kind} with {vector or 'no scale_vec'}")
    return found


def _takes(kind: str, vector: str) -> bool:
    from fp4ref.hardware import mma_mxf8f6f4, tcgen05
    from fp4ref.hardware.sm import Warp
    from fp4ref.numerics import ScaleFormat

    class Somebody:
        who = "a warp"

    warp: Warp = Somebody()  # type: ignore[assignment]
    descriptor = InstrDescriptor(128, 64, ScaleFormat.UE8M0)
    try:
        if kind == "mxf8f6f4":
            mma_mxf8f6f4._check_scale_vector(warp, vector)
        else:
            tcgen05._check_scales(warp, descriptor, kind, vector)
    except HardwareFault:
        return False
    return True


# -- what ptxas makes a debugging build look for -------------------------------------

_GUARDED = """\
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+8], 64;
bar.sync 0;
ld.shared.b32 %r1, [s+8];
{before}
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {columns};
{after}"""
_GIVES_UP = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_AGAIN = """\
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+16], 32;
ld.shared.b32 %r2, [s+16];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;"""
_LOADS = """\
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1];
tcgen05.wait::ld.sync.aligned;"""
GUARDRAILS = {
    "phase_invalid_during_alloc": Pair(
        _GUARDED.format(before=_GIVES_UP, columns=64, after=_AGAIN),
        _GUARDED.format(before=_AGAIN, columns=64, after=_GIVES_UP),
    ),
    "unallocated_columns_being_dealloced": Pair(
        *(_GUARDED.format(before=_GIVES_UP, columns=n, after="") for n in (128, 64))
    ),
    "col_being_dealloced_not_returned_by_alloc": Pair(
        _GUARDED.format(before="add.u32 %r1, %r1, 32;", columns=32, after=""),
        _GUARDED.format(before="", columns=64, after=""),
    ),
    "unallocated_columns_access": Pair(
        _GUARDED.format(before="", columns=64, after=_LOADS),
        _GUARDED.format(before="", columns=64, after=""),
    ),
}
"""By the name of a trap that ``ptxas -g-tmem-access-check`` adds: a text that it stops,
and its twin."""


@cache
def traps(text: str) -> frozenset[str]:
    """Return the traps that ptxas adds to a kernel's body for a checked build."""
    prefix = b"__cuda_sm10x_tcgen05_guardrail_trap_"
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        path.write_text(KERNEL.format(body=text), encoding="utf-8")
        flags = ["-arch=sm_100a", "-g-tmem-access-check", path, "-o", made]
        command = [str(ptxas()), *map(str, flags)]
        subprocess.run(command, check=True, capture_output=True)
        found = re.findall(prefix + rb"(\w+)", made.read_bytes())
    return frozenset(each.decode() for each in found)


def guarded(name: str) -> list[str]:
    """Where a trap of a checked build and the machine differ."""
    pair, found = GUARDRAILS[name], []
    for text, stopped in ((pair.wrong, True), (pair.right, False)):
        if stopped and name not in traps(text):
            found.append(f"ptxas adds no trap {name}")
        if runs(text, pair.ctas) is stopped:
            found.append(f"{'runs' if stopped else 'stops'}: {text.splitlines()[-1]!r}")
    return found
