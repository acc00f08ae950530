"""notes: what the page of conformance says below its table."""

from __future__ import annotations

NOTES = [
    '72b needs `ordering="shipped"`: it copies scales over columns that earlier MMAs '
    "read.",
    "Tutorial 02 with two k-tiles or more can hang by its own text: nothing keeps its "
    "four warps together, so a warp that waits for a phase can be lapped by two. The "
    "eager schedule does that, and the machine names the fault (MbarrierFault). Warps "
    "of a real SM presumably stay close enough.",
    "81 groupwise needs whole tiles of 256 rows: of rows past the last it copies no "
    "scales, and yet reads them for sums that it then drops. The machine names the "
    "read (UninitialisedRead).",
    "77 stores the old and the new maximum of each row to TMEM (tcgen05.st) and then "
    "commits the mbarrier for which the correction warps wait before they load them "
    "(tcgen05.ld), with no tcgen05.wait::st between "
    "(sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp:599, and 709 before 768); P has "
    "one (663). By PTX 9.7.16.6.2 nothing else orders a tcgen05.st before an access of "
    "another warp. Under late and seeds the machine names it (ReadWhileInFlight). Its "
    "own check has 1,024 CTAs whose threads add one after the other; O and LSE are "
    "compared in NumPy instead.",
    "92's kernel that loads B by cp.async has no proxy fence between these copies and "
    "the tcgen05.cp and MMAs that read them: an arrival of cp.async on an mbarrier is "
    "all, and its main loop's file has no fence at all. cp.async writes by the "
    "generic proxy and the MMA reads by the async one, so by PTX one is needed. Under "
    "late and seeds the machine names it (MissingProxyFence); under eager fences for "
    "other data happen to come after the copies.",
    "91 reads A, B and scales past the end of K, where K / 256 is not 0 and not a "
    "multiple of four: its first loads fill four stages of 256 elements whatever K is "
    "(gemv_blockscaled.h:340), and its loop multiplies whole buffers. The machine "
    "names the read of the scales (OutOfBounds), for K = 256 and 512 too; 128 and "
    "2,048 are right. NVIDIA/cutlass has it as issues 3536 and 3568, with wrong "
    "results of a card.",
    "58 kernels of Triton and 6 of Gluon have [a page of their own]"
    "(conformance_triton.md), with every form that they use.",
    "Kernels of SGEMM_CUDA, llm.c and learn-cuda have "
    "[a page of their own](other_kernels.md).",
    "What the order of accesses says of these kernels has "
    "[its own page](shipped_order.md).",
    "Tutorial 05 is lapped under the eager schedule with one k-tile too, and the "
    "machine names the fault (MbarrierFault). All warps of a leader CTA wait for the "
    "loads of A and B (05_mma_tma_epi_sm100.cu:370), the first warp alone arms that "
    "mbarrier for C (line 426), and nothing between the two keeps the warps together.",
    '74 needs `ordering="shipped"` for one thing more. It stores each reduced '
    "accumulator to TMEM (sm100_tile_scheduler_stream_k.hpp:943), the epilogue of the "
    "same warp loads it again (sm100_epilogue_tma_warpspecialized.hpp:882), and the "
    "whole kernel has no `tcgen05.wait::st`. By PTX 9.7.16.6.2 a `tcgen05.st` is in "
    "order with that wait and with nothing else.",
    "73 and 74 are told of 2 SMs, because the kernels that fill their tensors have as "
    "many CTAs as that.",
    "Seconds are of the clock on the wall. Rows of 2026-11-30 ran on a machine that "
    "did much else, and took about ten times as long as alone.",
]
