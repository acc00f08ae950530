"""Part 1. pipelines: stages, bytes, arrival counts, phases, the CLC answer."""

from __future__ import annotations

from fp4ref.gemm.partition import multicast_masks
from fp4ref.gemm.pipeline import PipelineState
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.accumulator_values import CARVEOUT_NBYTES
from fp4ref.hardware import clc
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.lessons.record import compiled, lines
from fp4ref.lessons.truths.runs import (
    EXAMPLE,
    arrivals,
    events,
    instructions,
    opcode,
    shown,
    trace,
)

_CTA, _CLUSTER, _CTAID = (2, 1), (4, 4), (5, 3, 2)
_ADVANCES, _RING_STAGES = 19, 20


def warps() -> int:
    """Warps of the CTA."""
    return len({e.agent for e in trace() if e.agent.startswith("warp")})


def _stages_beside(epilogue: int) -> int:
    """Mainloop stages by CUTLASS 4.2.0's budget, beside an epilogue of so many bytes.

    Source: ``sm100_blockscaled_umma_builder.inl``. From 4.2.2 on the budget has 128
    bytes for a stage's barriers, not the bytes of their type.
    """
    barriers = int(compiled("sm100_72b", "mainloop_barrier_nbytes"))
    stage = plan(EXAMPLE).stage_tx_bytes + barriers
    return (SMEM_NBYTES - CARVEOUT_NBYTES - epilogue) // stage


def stages_72b() -> int:
    """Mainloop stages beside example 72b's epilogue."""
    return _stages_beside(int(compiled("sm100_72b", "epilogue_nbytes")))


def stages_without_epilogue() -> int:
    """Mainloop stages if the epilogue took no shared memory."""
    return _stages_beside(0)


def stage_sfa_nbytes() -> int:
    """Bytes of A's scales in a stage."""
    return plan(EXAMPLE).sfa_nbytes


def transaction_nbytes() -> int:
    """Bytes that a full barrier of the mainloop expects."""
    return int(shown("1.2")["transaction_bytes"])


def _init_count(label: str) -> int:
    (found,) = (
        e for e in events("mbarrier.init") if label in (c.label for c in e.barrier)
    )
    return int(found.operands["count"])


def empty_count() -> int:
    """Arrival count of a mainloop stage's empty barrier."""
    return _init_count("mainloop.empty[0]")


def counts_of_init() -> int:
    """Arrival counts that ``mbarrier.init`` takes: its operands but the address."""
    operands = instructions()[opcode("mbarrier.init")]
    return len(operands.split(",")) - 1


def first_acquire_waits() -> bool:
    """Whether the producer's first acquire finds its parity not yet complete."""
    return not events("mbarrier.test_wait", frame="5.3")[0].operands["done"]


def ctas_of_a_release() -> int:
    """CTAs that a release of CTA (2, 1) reaches in a 4 x 4 cluster."""
    mask_a, mask_b = multicast_masks(*_CTA, *_CLUSTER)
    return (mask_a | mask_b).bit_count()


def arrival_on_full() -> str:
    """Instruction that arrives on a full barrier of the mainloop."""
    (event,) = arrivals("mainloop.full[0]")
    return event.operation


def umma_arrive() -> str:
    """PTX of CUTLASS's ``umma_arrive``."""
    return opcode("tcgen05.commit")


def arrivals_of_a_release() -> int:
    """Arrivals that give one mainloop stage back."""
    return len(arrivals("mainloop.empty[0]"))


def producer_start_phase() -> int:
    """Phase of the mainloop's producer before its first stage."""
    _, phase, _ = lines("producer_start_state")
    return int(phase)


def after_nineteen_advances() -> list[int]:
    """Index, phase and count of a 20-stage ring, 19 advances after count 1."""
    state = PipelineState(index=1, phase=0, count=1)
    for _ in range(_ADVANCES):
        state.advance(_RING_STAGES)
    return [state.index, state.phase, state.count]


def clc_words() -> list[int]:
    """The four words of an answer that hands over CTA (5, 3, 2)."""
    return [int(word) for word in clc.encode_response(_CTAID).view("<u4")]
