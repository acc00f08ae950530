"""cutlass_entries: CUTLASS's examples for Blackwell, and what decides for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import trees
from entry import SCHEDULES, Entry
from wide_operands import wide_pair

from fp4ref import GemmConfig, compare, oracle
from fp4ref import run as emulate
from fp4ref.cutlass.execute import execute_example

SHAPES_72B = [
    (128, 128, 256),
    (256, 384, 512),
    (128, 96, 768),
    (256, 32, 2048),
    (100, 160, 64),
    (384, 256, 1056),
]


def cutlass(
    name: str,
    shapes: list[tuple[int, int, int]],
    schedules: tuple[str | int, ...] = SCHEDULES,
    more: Sequence[str] = (),
) -> Callable[[], None]:
    """Let an example decide for itself, for every shape and schedule."""

    def check() -> None:
        for shape in shapes:
            for schedule in schedules:
                found = execute_example(
                    name, *shape, more=more, schedule=schedule, trace=False
                )
                if found.result.fault:
                    raise found.result.fault
                where = f"{shape}, {schedule}: {found.result.problems}"
                assert found.result.passed, where

    return check


def wide_72b() -> None:
    """D, SFD and every hardware event equal ours, on wide-range operands."""
    config = GemmConfig.example_72b()
    for seed, shape in enumerate(SHAPES_72B[:4]):
        m, n, k = shape
        a, b = wide_pair(seed, m, n, k)
        want = oracle.expected(a, b, config=config)
        ours = emulate(a, b, config=config)
        for schedule in SCHEDULES:
            theirs = execute_example("72b", m, n, k, operands=(a, b), schedule=schedule)
            codes, scales = theirs.output(m, n)
            assert np.array_equal(codes, want.d), f"{shape}, {schedule}: D differs"
            assert np.array_equal(scales, want.sfd), f"{shape}, {schedule}: SFD"
            assert theirs.trace is not None
            found = compare(ours, theirs.trace)
            assert found.ok, found.report()


def eight_bits_and_wider(package: str) -> Iterator[Entry]:
    """Rows of CUTLASS's 70 and 71."""
    yield Entry(
        "CUTLASS 70 fp8, its own check",
        package,
        "kind::f8f6f4 of CTA pairs, CLC in clusters of 2 x 2, red.global.max",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("70-fp8", [(256, 256, 128), (288, 264, 208)]),
    )
    yield Entry(
        "CUTLASS 70 fp8 with scales and a bias, its own check and our tree",
        package,
        "C, D and aux in E4M3, bias, ReLU, two maxima; wide operands, D saturates",
        f"1 shape, 2 sets of operands, {len(SCHEDULES)} schedules",
        lambda: trees.cutlass_70(SCHEDULES, (256, 256, 128)),
    )
    yield Entry(
        "CUTLASS 71, the own checks of ten kernels and our tree",
        package,
        "kind::f16 MMAs of CTAs and of pairs, three epilogues without shared memory, "
        "four with a tree; fills and checks on the device",
        "1 shape, eager",
        lambda: trees.cutlass_71(("eager",), (144, 120, 72)),
    )


def block_scaled(package: str) -> Iterator[Entry]:
    """Rows of CUTLASS's 72."""
    yield Entry(
        "CUTLASS 72a, its own check",
        package,
        "mxf4nvf4 MMA of CTA pairs, multicast loads, CLC in clusters of 2 x 4",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("72a", [(256, 1024, 256), (264, 520, 352)]),
    )
    yield Entry(
        "CUTLASS 72b, its own check",
        package,
        "TMA, UTCCP, mxf4nvf4 MMA, CLC, epilogue with SFD",
        f"{len(SHAPES_72B)} shapes, {len(SCHEDULES)} schedules",
        cutlass("72b", SHAPES_72B),
    )
    yield Entry(
        "CUTLASS 72b, wide-range inputs",
        package,
        "the same, every accumulator bit, and 9 kinds of hardware event",
        f"4 shapes, {len(SCHEDULES)} schedules, against fp4ref's own kernel",
        wide_72b,
    )
    for swizzle in (2, 4, 8):
        yield Entry(
            f"CUTLASS 72b with --swizzle={swizzle}, its own check",
            package,
            "a branch on coordinates that a refused CLC query does not set",
            f"2 shapes, {len(SCHEDULES)} schedules",
            cutlass(
                "72b",
                [(256, 384, 512), (128, 96, 768)],
                more=[f"--swizzle={swizzle}"],
            ),
        )
    yield Entry(
        "CUTLASS 72c, its own check",
        package,
        "kind::mxf8f6f4 of CTA pairs, padded TMA loads, clusters of 2 x 4",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("72c", [(256, 256, 256), (512, 264, 384)]),
    )


