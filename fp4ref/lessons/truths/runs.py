"""runs: the default GEMM's traces, the kernel's packaged PTX, and one bare warp."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from fp4ref import frames
from fp4ref.cuda_kernel.build import packaged
from fp4ref.errors import LaneQuarterViolation
from fp4ref.execution.runs import run
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Cluster, Cta, Warp
from fp4ref.tensors.block_scaled import quantize
from fp4ref.trace import Event, Trace

EXAMPLE = GemmConfig.example_72b()
SIZE = 2048
TILE = (5, 0)

_INSTRUCTION = re.compile(r"(?m)^\s*(?:@!?[%\w]+\s+)?([a-z][\w.:]*)\s*([^;]*);")


@cache
def trace(schedule: str = "eager") -> Trace:
    """Trace of tile (5, 0) of the default GEMM: example 72b, 2048 x 2048 x 2048."""
    rng = np.random.default_rng(72)
    a, b = (quantize(rng.standard_normal((SIZE, SIZE), np.float32)) for _ in "ab")
    found = run(a, b, config=EXAMPLE, schedule=schedule, tiles=[TILE], sms=1).trace
    assert found is not None
    return found


def events(operation: str, *, frame: str | None = None, kind: str = "") -> list[Event]:
    """Events of the default GEMM by operation, frame and kind."""
    found = trace().select(operation=operation, frame=frame)
    return [e for e in found if not kind or e.kind == kind]


def issued(operation: str) -> list[Event]:
    """What a warp of the default GEMM issued."""
    return events(operation, kind="issue")


def loads(tensor: str) -> list[Event]:
    """Tensor loads of one operand, in order of their k-tiles."""
    every = issued("cp.async.bulk.tensor")
    return [e for e in every if e.operands["tensor"] == tensor and "mbar" in e.operands]


def arrivals(label: str) -> list[Event]:
    """Events that lowered the pending count of one mbarrier in its first phase."""
    found = []
    for event in trace():
        for change in event.barrier:
            if change.label == label and change.before[1] > 0:
                (phase, pending, _), after = change.before, change.after
                if phase == 0 and (after[1] < pending or after[0] != phase):
                    found.append(event)
    return found


@cache
def instructions() -> dict[str, str]:
    """Opcodes of the packaged kernel of example 72b, with the first one's operands."""
    found: dict[str, str] = {}
    for match in _INSTRUCTION.finditer(packaged("example_72b.ptx")):
        found.setdefault(match[1], match[2])
    return found


def opcode(prefix: str) -> str:
    """The one opcode of the packaged kernel that starts so."""
    (found,) = (name for name in instructions() if name.startswith(prefix))
    return found


def threads_of(prefix: str) -> int:
    """Threads that execute an instruction: a warp if it is ``.sync.aligned``."""
    return WARP_THREADS if ".sync.aligned" in opcode(prefix) else 1


def shown(frame: str) -> dict[str, Any]:
    """Values of a constructed frame of the default GEMM."""
    return frames.show(frame, EXAMPLE, SIZE, SIZE, SIZE)


def derived(frame: str) -> dict[str, Any]:
    """Values of a derived frame of the default GEMM."""
    return frames.derive(frame, trace())


@cache
def quarter_of(index: int) -> tuple[int, int]:
    """First and last TMEM lane that a warp reaches: the one quarter without a fault."""
    machine = Machine(1)
    cluster = Cluster((1, 1, 1))
    cta = Cta(machine, machine.sms[0], (0, 0, 0), (1, 1, 1), cluster)
    cluster.ctas.append(cta)
    warp = Warp(cta, index)
    for _ in tmem.alloc(warp, cta.smem_base, tmem.SLOT_COLUMNS):
        raise AssertionError("an empty TMEM does not make a warp wait")
    word = np.zeros((WARP_THREADS, 1), np.uint32)
    for first in range(0, tmem.LANES, WARP_THREADS):
        try:
            tmem.st(warp, tmem.address(first, 0), word)
        except LaneQuarterViolation:
            continue
        return first, first + WARP_THREADS - 1
    raise AssertionError("a warp reaches one quarter")
