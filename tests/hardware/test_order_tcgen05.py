"""order: pipelines, commits and fences of tcgen05, and what it leaves at exit."""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import MBAR, SF_AT, SF_WORD, SFA, easy_mma, easy_scales, put_memory
from order_cases import SECOND, WORD, ZEROS, both, every, failures, found, ready

from fp4ref.hardware import mbarrier, named_barrier, smem, tcgen05, tmem
from fp4ref.hardware.order.rules import Failure

# -- 4, 5, 6: tcgen05 ------------------


def with_columns(steps):
    """Warp 0 owns TMEM, with MBAR ready."""

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        easy_scales(warp)
        yield from steps(warp)
        tmem.dealloc(warp, 0, 512)

    return body


def committed(warp, parity=0):
    tcgen05.commit(warp, MBAR)
    yield from mbarrier.try_wait(warp, MBAR, parity)


@every
@both
@pytest.mark.parametrize("fenced", [True, False])
def test_a_commit_is_no_bridge_to_the_generic_proxy(schedule, ordering, fenced):
    def steps(warp):
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        yield from committed(warp)
        if fenced:
            smem.fence_proxy_async(warp)
        smem.st(warp, SF_AT, ZEROS)

    body = with_columns(steps)
    seen, _ = found(body, schedule=schedule, ordering=ordering, setup=put_memory)
    severity = {"ptx": "error", "shipped": "allowed"}[ordering]
    assert seen == (set() if fenced else {(Failure.BRIDGE, severity)})


@every
@both
@pytest.mark.parametrize("fenced", [True, False])
def test_a_commit_to_an_mbarrier_whose_init_is_not_fenced_is_for_review(
    schedule, ordering, fenced
):
    """PTX says from 9.3 on only that the signal comes by the generic proxy."""

    def first(warp):
        mbarrier.init(warp, MBAR, 1)
        if fenced:
            mbarrier.fence_mbarrier_init(warp)
        yield from named_barrier.sync(warp, 0)

    def second(warp):
        yield from named_barrier.sync(warp, 0)
        yield from committed(warp)

    seen, _ = found(first, second, schedule=schedule, ordering=ordering)
    severity = {"ptx": "review", "shipped": "allowed"}[ordering]
    assert seen == (set() if fenced else {(Failure.INIT, severity)})


@every
@both
def test_a_copy_is_not_ordered_after_an_mma(schedule, ordering):
    def steps(warp):
        easy_mma(warp)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        yield from committed(warp)

    body = with_columns(steps)
    seen = failures(body, schedule=schedule, ordering=ordering, setup=put_memory)
    assert seen == ({Failure.PIPELINE} if ordering == "ptx" else set())


@every
@both
def test_mmas_are_ordered_with_one_shape_and_accumulator_only(schedule, ordering):
    def steps(n):
        def body(warp):
            easy_mma(warp)
            easy_mma(warp, n=n)
            yield from committed(warp)

        return with_columns(body)

    options = {"schedule": schedule, "ordering": ordering, "setup": put_memory}
    assert failures(steps(128), **options) == set()
    expected = {Failure.PIPELINE} if ordering == "ptx" else set()
    assert failures(steps(64), **options) == expected


def copy_then_multiply(warp_of_mma, wait):
    """A copy by warp 0, an MMA by the same warp or another."""

    def first(warp):
        yield from ready(warp, 1, 1)
        yield from tmem.alloc(warp, SECOND, 512)
        easy_scales(warp)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        if wait:
            yield from committed(warp)
            tcgen05.fence_before_thread_sync(warp)
        yield from named_barrier.sync(warp, 1, 64)
        if warp_of_mma == 0:
            easy_mma(warp)
            tcgen05.commit(warp, MBAR + 8)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0)
        if not wait:
            yield from committed(warp)
        yield from named_barrier.sync(warp, 1, 64)
        tmem.dealloc(warp, 0, 512)

    def second(warp):
        yield from ready(warp)
        yield from named_barrier.sync(warp, 1, 64)
        if warp_of_mma == 1:
            tcgen05.fence_after_thread_sync(warp)
            easy_mma(warp)
            tcgen05.commit(warp, MBAR + 8)
        yield from named_barrier.sync(warp, 1, 64)

    return first, second


@pytest.mark.parametrize(
    ("mma", "wait", "expected"),
    [(0, False, set()), (1, False, {Failure.LIFETIME}), (1, True, set())],
)
def test_the_pipeline_is_of_one_thread(mma, wait, expected):
    bodies = copy_then_multiply(mma, wait)
    assert failures(*bodies, setup=put_memory) == expected


