"""A deadlock names its root: the barrier with wrong books, and who signals it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig
from fp4ref.cuda_kernel import KernelCode, headers, on_sm
from fp4ref.cuda_kernel.build import ARCH, normalised, nvrtc_version
from fp4ref.cuda_kernel.sources import MAIN, expand, kernel_root
from fp4ref.device.compile import compile_cuda
from fp4ref.errors import DeadlockError, DeadlockRoot
from fp4ref.gemm import epilogue_start, mma_warp, pipeline, roles
from fp4ref.gemm.plan import Plan, values
from fp4ref.gemm.plan.rings import Arrivals
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.gemm.tiles.throttle import ClcThrottle
from fp4ref.hardware import mbarrier, tcgen05, tma

A, B = wide_pair(5, 300, 300, 2048)

Mistake = Callable[[pytest.MonkeyPatch], None]


def root_of(**options: Any) -> DeadlockRoot:
    """Run nine tiles on one SM until they hang."""
    with pytest.raises(DeadlockError) as caught:
        fp4ref.run(A, B, sms=1, **options)
    root = caught.value.root
    assert root is not None
    assert str(root) in str(caught.value)
    return root


def too_many_bytes(patch: pytest.MonkeyPatch) -> None:
    right = Plan.k_tile_tx_bytes.compute
    patch.setattr(Plan, "k_tile_tx_bytes", property(lambda self: right(self) + 16))


def a_load_left_out(patch: pytest.MonkeyPatch) -> None:
    right, seen = tma.load, []

    def load(*operands: Any, **named: Any) -> None:
        seen.append(operands)
        if len(seen) != 7:
            right(*operands, **named)

    patch.setattr(tma, "load", load)


def no_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mma_warp, "release_stage", lambda warp, stage: None)


def one_release_skipped(patch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def release(warp: Any, stage: Any) -> None:
        seen.append(stage)
        if len(seen) != 3:
            tcgen05.commit(warp, stage.empty)

    patch.setattr(mma_warp, "release_stage", release)


def no_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mma_warp, "commit_accumulator", lambda warp, stage: None)


def no_release_of_accumulators(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        epilogue_start, "arrive_on_empty", lambda count: lambda warp, stage: None
    )


def one_thread_too_few(patch: pytest.MonkeyPatch) -> None:
    def arrive(count: int) -> Callable[[Any, Any], None]:
        return lambda warp, stage: mbarrier.arrive(warp, stage.empty, count - 1)

    patch.setattr(epilogue_start, "arrive_on_empty", arrive)


def a_count_too_high(patch: pytest.MonkeyPatch) -> None:
    right = values.rings

    def rings(*asked: Any, **named: Any) -> Any:
        for ring in right(*asked, **named):
            if ring.name == "mainloop":
                yield replace(ring, full=Arrivals(2, "load warp", ring.full.tx_bytes))
            else:
                yield ring

    patch.setattr(values, "rings", lambda *a, **k: tuple(rings(*a, **k)))


def a_role_returns_early(patch: pytest.MonkeyPatch) -> None:
    right = roles.ROLES[WarpRole.EPILOGUE]

    def role(warp: Any, storage: Any, parts: Any) -> Iterator[Any]:
        if warp.index != 6:
            return (yield from right(warp, storage, parts))
        yield from epilogue_start.start_epilogue(warp, storage, parts)

    patch.setitem(roles.ROLES, WarpRole.EPILOGUE, role)


def a_throttle_that_nobody_releases(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClcThrottle, "signal", lambda self: iter(()))


def an_expectation_without_an_arrival(patch: pytest.MonkeyPatch) -> None:
    right = mbarrier.arrive_expect_tx

    def of_a_stage(warp: Any, mbar: int, nbytes: int) -> None:
        (mbarrier.expect_tx if nbytes > 1024 else right)(warp, mbar, nbytes)

    patch.setattr(mbarrier, "arrive_expect_tx", of_a_stage)


def a_producer_that_starts_as_a_consumer(patch: pytest.MonkeyPatch) -> None:
    def __init__(self: Any, warp: Any, ring: Any, commit: Any) -> None:
        pipeline._Side.__init__(self, warp, ring, 0, commit)

    patch.setattr(pipeline.Producer, "__init__", __init__)


MISTAKES: list[tuple[Mistake, str, str, str]] = [
    (too_many_bytes, "mainloop.full[0]", "36,880 bytes expected, 36,864", "warp2"),
    (a_load_left_out, "mainloop.full[1]", "1 of 4 copies never started", "warp2"),
    (no_release, "mainloop.empty[0]", "nobody has arrived", "warp0"),
    (one_release_skipped, "mainloop.empty[2]", "mainloop.empty[3] has compl", "warp0"),
    (no_commit, "accumulator.full[0]", "warp0 asks for the stage again", "warp0"),
    (no_release_of_accumulators, "accumulator.empty[0]", "128 of 128", "warp4"),
    (one_thread_too_few, "accumulator.empty[0]", "124 of 128 arrivals came", "warp7"),
    (a_count_too_high, "mainloop.full[0]", "1 of 2 arrivals came", "warp2"),
    (a_role_returns_early, "clc.empty[0]", "warp6 has ended", "warp6"),
    (
        an_expectation_without_an_arrival,
        *("mainloop.full[0]", "36,864 bytes have come, and 1 of 1", "warp2"),
    ),
    (a_producer_that_starts_as_a_consumer, ".empty[0]", "asks for parity 0", "warp"),
    (a_throttle_that_nobody_releases, "throttle.full[0]", "it takes 32", "warp2"),
]


@pytest.mark.parametrize(
    ("mistake", "barrier", "what", "by"),
    MISTAKES,
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_the_root_is_named(
    mistake: Mistake, barrier: str, what: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for schedule in ("eager", 3):
        with monkeypatch.context() as patch:
            mistake(patch)
            root = root_of(schedule=schedule)
        assert root.barrier.endswith(barrier)
        assert what in root.what
        assert by in root.by
        assert root.remedy


@contextmanager
def changed(file: str, old: str, new: str) -> Iterator[None]:
    """Compile the kernel with one line changed."""
    config = GemmConfig()
    path = f"kernel/{file}"
    texts = headers(config)
    text = texts.get(path) or (kernel_root() / path).read_text()
    assert text.count(old) == 1
    source = expand(texts | {path: text.replace(old, new)}, kernel_root())
    code = normalised(compile_cuda(source, ARCH, name=MAIN).ptx)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_sm, "kernel_code", lambda config: KernelCode(code, "changed"))
        yield


KERNELS: list[tuple[AbstractContextManager[None], str, str, str]] = [
    (
        changed("gemm/plan.cuh", "K_TILE_TX_BYTES = 36864", "K_TILE_TX_BYTES = 36880"),
        *("mainloop.full[0]", "36,880 bytes expected, 36,864", "tma_loader.cuh"),
    ),
    (
        changed("gemm/mma_warp.cuh", "    release_stage(elected, stage);\n", ""),
        *("mainloop.empty[0]", "nobody has arrived", ""),
    ),
    (
        changed(
            "gemm/mma_warp.cuh", "commit_accumulator(elect_sync(), accumulator);", ""
        ),
        *("accumulator.full[0]", "asks for the stage again", ""),
    ),
    (
        changed("gemm/epilogue/collective.cuh", "arrive_on_empty(accumulator);", ""),
        *("accumulator.empty[0]", "128 of 128", ""),
    ),
]


@pytest.mark.skipif(nvrtc_version() is None, reason="needs NVRTC: fp4ref[cuda]")
@pytest.mark.parametrize(("change", "barrier", "what", "line"), KERNELS, ids=range(4))
def test_the_root_is_named_in_compiled_code(
    change: AbstractContextManager[None], barrier: str, what: str, line: str
) -> None:
    with change:
        root = root_of(backend="ptx")
    assert root.barrier == barrier
    assert what in root.what
    assert line in root.statement


def test_without_a_trace_the_root_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    too_many_bytes(monkeypatch)
    root = root_of(trace=False)
    assert root.barrier == "mainloop.full[0]"
    assert root.statement == ""
    assert " at " not in str(root)


def test_with_a_trace_the_line_is_the_expectation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    too_many_bytes(monkeypatch)
    assert root_of().statement.startswith("fp4ref/gemm/load/tma_loader.py:")
