"""gemm: every access of the kernel is ordered; without one line it is not, and is seen.

The lines are those whose absence changes no value on this machine: nothing but the
order engine sees them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest
from gemm_cases import asked, wide_operands_of

import fp4ref
from fp4ref.cuda_kernel import kernel_code, on_sm
from fp4ref.gemm import cleanup
from fp4ref.hardware import mbarrier, named_barrier, smem, tcgen05, tma
from fp4ref.hardware.order.race import Race, RaceFault
from fp4ref.hardware.order.rules import Failure

SCHEDULES: list[str | int] = ["eager", "late", 4]
every = pytest.mark.parametrize("schedule", SCHEDULES)


def run(backend: Any = "emulator", schedule: Any = "eager", **options: Any) -> Any:
    """Five tiles on one SM: every ring between roles wraps."""
    config, alpha = asked(options)
    a, b, c, bias = wide_operands_of(3, (640, 64, 256, None), config)
    return fp4ref.run(
        *(a, b, c),
        bias=bias,
        alpha=alpha,
        config=config,
        backend=backend,
        schedule=schedule,
        sms=1,
    )


@every
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_the_kernel_is_clean(backend: str, schedule: str | int) -> None:
    found = run(backend, schedule)
    assert found.verdict == "clean"
    assert found.races == ()
    assert json.loads(json.dumps(found.findings.to_dict()))["verdict"] == "clean"


def test_an_untraced_run_is_incomplete() -> None:
    config, _ = asked({})
    a, b, _, _ = wide_operands_of(3, (64, 64, 64, None), config)
    found = fp4ref.run(a, b, trace=False)
    assert found.verdict == "incomplete"
    assert found.races == ()


Patch = Callable[[pytest.MonkeyPatch], None]


def nothing(*args: Any, **named: Any) -> Generator[Any, None, None]:
    """Do nothing where something may block."""
    yield from ()


def without(module: Any, name: str, *warps: int) -> Patch:
    """Leave out a call by some warps, or by all."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(module, name)

        def call(warp: Any, *rest: Any, **named: Any) -> Any:
            if warps and warp.index not in warps:
                return original(warp, *rest, **named)
            return None

        monkeypatch.setattr(module, name, call)

    return patch


def no_load_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "load_tail", nothing)


def no_wait_for_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    original = tma.wait_group

    def late(warp: Any, pending: int, read: bool = False) -> Any:
        return nothing() if pending else original(warp, pending, read)

    monkeypatch.setattr(tma, "wait_group", late)


def no_meeting_after_init(monkeypatch: pytest.MonkeyPatch) -> None:
    original = named_barrier.sync

    def sync(warp: Any, barrier: int, threads: int | None = None) -> Any:
        return nothing() if threads == 256 else original(warp, barrier, threads)

    monkeypatch.setattr(named_barrier, "sync", sync)


EPILOGUE, MMA, CLC_READERS = (4, 5, 6, 7), (0,), (0, 1, 2, 3)
LEFT_OUT: dict[str, tuple[Patch, Failure, str]] = {
    "tcgen05.fence::after, MMA": (
        without(tcgen05, "fence_after_thread_sync", *MMA),
        Failure.TENSOR_AFTER,
        "one_sm.py",
    ),
    "tcgen05.fence::after, epilogue": (
        without(tcgen05, "fence_after_thread_sync", *EPILOGUE),
        Failure.TENSOR_AFTER,
        "fragment.py",
    ),
    "tcgen05.fence::before, epilogue": (
        without(tcgen05, "fence_before_thread_sync", *EPILOGUE),
        Failure.TENSOR_BEFORE,
        "one_sm.py",
    ),
    "fence.mbarrier_init": (
        without(mbarrier, "fence_mbarrier_init"),
        Failure.INIT,
        "tma_loader.py",
    ),
    "proxy fence after reading the CLC answer": (
        without(smem, "fence_proxy_async", *CLC_READERS),
        Failure.PROXY,
        "clc_request.py",
    ),
    "load_tail": (no_load_tail, Failure.EXIT, ""),
    "wait_group.read before a stage of D": (
        no_wait_for_sources,
        Failure.LIFETIME,
        "epilogue_state.py",
    ),
}


def races_of(failure: Failure, *options: Any) -> list[Race]:
    """Return the races of one class; for all but one the run ends in a fault.

    Through which proxy a unit reaches an mbarrier, PTX leaves open up to 9.2.
    """
    if failure is Failure.INIT:
        found = run(*options)
        assert found.verdict == "review"
        races = found.races
    else:
        with pytest.raises(fp4ref.errors.HardwareFault) as caught:
            run(*options)
        races = caught.value.races
    return [race for race in races if race.failure is failure]


@every
@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_line_left_out_is_seen_in_the_emulator(
    name: str, schedule: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, failure, line = LEFT_OUT[name]
    patch(monkeypatch)
    seen = races_of(failure, "emulator", schedule)
    assert seen
    assert any(line in race.second.source for race in seen)
    assert all(race.first.source for race in seen)


def test_no_meeting_after_init_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where warp 0 goes first, no older check can see it."""
    no_meeting_after_init(monkeypatch)
    with pytest.raises(RaceFault) as caught:
        run()
    assert {race.failure for race in caught.value.races} >= {Failure.INIT}


LINES: dict[str, tuple[str, str, Failure]] = {
    "tcgen05.fence::after, MMA": (
        "tcgen05.fence::after_thread_sync;",
        "mma_warp.cuh",
        Failure.TENSOR_AFTER,
    ),
    "tcgen05.fence::after, epilogue": (
        "tcgen05.fence::after_thread_sync;",
        "collective.cuh",
        Failure.TENSOR_AFTER,
    ),
    "tcgen05.fence::before, epilogue": (
        "tcgen05.fence::before_thread_sync;",
        "collective.cuh",
        Failure.TENSOR_BEFORE,
    ),
    "fence.mbarrier_init": (
        "fence.mbarrier_init.release.cluster;",
        "",
        Failure.INIT,
    ),
    "proxy fence after reading the CLC answer": (
        "fence.proxy.async.shared::cta;",
        "clc_scheduler.cuh",
        Failure.PROXY,
    ),
    "wait_group.read before a stage of D": (
        "cp.async.bulk.wait_group.read 1;",
        "",
        Failure.LIFETIME,
    ),
}


def files_of(text: str) -> dict[str, str]:
    """Names of the files that ``.loc`` gives by number."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [".file"]:
            found[words[1]] = words[2].strip('"').rpartition("/")[2]
    return found


def strip(text: str, instruction: str, file: str) -> str:
    """Leave an instruction out wherever it stands, or only in one file."""
    files, here, kept, gone = files_of(text), "", [], 0
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [".loc"]:
            here = files.get(words[1], "")
        if line.strip() == instruction and file in ("", here):
            gone += 1
        else:
            kept.append(line)
    assert gone
    return "\n".join(kept)


@pytest.mark.rotating(6)
@pytest.mark.parametrize("schedule", ["eager", 4])
@pytest.mark.parametrize("name", LINES)
def test_a_line_left_out_is_seen_in_compiled_code(
    name: str, schedule: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instruction, file, failure = LINES[name]
    config, _ = asked({})
    code = kernel_code(config)
    other = replace(code, ptx=strip(code.ptx, instruction, file))
    monkeypatch.setattr(on_sm, "kernel_code", lambda config: other)
    seen = races_of(failure, "ptx", schedule)
    assert seen
    assert all(".cuh:" in race.second.source for race in seen)