@pytest.mark.parametrize(
    ("ordering", "operation", "severity"),
    [("ptx", "ld", "error"), ("shipped", "ld", "review"), ("shipped", "st", "error")],
)
def test_registers_are_no_completion(ordering, operation, severity):
    """An unwaited load: an error by the text, a review in shipped; a store: error."""

    def steps(warp):
        easy_mma(warp)
        yield from committed(warp)
        tcgen05.fence_after_thread_sync(warp)
        if operation == "ld":
            registers = tmem.ld(warp, 0, "32x32b", 1)
            assert registers.words is not None
        else:
            tmem.st(warp, 0, np.zeros((32, 1), np.uint32), "32x32b", 1)
        easy_mma(warp)
        yield from committed(warp, 1)

    body = with_columns(steps)
    seen, _ = found(body, ordering=ordering, setup=put_memory)
    failure = Failure.REGISTERS if operation == "ld" else Failure.LIFETIME
    assert (failure, severity) in seen


@every
@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ("ptx", {(Failure.LIFETIME, "error")}),
        ("shipped", {(Failure.LIFETIME, "allowed")}),
    ],
)
def test_a_load_of_what_the_own_warp_has_stored(schedule, ordering, expected):
    """CUTLASS 74 has it; by the text only tcgen05.wait::st orders the two."""

    def steps(warp):
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32), "32x32b", 1)
        tmem.ld(warp, 0, "32x32b", 1)
        yield from tmem.wait_st(warp)
        yield from tmem.wait_ld(warp)

    assert (
        found(with_columns(steps), schedule=schedule, ordering=ordering)[0] == expected
    )


@every
@both
@pytest.mark.parametrize("left_out", ["", "before", "after"])
def test_a_thread_sync_needs_a_tcgen05_fence_at_both_ends(schedule, ordering, left_out):
    def first(warp):
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, SECOND, 32)
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32), "32x32b", 1)
        yield from tmem.wait_st(warp)
        if left_out != "before":
            tcgen05.fence_before_thread_sync(warp)
        yield from named_barrier.sync(warp, 1, 64)
        yield from named_barrier.sync(warp, 1, 64)
        tmem.dealloc(warp, 0, 32)

    def second(warp):
        yield from ready(warp)
        yield from named_barrier.sync(warp, 1, 64)
        if left_out != "after":
            tcgen05.fence_after_thread_sync(warp)
        tcgen05.cp(warp, 0, SF_WORD | SF_AT >> 4)
        tcgen05.commit(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        yield from named_barrier.sync(warp, 1, 64)

    seen, on = found(
        first, second, schedule=schedule, ordering=ordering, setup=put_memory
    )
    severity = {"ptx": "error", "shipped": "allowed"}[ordering]
    expected = {
        "": set(),
        "before": {(Failure.TENSOR_BEFORE, severity)},
        "after": {(Failure.TENSOR_AFTER, severity)},
    }
    assert seen == expected[left_out]
    if left_out and ordering == "shipped":
        assert on.order.findings.verdict == "clean"
        assert sum(on.order.findings.allowed.values()) >= 1


@every
@both
@pytest.mark.parametrize("meets", [True, False])
def test_a_commit_carries_no_ordinary_read(schedule, ordering, meets):
    """A tcgen05.fence after the read puts only accesses of TMEM before the copy."""

    def first(warp):
        yield from ready(warp, 1)
        yield from tmem.alloc(warp, SECOND, 512)
        smem.st(warp, WORD, ZEROS)
        smem.ld(warp, WORD, 4)
        tcgen05.fence_after_thread_sync(warp)
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.commit(warp, MBAR)
        if meets:
            yield from named_barrier.sync(warp, 1, 64)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        tmem.dealloc(warp, 0, 512)

    def second(warp):
        yield from ready(warp)
        if meets:
            yield from named_barrier.sync(warp, 1, 64)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.st(warp, WORD, ZEROS)

    options = {"schedule": schedule, "ordering": ordering, "setup": put_memory}
    expected = set() if meets else {Failure.SYNC}
    assert failures(first, second, **options) == expected


@both
@pytest.mark.parametrize("waits", [True, False])
def test_a_signal_that_nobody_waits_for_is_left_at_exit(ordering, waits):
    """What a dropped tail leaves: a commit may arrive after its CTA is gone."""

    def steps(warp):
        easy_mma(warp)
        yield from committed(warp)
        tcgen05.commit(warp, MBAR)
        if waits:
            yield from mbarrier.try_wait(warp, MBAR, 1)

    body = with_columns(steps)
    seen, _ = found(body, ordering=ordering, setup=put_memory)
    severity = {"ptx": "error", "shipped": "allowed"}[ordering]
    assert seen == (set() if waits else {(Failure.EXIT, severity)})