def attention_77() -> None:
    """O and the logarithm of each row's sum are those of float64, within roundings.

    P is rounded to FP16 before the second MMA, and O after it: 2^-11 of each term and
    of the sum. Powers of two and logarithms are approximations of float32.
    """
    for queries, width, keys in ((32, 64, 128), (160, 128, 300)):
        run = execute_example("77", queries, width, keys, schedule="eager", trace=False)
        if run.result.fault:
            raise run.result.fault
        assert run.result.passed, run.result.problems
        q, k, v = (
            run.allocation(name).view(np.float16)[: rows * width].reshape(rows, width)
            for name, rows in (("Q", queries), ("K", keys), ("V", keys))
        )
        scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(width)
        most = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - most)
        sums = p.sum(axis=1, keepdims=True)
        o = run.allocation("O").view(np.float16)[: queries * width]
        error = o.reshape(queries, width) - p @ v / sums
        assert (np.abs(error) <= 2.0**-10 * (p @ np.abs(v) / sums)).all()
        lse = run.allocation("LSE").view(np.float32)[:queries]
        assert np.abs(lse - (np.log(sums) + most)[:, 0]).max() <= 2.0**-18


def grouped_and_scaled(package: str) -> Iterator[Entry]:
    """Rows of CUTLASS's 73 to 92."""
    yield Entry(
        "CUTLASS 73, its own check",
        package,
        "preferred and other clusters of CTA pairs; fills and checks on the device",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("73", [(144, 136, 72), (288, 120, 40)]),
    )
    yield Entry(
        "CUTLASS 74 split-K, its own check",
        package,
        "sums of two clusters in a fixed order; fills and checks on the device",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("74", [(144, 120, 144), (272, 120, 72)]),
    )
    yield Entry(
        "CUTLASS 75 block-scaled, the own checks of both kernels",
        package,
        "tensor maps changed on the device; a kernel of CTAs and one of CTA pairs",
        f"2 shapes of 2 groups, {len(SCHEDULES)} schedules",
        cutlass("75", [(128, 256, 256), (160, 320, 288)]),
    )
    yield Entry(
        "CUTLASS 77 FMHA, FP16",
        package,
        "kind::f16 MMAs, the second with A from TMEM; softmax between them",
        "2 shapes, eager (see below), against NumPy",
        attention_77,
    )
    yield Entry(
        "CUTLASS 91 fp4_gemv, its own check",
        package,
        "f16x2 arithmetic, cp.async groups, scales rounded and stored by lanes",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("91", [(64, 1, 128), (32, 1, 2048)]),
    )
    yield Entry(
        "CUTLASS 92 fp4_regular, the own checks of both kernels",
        package,
        "one kernel loads B by TMA, one by cp.async with source sizes",
        "1 shape, eager (see below)",
        cutlass("92", [(128, 64, 256)], ("eager",)),
    )
    yield Entry(
        "CUTLASS 81 gemm_groupwise, its own check",
        package,
        "kind::f8f6f4 of CTA pairs, scales of rows by cp.async, two epilogues",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("81-groupwise", [(256, 128, 256), (512, 144, 272)]),
    )
    yield Entry(
        "CUTLASS 81 gemm_blockwise, its own check",
        package,
        "kind::f8f6f4 MMA, cp.async scales, two epilogues",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("81", [(128, 128, 256), (256, 128, 512)]),
    )


def tutorials(package: str) -> Iterator[Entry]:
    """Rows of CuTe's tutorials for Blackwell."""
    yield Entry(
        "CuTe Blackwell tutorial 01, its own check",
        package,
        "kind::f16 MMA, plain copies to shared memory",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("tutorial-01", [(128, 256, 64), (256, 256, 128)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 02, one k-tile, its own check",
        package,
        "kind::f16 MMA, TMA loads",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("tutorial-02", [(128, 256, 64), (256, 512, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 02, its own check",
        package,
        "kind::f16 MMA, TMA loads",
        "2 shapes, late and 2 seeds (see below)",
        cutlass("tutorial-02", [(256, 256, 128), (128, 256, 192)], ("late", 1, 2)),
    )
    yield Entry(
        "CuTe Blackwell tutorial 03, one k-tile, its own check",
        package,
        "kind::f16 MMA, TMA loads and commits multicast in clusters of 16 CTAs",
        f"1 shape of 16 CTAs, {len(SCHEDULES)} schedules",
        cutlass("tutorial-03", [(512, 1024, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 03, its own check",
        package,
        "kind::f16 MMA, TMA loads and commits multicast in clusters of 16 CTAs",
        "1 shape, late",
        cutlass("tutorial-03", [(512, 1024, 128)], ("late",)),
    )
    yield Entry(
        "CuTe Blackwell tutorial 04, one k-tile, its own check",
        package,
        "MMAs of CTA pairs, multicast loads and commits of pairs",
        f"1 shape of 16 CTAs, {len(SCHEDULES)} schedules",
        cutlass("tutorial-04", [(512, 1024, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 05, its own check",
        package,
        "MMAs of CTA pairs, TMA stores",
        "1 shape of 16 CTAs, late and 2 seeds (see below)",
        cutlass("tutorial-05", [(512, 1024, 64)], ("late", 1, 2)),
    )
