"""Document 002. structured_kernel: barriers, groups of k-tiles, masks, shapes."""

from __future__ import annotations

from fp4ref.errors import DescriptorFault
from fp4ref.gemm.partition import multicast_masks
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.lessons.truths.runs import EXAMPLE
from fp4ref.numerics import ElementFormat

_BASELINE, _LATER = 1746, 1713
"""TFLOPS that the document gives: its baseline, and version 2.4."""


def clc_barrier_nbytes() -> int:
    """Bytes of the CLC and throttle barriers of two stages, full and empty."""
    smem = EXAMPLE.smem
    clc = smem.clc_empty - smem.clc_full
    throttle = smem.throttle_empty - smem.throttle_full
    return 2 * clc + 2 * throttle


def rounds_of_groups() -> int:
    """Rounds that load seven k-tiles, two in each."""
    return -(-7 // 2)


def pair_needs_multicast_of_b() -> bool:
    """Whether a load of B goes to several CTAs of a 2 x 1 cluster with one pair."""
    cluster_m, cta_group = 2, 2
    _, mask_b = multicast_masks(0, 0, cluster_m // cta_group, 1)
    return mask_b.bit_count() > 1


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


def within_one_percent() -> bool:
    """Whether the later figure is at most 1 % below the baseline."""
    return _LATER >= 0.99 * _BASELINE
