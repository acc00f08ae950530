"""Document 002. structured_kernel: barriers, groups of k-tiles, masks, shapes."""

from __future__ import annotations

from fp4ref.errors import DescriptorFault
from fp4ref.gemm.partition import multicast_masks
from fp4ref.gemm.plan import plan
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.lessons.truths.runs import EXAMPLE, threads_of
from fp4ref.numerics import ElementFormat

_BASELINE, _LATER = 1746, 1713
"""TFLOPS that the document gives: its baseline, and version 2.4."""
_K_TILES, _K_GROUP = 7, 2
_CLUSTER_M, _CTA_GROUP = 2, 2
_PRODUCERS, _CONSUMERS, _WARP_GROUP = 1, 1, 128
_N = 24
_COMPONENTS = (
    *("TMAStoreWriter", "StMatrixCoords", "TMEMFragment", "TMEMReader"),
    *("AccumBarrier", "StMatrixConfig", "StMatrixWriter", "EpilogueConfig"),
    *("FragmentCoords", "EpilogueApplier", "OutputStageWriter"),
    "store_fragment_to_smem",
)
"""The list under "13 components"."""
_EXPLICIT = (
    *("epilogue_dtype", "BM", "BN", "MMA_M", "MMA_N", "cta_group"),
    *("num_output_warps", "c_swizzle", "transpose_c", "is_lower_frag_required"),
    *("num_stages", "simd_size", "stage", "rep_frag_size", "compute_lambda_fn"),
)
"""The parameters of the call shown under "16 explicit parameters"."""
_LOSS, _GATES = 3, (1, 5, 1)
"""A loss in per cent, and the gates of sections 5, 8 and 13."""
_BASELINES = (1811, 1746, 1750)
"""TFLOPS of one kernel before the work, in sections 5, 8 and D.6."""


def clc_barrier_nbytes() -> int:
    """Bytes of the CLC and throttle barriers of two stages, full and empty."""
    smem = plan(EXAMPLE).smem
    clc = smem.clc_empty - smem.clc_full
    throttle = smem.throttle_empty - smem.throttle_full
    return 2 * clc + 2 * throttle


def rounds_of_groups() -> int:
    """Rounds that load seven k-tiles, two in each."""
    return -(-_K_TILES // _K_GROUP)


def pair_needs_multicast_of_b() -> bool:
    """Whether a load of B goes to several CTAs of a 2 x 1 cluster with one pair."""
    _, mask_b = multicast_masks(0, 0, _CLUSTER_M // _CTA_GROUP, 1)
    return mask_b.bit_count() > 1


def fewest_threads() -> int:
    """Threads of one producer and one consumer warp group."""
    return (_PRODUCERS + _CONSUMERS) * _WARP_GROUP


def takes_n_of_24() -> bool:
    """Whether ``kind::f16`` of a CTA pair with M = 128 takes N = 24."""
    bf16 = ElementFormat.BF16
    word = UnscaledInstrDescriptor("f16", 128, _N, bf16, bf16).encode()
    try:
        UnscaledInstrDescriptor.decode(word, "f16", 2)
    except DescriptorFault:
        return False
    return True


def within_one_percent() -> bool:
    """Whether the later figure is at most 1 % below the baseline."""
    return _LATER >= 0.99 * _BASELINE


def try_cancel_threads() -> int:
    """Threads that execute one ``clusterlaunchcontrol.try_cancel``."""
    return threads_of("clusterlaunchcontrol.try_cancel")


def components() -> int:
    """Components in the document's own list."""
    return len(_COMPONENTS)


def explicit_parameters() -> int:
    """Parameters of the call that the document shows."""
    return len(_EXPLICIT)


def gates_agree() -> bool:
    """Whether a loss of 3 % passes at all of the document's gates, or at none."""
    return len({gate >= _LOSS for gate in _GATES}) == 1


def spread_of_the_baselines() -> float:
    """How far the highest baseline is above the lowest: per cent, to one decimal."""
    return round(100 * (max(_BASELINES) / min(_BASELINES) - 1), 1)
