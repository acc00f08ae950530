"""Document 002. structured_kernel: barriers, groups of k-tiles, masks, shapes."""

from __future__ import annotations

from fp4ref.errors import DescriptorFault
from fp4ref.gemm.partition import multicast_masks
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.lessons.truths.runs import EXAMPLE
from fp4ref.numerics import ElementFormat

_BEFORE, _AFTER, _LATER = 1750, 1822, 1713
"""TFLOPS that the document gives for one problem: D.6 twice, and version 2.4."""


def clc_barrier_nbytes() -> int:
    """Bytes of the CLC and throttle barriers of two stages, full and empty."""
    smem = EXAMPLE.smem
    clc = smem.clc_empty - smem.clc_full
    throttle = smem.throttle_empty - smem.throttle_full
    return 2 * clc + 2 * throttle


def rounds_of_groups() -> int:
    """Rounds that load seven k-tiles, two in each."""
    return -(-7 // 2)


def ctas_that_get_b() -> int:
    """CTAs of a 2 x 1 cluster with one pair to which a load of B goes."""
    cluster_m, cta_group = 2, 2
    _, mask_b = multicast_masks(0, 0, cluster_m // cta_group, 1)
    return mask_b.bit_count()


def fewest_threads() -> int:
    """Threads of one producer and one consumer warp group."""
    return 2 * 128


def takes_n_of_24() -> bool:
    """Whether ``kind::f16`` with M = 128 and one CTA takes N = 24."""
    bf16 = ElementFormat.BF16
    word = UnscaledInstrDescriptor("f16", 128, 24, bf16, bf16).encode()
    try:
        UnscaledInstrDescriptor.decode(word, "f16")
    except DescriptorFault:
        return False
    return True


def gate_of_one_percent() -> bool:
    """Whether the two figures that count as equal differ by 1 % at most."""
    return abs(_AFTER - _BEFORE) <= 0.01 * _BEFORE


def drop_wants_a_look() -> bool:
    """Whether the later figure is more than 5 % below the earlier one."""
    return _AFTER - _LATER > 0.05 * _AFTER
