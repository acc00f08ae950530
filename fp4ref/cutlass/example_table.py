"""example_table: which of CUTLASS's programs run here, and what each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fp4ref.cutlass.cudart import MULTIPROCESSORS
from fp4ref.errors import InputError

Arguments = Callable[[int, int, int], list[str]]


def _options(m: int, n: int, k: int) -> list[str]:
    # One launch, which is the one that is checked; the rest would only be timed.
    return [f"--m={m}", f"--n={n}", f"--k={k}", "--iterations=0"]


def _grouped(m: int, n: int, k: int) -> list[str]:
    # Two products, so that each SM changes its tensor maps. The grid has as many CTAs
    # as the card has SMs, and all but the first few would find no work.
    return [*_options(m, n, k), "--groups=2", "--max_sm_count=4"]


def _preferred_cluster(m: int, n: int, k: int) -> list[str]:
    return [*_options(m, n, k), "--preferred_cluster_m=2", "--preferred_cluster_n=2"]


def _split_k(m: int, n: int, k: int) -> list[str]:
    # Two clusters share each tile; the second adds its half to what the first stored.
    return [
        *_options(m, n, k),
        *("--decomposition=SplitK", "--splits=2", "--reduction=Deterministic"),
        *("--preferred_cluster_m=2", "--preferred_cluster_n=1"),
    ]


def _ten_kernels(m: int, n: int, k: int) -> list[str]:
    # With beta the trees read C. Both factors leave the example's integers exact.
    return [f"--m={m}", f"--n={n}", f"--k={k}", "--alpha=0.75", "--beta=0.5"]


def _of_each_kernel(kernels: int) -> dict[int, str]:
    """Names of the allocations, which are made anew for each kernel."""
    held = ("A", "B", "C", "D", "reference D", "flag of the comparison")
    return {
        len(held) * i + j: f"{name} of kernel {i}"
        for i in range(kernels)
        for j, name in enumerate(held)
    }


def _one_vector(m: int, n: int, k: int) -> list[str]:
    # A product with one column, whatever N says.
    return [f"--m={m}", f"--k={k}", "--batch=1", "--profiling=0"]


def _attention(m: int, n: int, k: int) -> list[str]:
    # One head: M queries, K keys, N numbers in each. Its check has 1,024 CTAs whose
    # threads add one after the other, a barrier between each two: it is not asked for.
    shape = [f"--q={m}", f"--k={k}", f"--d={n}", "--b=1", "--h=1"]
    return [*shape, "--mask=residual", "--iterations=0"]


def _positions(m: int, n: int, k: int) -> list[str]:
    return [str(m), str(n), str(k)]


@dataclass(frozen=True)
class Example:
    """A program that is known to run here.

    Attributes
    ----------
    source
        Path in CUTLASS's ``examples`` folder.
    verdict
        What it prints when its own check passes.
    checks
        Whether that is so; without, `verdict` says that the program ran to its end.
    kernels
        How many kernels it checks: it prints the verdict for each.
    allocations
        What its device allocations hold, by their order.
    schedule
        Under which it runs unless another is asked for.
    cluster
        CTAs in each of its clusters.
    multiples
        Of what M, N and K must be multiples: 16 bytes of a row for the examples, whole
        tiles for the tutorials. Each refuses others with a number, or fails.
    headers
        Packages of headers that it needs besides the toolchain.
    multiprocessors
        How many SMs it is told of. Kernels that fill a tensor have as many CTAs, and
        each of their threads first looks for its place in the random numbers.
    """

    title: str
    source: str
    verdict: str
    arguments: Arguments
    allocations: Mapping[int, str] = field(default_factory=dict)
    schedule: str = "eager"
    cluster: int = 1
    checks: bool = True
    kernels: int = 1
    multiples: tuple[int, int, int] = (1, 1, 1)
    headers: tuple[str, ...] = ()
    multiprocessors: int = MULTIPROCESSORS


_RANDOM_NUMBERS = ("nvidia-curand",)
_TUTORIALS = "cute/tutorial/blackwell"
_TUTORIAL_TILE = (128, 256, 64)
_CLUSTER_TILE = (512, 1024, 64)
EXAMPLES = {
    "70-fp8": Example(
        "E4M3 x E4M3, MMAs of CTA pairs in clusters of 2 x 2, ReLU, the largest values",
        "70_blackwell_gemm/70_blackwell_fp8_gemm.cu",
        "Disposition: Passed",
        _options,
        {
            **{0: "A", 1: "B", 2: "C", 3: "D", 5: "aux"},
            **{7: "largest D", 9: "largest aux", 11: "bias"},
        },
        cluster=4,
        multiples=(16, 1, 16),
    ),
    "71": Example(
        "FP16 x FP16: ten kernels of the builder, with and without CTA pairs, with and "
        "without shared memory in the epilogue, four of them with a tree",
        "71_blackwell_gemm_with_collective_builder/"
        "71_blackwell_gemm_with_collective_builder.cu",
        ": Passed",
        _ten_kernels,
        _of_each_kernel(10),
        cluster=4,
        kernels=10,
        multiples=(8, 1, 8),
        headers=_RANDOM_NUMBERS,
        multiprocessors=2,
    ),
    "72a": Example(
        "NVFP4 x NVFP4, output BF16, in clusters of 2 x 4 with CTA pairs",
        "72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm.cu",
        "Disposition: Passed",
        _options,
        {0: "A", 1: "B", 2: "C", 3: "D", 5: "SFA", 6: "SFB"},
        cluster=8,
        multiples=(1, 8, 32),
    ),
    "72b": Example(
        "NVFP4 x NVFP4, output NVFP4 with its scales",
        "72_blackwell_narrow_precision_gemm/72b_blackwell_nvfp4_nvfp4_gemm.cu",
        "Disposition: Passed",
        _options,
        {
            0: "A",
            1: "B",
            2: "C",
            3: "D",
            6: "norm constant",
            7: "SFA",
            8: "SFB",
            9: "SFD",
        },
        multiples=(1, 32, 32),
    ),
    "72c": Example(
        "MXFP8 x MXFP4, MMAs of CTA pairs in clusters of 2 x 4, output BF16",
        "72_blackwell_narrow_precision_gemm/72c_blackwell_mixed_mxfp8_bf16_gemm.cu",
        "Disposition: Passed",
        _options,
        {0: "A", 1: "B", 2: "C", 3: "D", 5: "SFA", 6: "SFB"},
        cluster=8,
        multiples=(1, 8, 128),
    ),
    "73": Example(
        "FP16 x FP16, MMAs of CTA pairs, preferred clusters of 2 x 2 and others of "
        "2 x 1; filled and checked on the device",
        "73_blackwell_gemm_preferred_cluster/blackwell_gemm_preferred_cluster.cu",
        "Disposition: Passed",
        _preferred_cluster,
        {0: "A", 1: "B", 2: "C", 3: "D", 4: "reference D"},
        cluster=4,
        multiples=(4, 1, 8),
        headers=_RANDOM_NUMBERS,
        multiprocessors=2,
    ),
    "74": Example(
        "FP16 x FP16, MMAs of CTA pairs, split-K of 2 with a fixed order of sums; "
        "filled and checked on the device",
        "74_blackwell_gemm_streamk/blackwell_gemm_streamk.cu",
        "Disposition: Passed",
        _split_k,
        {0: "A", 1: "B", 2: "C", 3: "D", 4: "reference D"},
        cluster=2,
        multiples=(4, 1, 8),
        headers=_RANDOM_NUMBERS,
        multiprocessors=2,
    ),
    "75": Example(
        "grouped NVFP4 x NVFP4, output FP16, tensor maps changed by the kernel; one "
        "kernel of CTAs with N=256 and one of CTA pairs",
        "75_blackwell_grouped_gemm/75_blackwell_grouped_gemm_block_scaled.cu",
        "Disposition: Passed",
        _grouped,
        cluster=2,
        kernels=2,
        multiples=(1, 8, 32),
    ),
    "77": Example(
        "FP16 attention: two MMAs a tile, the second with A from TMEM, softmax between",
        "77_blackwell_fmha/77_blackwell_fmha.cu",
        "[--]",
        _attention,
        {0: "Q", 1: "K", 2: "V", 3: "O", 4: "LSE"},
        checks=False,
        multiprocessors=2,
    ),
    "91": Example(
        "NVFP4 matrix times one vector on CUDA cores, output NVFP4 with its scales",
        "91_fp4_gemv/91_fp4_gemv.cu",
        "test pass",
        _one_vector,
    ),
    "92": Example(
        "NVFP4 x NVFP4 with few columns: B by TMA, and by cp.async",
        "92_blackwell_moe_gemm/92_blackwell_moe_gemm_fp4_regular.cu",
        "Disposition: Passed",
        _options,
        kernels=2,
    ),
    "81": Example(
        "E4M3 x E4M3 with blockwise float scales, output E4M3",
        "81_blackwell_gemm_blockwise/81_blackwell_gemm_blockwise.cu",
        "Disposition: Passed",
        _options,
        multiples=(16, 16, 16),
    ),
    "81-groupwise": Example(
        "E4M3 x E4M3 with groupwise float scales, MMAs of CTA pairs, output E4M3",
        "81_blackwell_gemm_blockwise/81_blackwell_gemm_groupwise.cu",
        "Disposition: Passed",
        _options,
        cluster=2,
        # It reads the scales of all rows of a tile and copies none of rows past M.
        multiples=(256, 16, 16),
    ),
    "tutorial-01": Example(
        "FP16 x FP16, plain copies to shared memory",
        f"{_TUTORIALS}/01_mma_sm100.cu",
        "Execution is successful.",
        _positions,
        multiples=_TUTORIAL_TILE,
    ),
    "tutorial-02": Example(
        "FP16 x FP16, TMA loads",
        f"{_TUTORIALS}/02_mma_tma_sm100.cu",
        "Execution is successful.",
        _positions,
        # Only its first warp arrives on the mbarriers. Where work lands at once, that
        # warp is two phases ahead before the others have looked.
        schedule="late",
        multiples=_TUTORIAL_TILE,
    ),
    "tutorial-03": Example(
        "FP16 x FP16, TMA loads multicast in clusters of 4 x 4",
        f"{_TUTORIALS}/03_mma_tma_multicast_sm100.cu",
        "Execution is successful.",
        _positions,
        schedule="late",
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
    "tutorial-04": Example(
        "FP16 x FP16, MMAs of CTA pairs, TMA multicast in clusters of 4 x 4",
        f"{_TUTORIALS}/04_mma_tma_2sm_sm100.cu",
        "Execution is successful.",
        _positions,
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
    "tutorial-05": Example(
        "FP16 x FP16, MMAs of CTA pairs and a TMA epilogue",
        f"{_TUTORIALS}/05_mma_tma_epi_sm100.cu",
        "Execution is successful.",
        _positions,
        # Its epilogue uses the mbarrier of the loads again: slow warps are lapped.
        schedule="late",
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
}


def find_example(name: str) -> Example:
    """Return a known example.

    Raises
    ------
    InputError
        There is none of this name; the message lists them.
    """
    if name not in EXAMPLES:
        raise InputError(
            f"no CUTLASS example {name!r}; known: {', '.join(EXAMPLES)}",
            gap="cutlass-examples",
        )
    return EXAMPLES[name]
