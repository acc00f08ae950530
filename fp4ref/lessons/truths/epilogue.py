"""Part 7. epilogue: warps, barriers, E2M1, the stores of D and of its scales."""

from __future__ import annotations

import numpy as np

from fp4ref import oracle
from fp4ref.gemm.config import GemmConfig
from fp4ref.lessons.record import lines
from fp4ref.lessons.truths.runs import derived, events, issued, opcode, trace
from fp4ref.numerics import decode_e2m1, encode_ue8m0
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.trace import Event

_CODES = np.arange(16, dtype=np.uint8)
_ONE, _SCALE_1 = 0b0010, 0x38
_WITH_BIAS, _WITH_BETA_0 = (2.0**24, 1, 1.0, -(2.0**24), 1.0), (-1.0, 0, 0.0, 1.0)
"""alpha, acc, beta, C and bias of two elements."""
_SCALE = 17.64


def warps() -> list[int]:
    """Indices of the epilogue warps."""
    return sorted({int(e.agent.removeprefix("warp")) for e in issued("tcgen05.ld")})


def allocation_threads() -> int:
    """Threads that take part in the barrier after the allocation."""
    (threads,) = {int(e.operands["threads"]) for e in events("bar.sync", frame="7.1")}
    return threads


def allocation_wait() -> str:
    """Instruction by which the epilogue waits for the allocation."""
    (name,) = {e.operation for e in events("bar.", frame="7.1")}
    return name


def load_opcode() -> str:
    """PTX that reads the accumulator."""
    return opcode("tcgen05.ld")


def _fused(
    alpha: float, acc: int, beta: float, c: float, bias: float | None = None
) -> float:
    """One element of D = alpha * acc + beta * C + bias in float32; acc is 0 or 1."""
    a, b = np.zeros((2, 1, 32), np.uint8)
    a[0, 0], b[0, 0] = _ONE, acc * _ONE
    scales = np.full((1, 2), _SCALE_1, np.uint8)
    expected = oracle.expected(
        BlockScaled(a, scales, format="nvfp4"),
        BlockScaled(b, scales, format="nvfp4"),
        np.array([[c]], np.float32),
        None if bias is None else np.array([bias], np.float32),
        GemmConfig.nvfp4(c_format="f32", beta=beta, bias=bias is not None),
        alpha,
    )
    return float(expected.d[0, 0])


def fused_with_bias() -> float:
    """2^24 * 1 + 1 * -2^24 + 1, in the fusion's order."""
    return _fused(*_WITH_BIAS)


def fused_with_beta_0() -> float:
    """-1 * 0 with beta = 0."""
    return _fused(*_WITH_BETA_0)


def largest_e2m1() -> float:
    """Largest E2M1 value."""
    return float(decode_e2m1(_CODES).max())


def code_0110() -> float:
    """Value of E2M1 code 0b0110."""
    return float(decode_e2m1(_CODES)[0b0110])


def has_special_values() -> bool:
    """Whether an E2M1 code is an infinity or a NaN."""
    return not np.isfinite(decode_e2m1(_CODES)).all()


def e2m1_bits() -> list[int]:
    """Sign, exponent and mantissa bits of E2M1, from the spacing of its values."""
    values = decode_e2m1(_CODES)
    octave = int(((values >= 2) & (values < 4)).sum())
    mantissa = octave.bit_length() - 1
    sign = int(np.signbit(values).sum() == len(_CODES) // 2)
    return [sign, 4 - sign - mantissa, mantissa]


def _stores() -> list[Event]:
    return [e for e in issued("cp.async.bulk.tensor") if e.operation.endswith("store")]


def store_box() -> list[int]:
    """Columns and rows of the box of one store of D."""
    return list(_stores()[0].operands["box"][:2])


def stores_of_a_tile() -> int:
    """Stores of D for a tile."""
    return len(_stores())


def store_opcode() -> str:
    """PTX of the store of D."""
    return opcode("cp.async.bulk.tensor.3d.global")


def scale_store_opcode() -> str:
    """PTX of the store of D's scales."""
    return opcode("st.global")


def release_arrivals() -> int:
    """Arrivals that give the accumulator back."""
    return int(derived("7.12")["arrivals"])


def released_after_all_stores() -> bool:
    """Whether the accumulator is given back after the last store of D is issued."""
    releases = events("mbarrier.arrive", frame="7.10")
    return min(e.step for e in releases) > max(e.step for e in _stores())


def tail_operation() -> str:
    """Instruction by which this kernel's store tail waits."""
    (event,) = trace().select(frame="7.11")
    return event.operation


def landed_before_the_tail_ends() -> bool:
    """Whether all of D is in global memory when the tail ends, landing late."""
    late = trace("late")
    (tail,) = late.select(frame="7.11")
    landed = late.select(agent="tma", operation="cp.async.bulk.tensor.3d.store")
    return max(e.step for e in landed) < tail.step


def epilogue_warps() -> int:
    """Warps that finish a tile."""
    return int(derived("7.12")["warps"])


def stored_by_tma() -> int:
    """Bytes that leave by TMA."""
    return int(derived("7.12")["d_bytes"])


def scale_code() -> int:
    """Byte of the document's scale in the type of 72b's SFD, which rounds up."""
    return int(encode_ue8m0(np.float32(_SCALE)))


def store_coords() -> list[int]:
    """Coordinates of the first store of D."""
    return list(_stores()[0].operands["coords"])


def tail_waits_on() -> list[str]:
    """Pipelines whose ``producer_tail`` CUTLASS's store tail calls."""
    return lines("store_tail_waits_on")
