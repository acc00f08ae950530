"""fidelity: on what each modelled behaviour rests, and which test checks it.

A row says what the machine does, the class of evidence for it, its source, and a test
that fails if the model does something else. The test proves that the model follows the
rule, never that silicon does: that is what the evidence class is for. No row about the
MMA was measured here on a Blackwell card.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from fp4ref.hardware.advisory import Advisory


class Evidence(Enum):
    """Why a rule is believed, strongest first."""

    MEASURED = "measured on silicon"
    OUTSIDE_KERNEL = "killed by an outside kernel"
    DOCUMENTED = "documented"
    PUBLISHED_MODEL = "published model"
    SHIPPED_PRACTICE = "read from compiled or shipped code"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Rule:
    """One modelled behaviour.

    Attributes
    ----------
    operation
        PTX name, or the unit.
    source
        Document, program or measurement; a measurement names the card.
    checked_by
        ``path::test`` from the repository root.
    advisory
        What ``ordering="shipped"`` counts when a kernel relies on this rule; empty for
        rules of the PTX text.
    """

    operation: str
    rule: str
    evidence: Evidence
    source: str
    checked_by: str
    advisory: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self) | {"evidence": self.evidence.value}


MEASURED, DOCUMENTED = Evidence.MEASURED, Evidence.DOCUMENTED
PUBLISHED_MODEL = Evidence.PUBLISHED_MODEL
SHIPPED_PRACTICE, ASSUMED = Evidence.SHIPPED_PRACTICE, Evidence.ASSUMED
OUTSIDE_KERNEL = Evidence.OUTSIDE_KERNEL

_FORMATS = "tests/numerics/test_formats.py::"
_QUANTIZE = "tests/numerics/test_quantize.py::"
_ARITHMETIC = "tests/numerics/test_arithmetic.py::"
_DOT = "tests/numerics/test_dot.py::"
_UNSCALED = "tests/numerics/test_dot_unscaled.py::"
_SCALES = "tests/layout/test_scale_factors.py::"
_MBARRIER = "tests/hardware/test_mbarrier.py::"
_NAMED = "tests/hardware/test_named_barrier.py::"
_CLUSTER = "tests/hardware/test_cluster.py::"
_SMEM = "tests/hardware/test_smem.py::"
_MAP = "tests/hardware/test_tensor_map.py::"
_TMA = "tests/hardware/test_tma.py::"
_TMEM = "tests/hardware/test_tmem.py::"
_TCGEN05 = "tests/hardware/test_tcgen05.py::"
_MMA_UNSCALED = "tests/hardware/test_mma_unscaled.py::"
_CP_ASYNC = "tests/hardware/test_cp_async.py::"
_CLC = "tests/hardware/test_clc.py::"
_MACHINE = "tests/hardware/test_machine.py::"
_WITNESS = (
    "tests/cutlass/test_execute.py::"
    "test_one_wrong_rule_of_the_machine_makes_the_example_fail"
)
"""CUTLASS 72b, unmodified, fails its own check if the rule is changed."""

_CARDS = "H200 and H100, driver 580.159.04, 2026-11-27: "
_REPLAY = "tests/device/test_replay.py::test_every_case_is_as_recorded"
_MAPS = (
    "tests/device/test_replay.py::"
    "test_tensor_maps_are_accepted_refused_and_encoded_as_by_the_driver"
)

_MMASIM = "MMA-Sim model (mmasim 2.1.1), not measured here on a Blackwell card"
_CUDA_FP4 = "cuda_fp4.hpp, host code; not measured on sm_100"
_CUTLASS_SFD = "CUTLASS sm100_visitor_store_tma_warpspecialized.hpp"
_LOWERING = "lowering by ptxas 13.0 for sm_100a"
_ORDER = "PTX, tcgen05 memory consistency model, pipelined instructions"


_Row = tuple[str, str, Evidence, str, str] | tuple[str, str, Evidence, str, str, str]


def _rules(*rows: _Row) -> tuple[Rule, ...]:
    return tuple(Rule(*row) for row in rows)


NUMERICS = _rules(
    (
        "cvt.e2m1x2",
        "round to nearest even, saturate to 6, NaN gives +6, -0 is kept",
        DOCUMENTED,
        f"PTX, cvt; {_CUDA_FP4}",
        _FORMATS + "test_e2m1_ties_go_to_the_even_code",
    ),
    (
        "cvt.e2m1x2",
        "any NaN becomes code 7",
        DOCUMENTED,
        f"PTX, cvt; {_CUDA_FP4}",
        _FORMATS + "test_any_nan_becomes_plus_six_in_e2m1_and_0x7f_in_ue4m3",
    ),
    (
        "cvt.e2m1x2",
        "the first element of a pair is in the low nibble",
        OUTSIDE_KERNEL,
        f"PTX, cvt packing; {_CUDA_FP4}",
        _WITNESS,
    ),
    (
        "cvt.e4m3x2",
        "round to nearest even, saturate to 448",
        MEASURED,
        _CARDS + "all 2^32 inputs, probe exhaustive",
        _REPLAY,
    ),
    (
        "cvt.ue8m0x2",
        "round up or down to a power of two, saturating",
        DOCUMENTED,
        "PTX, cvt; cuda_fp8.hpp, host code",
        _FORMATS + "test_ue8m0_saturates_at_both_ends",
    ),
    (
        "UE4M3",
        "E4M3 with bit 7 ignored; largest 448, 0x7f is NaN",
        PUBLISHED_MODEL,
        f"{_MMASIM}; nvmath documentation",
        _FORMATS + "test_the_sign_bit_of_a_ue4m3_scale_is_ignored",
    ),
    (
        "UE8M0",
        "code 0 is 2^-127, 0xff is NaN",
        DOCUMENTED,
        "OCP MX as restated by PTX; ml_dtypes",
        _FORMATS + "test_ue8m0_code_zero_is_a_subnormal_power_of_two_and_not_zero",
    ),
    (
        "quantize",
        "scale = E4M3(amax * (norm / 6)), code = E2M1(x * norm / scale)",
        SHIPPED_PRACTICE,
        _CUTLASS_SFD,
        _QUANTIZE + "test_one_sixth_is_multiplied_into_the_norm_before_the_maximum",
    ),
    (
        "rcp.approx.ftz.f32",
        "on 6 and on every UE4M3 significand equal to true division",
        MEASURED,
        _CARDS + "all 2^23 significands, probe exhaustive",
        _REPLAY,
    ),
    (
        "quantize",
        "one NaN makes the scale NaN and every code 7",
        SHIPPED_PRACTICE,
        f"max.NaN in {_CUTLASS_SFD}",
        _QUANTIZE + "test_one_nan_makes_the_scale_nan_and_every_code_seven",
    ),
    (
        "quantize",
        "UE8M0 scales round up",
        SHIPPED_PRACTICE,
        _CUTLASS_SFD,
        _QUANTIZE + "test_ue8m0_scales_round_up",
    ),
    (
        "ex2.approx.ftz.f32, tanh.approx.f32",
        "the card's tables, for all inputs",
        MEASURED,
        _CARDS + "all 2^32 inputs, probe exhaustive; tanh on the H200 only",
        "tests/device/test_replay.py::test_samples_of_an_approximation",
    ),
    (
        "fma.rn.f32",
        "the exact result, rounded once",
        DOCUMENTED,
        "PTX, fma; IEEE 754",
        _ARITHMETIC + "test_fma_is_the_exact_result_rounded_once",
    ),
    (
        "float32",
        "every NaN result is 0x7fffffff",
        DOCUMENTED,
        "PTX, floating-point instructions: canonical NaN",
        _ARITHMETIC + "test_every_nan_is_the_canonical_one",
    ),
    (
        "tcgen05.mma arithmetic",
        "groups of 16 exact products, one sum of K = 64 with C, 35 fraction bits",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_every_output_equals_mmasim",
    ),
    (
        "tcgen05.mma arithmetic",
        "the result is truncated, not rounded to nearest",
        PUBLISHED_MODEL,
        f"{_MMASIM}; the same family measured on an H200 (f16) and a B200 (f16, bf16, "
        "tf32, public vectors)",
        _DOT + "test_the_result_is_truncated_and_not_rounded_to_nearest",
    ),
    (
        "tcgen05.mma arithmetic",
        "each term is truncated at its alignment",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_alignment_loses_small_groups_beside_large_ones_that_cancel",
    ),
    (
        "tcgen05.mma arithmetic",
        "a zero group takes no part in the largest exponent",
        PUBLISHED_MODEL,
        f"{_MMASIM}; older text differs",
        _DOT + "test_a_large_zero_group_does_not_push_small_terms_out",
    ),
    (
        "tcgen05.mma arithmetic",
        "K is a chain of K = 64 instructions, each truncating once",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_each_instruction_truncates_so_a_chain_is_not_one_long_sum",
    ),
    (
        "tcgen05.mma arithmetic",
        "a NaN scale gives NaN, also of a zero block",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_a_nan_scale_makes_nan_even_of_a_zero_block",
    ),
    (
        "tcgen05.mma arithmetic",
        "an infinite C passes; overflow gives infinity",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_an_infinite_c_passes",
    ),
    (
        "tcgen05.mma arithmetic",
        "D is never -0",
        PUBLISHED_MODEL,
        f"{_MMASIM}; older text differs",
        _DOT + "test_the_result_is_never_minus_zero",
    ),
    (
        "tcgen05.mma arithmetic",
        "subnormals are kept",
        PUBLISHED_MODEL,
        _MMASIM,
        _DOT + "test_subnormals_are_kept_in_c_in_d_and_in_the_scales",
    ),
    (
        "tcgen05.mma arithmetic",
        "without input D the sum starts at +0",
        ASSUMED,
        "PTX says D = A * B; its sign of zero is not stated",
        _DOT + "test_the_default_c_is_plus_zero",
    ),
    (
        "tcgen05.mma arithmetic, kind::f16 and kind::f8f6f4",
        "products of 32 bytes along K and C in one sum, 25 fraction bits, truncated",
        PUBLISHED_MODEL,
        f"{_MMASIM}; the same family fits public B200 vectors (f16, bf16)",
        _UNSCALED + "test_every_output_equals_mmasim",
    ),
    (
        "tcgen05.mma arithmetic, kind::f16 and kind::f8f6f4",
        "a zero product takes no part in the largest exponent",
        PUBLISHED_MODEL,
        _MMASIM,
        _UNSCALED + "test_a_zero_product_does_not_push_small_terms_out",
    ),
    (
        "tcgen05.mma arithmetic, kind::f16 and kind::f8f6f4",
        "NaN from NaN, Inf times 0 and infinities of both signs; else Inf passes",
        PUBLISHED_MODEL,
        _MMASIM,
        _UNSCALED + "test_inf_and_nan",
    ),
)

LAYOUT = _rules(
    (
        "scale factors",
        "the 128x4 atom: byte (m % 32) * 16 + (m / 32) * 4 + k",
        DOCUMENTED,
        "CUTLASS sm100_blockscaled_layout.hpp; cuBLAS, 1D block scaling",
        _SCALES + "test_the_layouts_print_as_cutlass_prints_them",
    ),
    (
        "scale factors",
        "padding rows and columns are zero",
        DOCUMENTED,
        "cuBLAS, 1D block scaling",
        _SCALES + "test_every_padding_byte_is_zero",
    ),
    (
        "swizzle",
        "the 16-byte chunk index is XORed with row bits of the final address",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
)

MBARRIER = _rules(
    (
        "mbarrier",
        "a phase completes when pending arrivals and tx-count are both 0",
        MEASURED,
        _CARDS + "probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier",
        "the tx-count may be negative on the way",
        MEASURED,
        _CARDS + "probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier",
        "counts stay within 2^20 - 1",
        DOCUMENTED,
        "PTX, mbarrier: ranges",
        _MBARRIER + "test_tx_count_range",
    ),
    (
        "mbarrier.test_wait.parity",
        "true when the current phase has the other parity; a fresh barrier passes 1",
        MEASURED,
        _CARDS + "probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier.test_wait.parity",
        "may be false though the phase is complete",
        DOCUMENTED,
        "PTX, mbarrier.test_wait: no promise of when a phase is seen",
        _MBARRIER + "test_late_schedule_never_shows_a_phase_to_a_peek",
    ),
    (
        "mbarrier",
        "positions of phase, pending and expected counts in the word",
        MEASURED,
        _CARDS + "words after mbarrier.inval, probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier",
        "the tx-count is bits 21 to 41 of the word, negated; bit 42 is 0",
        MEASURED,
        _CARDS + "words after mbarrier.inval, probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier",
        "more arrivals than are pending is a fault",
        MEASURED,
        _CARDS + "both cards trap, probe mbarrier",
        _REPLAY,
    ),
    (
        "mbarrier.init",
        "undefined on a live barrier: a fault",
        DOCUMENTED,
        "PTX, mbarrier.init",
        _MBARRIER + "test_init_of_a_live_barrier",
    ),
    (
        "mbarrier",
        "only arrive, expect_tx and complete_tx reach another CTA",
        MEASURED,
        _CARDS + "remote arrivals, probe cluster",
        _REPLAY,
    ),
    (
        "mbarrier",
        "bytes left over at exit are a fault",
        ASSUMED,
        "silicon may say nothing; no right kernel leaves them",
        _MBARRIER + "test_bytes_left_over_at_exit",
    ),
    (
        "bar.sync",
        "an explicit count is a number of threads, exited ones not excepted",
        ASSUMED,
        "PTX, bar: it counts threads, and says nothing about exited ones",
        _NAMED + "test_with_a_count_exited_warps_are_missed",
    ),
    (
        "bar.sync",
        "without a count exited threads are not waited for",
        DOCUMENTED,
        "CUDA programming guide, __syncthreads from sm_70 on",
        _NAMED + "test_without_a_count_exited_warps_are_not_waited_for",
    ),
    (
        "barrier.cluster",
        "waits for the non-exited threads of the cluster",
        DOCUMENTED,
        "PTX, barrier.cluster",
        _CLUSTER + "test_cluster_barrier_does_not_wait_for_exited_warps",
    ),
    (
        "mapa",
        "the rank is in bits 24 and up of a shared::cluster address",
        MEASURED,
        _CARDS + "probe cluster",
        _REPLAY,
    ),
    (
        "multicast",
        "same offset of tile and mbarrier in every CTA of the mask",
        MEASURED,
        _CARDS + "probe cluster",
        _REPLAY,
    ),
)

SHARED_MEMORY = _rules(
    (
        "shared memory",
        "227 KB from shared address 0x400",
        SHIPPED_PRACTICE,
        f"{_LOWERING}; CUTLASS sm100_smem_capacity_bytes",
        _SMEM + "test_bounds_are_227_kilobytes_from_0x400",
    ),
    (
        "fence.proxy.async",
        "the writing thread fences before an async access; without it a fault",
        DOCUMENTED,
        "PTX, async proxy",
        _SMEM + "test_tma_reads_what_st_shared_wrote_only_after_a_fence",
    ),
    (
        "fence.proxy.async",
        "another warp's fence does not help",
        DOCUMENTED,
        "PTX, proxy fences order the executing thread's accesses",
        _SMEM + "test_the_fence_of_another_warp_does_not_help",
    ),
    (
        "fence.proxy.async",
        "ordering 'shipped': to an MMA without scales a CTA barrier is as good",
        SHIPPED_PRACTICE,
        "CUTLASS's CuTe tutorial 01: st.shared, bar.sync, MMA; its SASS has no fence",
        _MMA_UNSCALED + "test_shipped_ordering_takes_a_barrier_for_the_proxy_fence",
        Advisory.BARRIER_FOR_PROXY_FENCE.value,
    ),
    (
        "cp.async",
        "a generic write, ordered by nothing but what waits for it",
        DOCUMENTED,
        "PTX, cp.async; async proxy names only the bulk copies",
        _CP_ASYNC + "test_the_copy_is_a_generic_write",
    ),
    (
        "cp.async.mbarrier.arrive.noinc",
        "one arrival of each thread when its earlier cp.async are complete",
        DOCUMENTED,
        "PTX, cp.async.mbarrier.arrive; here for all lanes of a warp at once",
        _CP_ASYNC + "test_the_arrival_comes_after_the_copies",
    ),
    (
        "matrix descriptor",
        "fields, constant 0b001 and swizzle codes",
        OUTSIDE_KERNEL,
        "PTX, matrix descriptor; CUTLASS mma_sm100_desc.hpp",
        _WITNESS,
    ),
    (
        "matrix descriptor",
        "canonical K-major layouts; the XOR acts on the final address",
        DOCUMENTED,
        "PTX, canonical layouts; CUTLASS mma_sm100_desc.hpp",
        _SMEM + "test_offsets_of_swizzled_tiles",
    ),
    (
        "matrix descriptor",
        "core matrices of 8 rows x 16 bytes without swizzle",
        PUBLISHED_MODEL,
        "MMA-Sim's kernel tcgen05mma.h, which its authors ran on a B200",
        _SMEM + "test_offsets_of_core_matrices",
    ),
    (
        "matrix descriptor",
        "+2 for each K = 64 inside a 128-byte row",
        SHIPPED_PRACTICE,
        "SASS of the CUTLASS 128x128x256 kernel",
        _TCGEN05 + "test_every_swizzle_and_the_advance_along_k",
    ),
)

TMA = _rules(
    (
        "cuTensorMapEncodeTiled",
        "alignment, extents, strides and boxes that are refused",
        MEASURED,
        _CARDS + "8,899 argument sets; 4- and 6-bit types are refused on Hopper",
        _MAPS,
    ),
    (
        "CUtensorMap",
        "words of address, rank, type, swizzle, strides, extents and box",
        MEASURED,
        _CARDS + "3,921 maps, 128 bytes each; not for 4- and 6-bit types",
        _MAPS,
    ),
    (
        "CUtensorMap",
        "words of a UINT8 map with 128B swizzle",
        MEASURED,
        "H200, cuTensorMapEncodeTiled",
        _MAP + "test_golden_words_measured_on_an_h200",
    ),
    (
        "CUtensorMap",
        "U4_ALIGN8B is 13: dense nibbles, strides in bytes, box in elements",
        DOCUMENTED,
        "CUDA driver API; CUTLASS's maps",
        _MAP + "test_b24_fp4_counts_elements_and_strides_count_bytes",
    ),
    (
        "cp.async.bulk.tensor load",
        "the box, element by element, with its swizzle",
        MEASURED,
        _CARDS + "469 cases, probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "outside the tensor zeros, and the full box is credited",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "NaN fill writes 0x7ff7 in every 16 bits, whatever the float type",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor",
        "a box row starts on a multiple of 16 bytes of its tensor row",
        MEASURED,
        _CARDS + "both cards trap otherwise, probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor store",
        "no coordinate is negative",
        MEASURED,
        _CARDS + "both cards trap otherwise, probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "TF32 types round to nearest even; the FTZ types do not flush",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
    (
        "shared memory",
        "dynamic shared memory starts at shared address 0x400",
        MEASURED,
        _CARDS + "probe cta",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "complete_tx only, never an arrival",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "the shared address is a multiple of 128",
        MEASURED,
        _CARDS + "both cards trap, probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.tensor load",
        "tile and mbarrier are in one CTA",
        DOCUMENTED,
        "PTX, cp.async.bulk.tensor; .cta_group::2 differs",
        _CLUSTER + "test_tile_and_barrier_are_in_one_cta",
    ),
    (
        "cp.async.bulk.tensor store",
        "parts outside are not written, but a cut row ends with its 16-byte chunk",
        MEASURED,
        _CARDS + "probe tma",
        _REPLAY,
    ),
    (
        "cp.async.bulk.wait_group",
        "all but the newest N groups are complete",
        DOCUMENTED,
        "PTX, cp.async.bulk.wait_group",
        _TMA + "test_wait_group_leaves_the_newest_groups_pending",
    ),
    (
        "cp.async.bulk.wait_group.read",
        "the sources have been read",
        DOCUMENTED,
        "PTX, cp.async.bulk.wait_group",
        _TMA + "test_wait_group_read_waits_only_for_the_sources",
    ),
    (
        "cp.async.bulk.tensor store",
        "stores in flight survive the exit of their CTA",
        SHIPPED_PRACTICE,
        "CUTLASS example 72b exits with stores in flight",
        _TMA + "test_stores_outlive_their_cta",
    ),
)

TMEM = _rules(
    (
        "tcgen05.alloc",
        "a power of two in 32..512 columns",
        DOCUMENTED,
        "PTX, tcgen05.alloc; ptxas refuses 48 and 1024",
        _TMEM + "test_column_count_is_a_power_of_two",
    ),
    (
        "tcgen05.alloc",
        "allocations of a CTA do not grow; none after relinquish",
        DOCUMENTED,
        "PTX, tcgen05.alloc",
        _TMEM + "test_successive_allocations_do_not_grow",
    ),
    (
        "tcgen05.alloc",
        "blocks until columns are free",
        DOCUMENTED,
        "PTX, tcgen05.alloc",
        _TMEM + "test_a_blocked_alloc_goes_on_after_a_dealloc",
    ),
    (
        "tcgen05.alloc",
        "first free run that is aligned to its size, in slots of 32 columns",
        ASSUMED,
        f"16 slots in the {_LOWERING}; the choice among free runs is not documented",
        _TMEM + "test_several_allocations_do_not_overlap",
    ),
    (
        "tcgen05.dealloc",
        "names one allocation; all is freed before exit",
        DOCUMENTED,
        "PTX, tcgen05.dealloc",
        _TMEM + "test_leak_at_exit",
    ),
    (
        "tcgen05.ld, st",
        "a warp reaches the lanes 32 * (warp % 4) to + 31",
        OUTSIDE_KERNEL,
        "PTX, tcgen05.ld access restrictions",
        _WITNESS,
    ),
    (
        "tcgen05.ld, st",
        "lane and column of every register, five shapes",
        DOCUMENTED,
        "PTX, data movement shapes; CUTLASS copy_traits_sm100.hpp",
        _TMEM + "test_st_and_ld_by_the_formula",
    ),
    (
        "tcgen05.wait::ld",
        "registers are undefined before it",
        DOCUMENTED,
        "PTX, tcgen05.wait",
        _TMEM + "test_registers_are_not_ready_before_wait_ld",
    ),
    (
        "tcgen05.wait::ld",
        "ordering 'shipped': the first use makes the load land",
        SHIPPED_PRACTICE,
        "SASS has a scoreboard wait; CUTLASS's tutorials have no wait::ld",
        _TMEM + "test_shipped_ordering_lands_a_load_at_its_first_use",
        Advisory.LOAD_WITHOUT_WAIT.value,
    ),
    (
        "TMEM",
        "dealloc forgets the values",
        ASSUMED,
        "silicon may keep the old bits; reading them is an error all the same",
        _TMEM + "test_dealloc_forgets_the_values",
    ),
)

TCGEN05 = _rules(
    (
        "instruction descriptor",
        "fields of kind::mxf4 and kind::mxf4nvf4",
        OUTSIDE_KERNEL,
        "PTX, instruction descriptor; CUTLASS InstrDescriptorBlockScaled",
        _WITNESS,
    ),
    (
        "instruction descriptor",
        "fields of kind::f16 and kind::f8f6f4",
        DOCUMENTED,
        "PTX, instruction descriptor; CUTLASS's words of tutorial 01 and example 81",
        _MMA_UNSCALED + "test_golden_idesc_without_scales",
    ),
    (
        "tcgen05.mma, kind::f16 and kind::f8f6f4",
        "M is 128, N is 16 to 256 in steps of 16, K is 32 bytes",
        DOCUMENTED,
        "PTX, shapes of kind::f16 and kind::f8f6f4",
        _MMA_UNSCALED + "test_unscaled_mma_for_every_n",
    ),
    (
        "tcgen05.mma",
        "which scale_vec, scale type and scale id go together",
        DOCUMENTED,
        "PTX, block scaling; accepted spellings of ptxas 13.0",
        _TCGEN05 + "test_mma_for_every_kind_and_scale_id",
    ),
    (
        "tcgen05.mma",
        "N is 8 to 256 in steps of 8, M is 128, K is 64",
        DOCUMENTED,
        "PTX, shapes of kind::mxf4nvf4",
        _TCGEN05 + "test_mma_for_every_n",
    ),
    (
        "tcgen05.mma",
        "accumulator row i is lane i, column j is column base + j",
        DOCUMENTED,
        "PTX, data path layouts; CUTLASS mma_traits_sm100_frag.hpp",
        _TCGEN05 + "test_the_whole_accumulator_against_numerics",
    ),
    (
        "tcgen05.mma",
        "scale (row, k) is in lane row % 32 of all quarters, column row / 32, byte k",
        OUTSIDE_KERNEL,
        "PTX, scale factor layout; CUTLASS tmem_sf_frg",
        _WITNESS,
    ),
    (
        "tcgen05.mma",
        "scales that differ between the quarters are a fault",
        DOCUMENTED,
        "PTX requires all four; what silicon reads is not documented",
        _TCGEN05 + "test_scales_that_differ_between_quarters",
    ),
    (
        "tcgen05.mma",
        "the top two bits of a scale address are not an address",
        ASSUMED,
        "CUTLASS leaves the scale id there; their effect is not documented",
        _TCGEN05 + "test_the_scale_id_bits_of_an_address_are_not_an_address",
    ),
    (
        "tcgen05.mma",
        "negate bits flip the signs of A or B",
        DOCUMENTED,
        "PTX, instruction descriptor",
        _TCGEN05 + "test_negate",
    ),
    (
        "tcgen05.cp.32x128b.warpx4",
        "32 rows of 16 bytes land in lanes r, r + 32, r + 64, r + 96",
        DOCUMENTED,
        "PTX, tcgen05.cp multicast; CUTLASS tmem_sf_frg",
        _TCGEN05 + "test_b22_cp_lands_in_all_four_quarters",
    ),
    (
        "tcgen05.cp.32x128b.warpx4",
        "the leading-dimension offset is ignored",
        SHIPPED_PRACTICE,
        "CUTLASS writes 1, DeepGEMM 0",
        _TCGEN05 + "test_cp_leading_offset_is_ignored",
    ),
    (
        "tcgen05.commit",
        "one arrival when all earlier work of the same thread is complete",
        OUTSIDE_KERNEL,
        "PTX, tcgen05.commit",
        _WITNESS,
    ),
    (
        "tcgen05.commit",
        "does not track the work of another thread",
        DOCUMENTED,
        "PTX, tcgen05.commit",
        _TCGEN05 + "test_commit_covers_only_its_own_thread",
    ),
    (
        "tcgen05.commit",
        "the commits of one thread arrive in order",
        ASSUMED,
        "PTX lists mma, cp and shift as what a commit tracks, not other commits",
        _TCGEN05 + "test_commits_of_one_thread_arrive_in_order",
    ),
)

CLC = _rules(
    (
        "clusterlaunchcontrol.try_cancel",
        "a cluster that has not started, once; 16 bytes credited",
        DOCUMENTED,
        "PTX, clusterlaunchcontrol",
        _CLC + "test_more_tiles_than_sms_every_tile_once",
    ),
    (
        "clusterlaunchcontrol.query_cancel",
        "positions of ctaid and flag in the 16 bytes",
        OUTSIDE_KERNEL,
        f"{_LOWERING}; officially opaque",
        _WITNESS,
    ),
    (
        "clusterlaunchcontrol.try_cancel",
        "a request after an observed failure is a fault",
        DOCUMENTED,
        "PTX: undefined behaviour",
        _CLC + "test_request_after_an_observed_failure",
    ),
    (
        "clusterlaunchcontrol.try_cancel",
        "clusters are launched and handed over in grid order, x fastest",
        ASSUMED,
        "the order of launch is not documented",
        _CLC + "test_one_sm_takes_over_all_the_rest",
    ),
    (
        "griddepcontrol",
        "wait never blocks: earlier grids are done",
        ASSUMED,
        "one grid at a time runs here",
        _CLC + "test_griddepcontrol",
    ),
)

ORDERING = _rules(
    (
        "cp to mma",
        "in order within one thread",
        DOCUMENTED,
        _ORDER,
        _TCGEN05 + "test_commit_comes_after_everything_before_it",
    ),
    (
        "mma to mma",
        "in order with the same shape and accumulator; else no reliance on it",
        DOCUMENTED,
        _ORDER,
        _TCGEN05 + "test_mmas_of_another_shape_or_start_are_not_ordered",
    ),
    (
        "mma to cp",
        "not promised: a fault under ordering 'ptx'",
        DOCUMENTED,
        f"{_ORDER}: not in the list",
        _TCGEN05 + "test_cp_over_columns_that_an_mma_reads",
    ),
    (
        "mma to cp",
        "ordering 'shipped': in order",
        SHIPPED_PRACTICE,
        "CUTLASS and DeepGEMM reuse one scale buffer without a wait",
        _TCGEN05 + "test_shipped_ordering_keeps_mma_and_cp_in_order",
        Advisory.COPY_OVER_MMA.value,
    ),
    (
        "tcgen05 fences",
        "no instruction and no effect on values",
        SHIPPED_PRACTICE,
        _LOWERING,
        _TCGEN05 + "test_fences_change_nothing",
    ),
    (
        "asynchronous work",
        "anything else may land in any order",
        DOCUMENTED,
        "PTX, memory consistency model",
        "tests/hardware/test_schedule.py::test_seeds_differ_and_repeat",
    ),
    (
        "asynchronous work",
        "two accesses with no order between them, one a write, are a fault",
        DOCUMENTED,
        "PTX, memory consistency model: a data race is undefined",
        _TCGEN05 + "test_tma_load_into_a_stage_that_an_mma_reads",
    ),
    (
        "memory",
        "a read of bytes that nothing has written is a fault",
        ASSUMED,
        "silicon returns some value; no right kernel reads it",
        _SMEM + "test_never_written_bytes_are_poison",
    ),
    (
        "exit",
        "loads, copies and MMAs in flight at exit are a fault",
        DOCUMENTED,
        "PTX, lifetime of shared memory and TMEM",
        _MACHINE + "test_exit_with_tmem_or_with_work",
    ),
    (
        "elect.sync",
        "elects the lowest lane of the mask",
        MEASURED,
        _CARDS + "probe cta",
        _REPLAY,
    ),
)

RULES: tuple[Rule, ...] = (
    *NUMERICS,
    *LAYOUT,
    *MBARRIER,
    *SHARED_MEMORY,
    *TMA,
    *TMEM,
    *TCGEN05,
    *CLC,
    *ORDERING,
)


def select(
    *, operation: str | None = None, evidence: Evidence | None = None
) -> list[Rule]:
    """Rules that match every given field; `operation` matches by substring."""
    return [
        rule
        for rule in RULES
        if (operation is None or operation in rule.operation)
        and (evidence is None or rule.evidence is evidence)
    ]


def shares() -> dict[Evidence, float]:
    """Fraction of the rules in each class of evidence, strongest first."""
    return {e: len(select(evidence=e)) / len(RULES) for e in Evidence}
