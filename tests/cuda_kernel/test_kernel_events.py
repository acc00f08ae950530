"""The kernel's PTX and the emulator agree at every hardware event, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_cases import CONFIG_CASES, Case, asked
from ptx_cases import case_params, needs_nvrtc
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref import plan
from fp4ref.errors import InputError


def assert_same_run(case: Case, seed: int, *schedules: str) -> None:
    emulator = case.run("emulator")
    for schedule in schedules or (case.schedule,):
        ptx = replace(case, schedule=schedule).run("ptx", seed)
        outcome = fp4ref.compare(emulator, ptx)
        assert outcome.ok, outcome.report()
        assert outcome.compared > 0
        assert_bits_equal(ptx.d, emulator.d)
        assert ptx.written.all()
        if emulator.sfd is not None and ptx.sfd is not None:
            assert_bits_equal(ptx.sfd, emulator.sfd)
        assert ptx.stats.get("tcgen05.mma") == emulator.stats.get("tcgen05.mma")


@pytest.mark.rotating(17)
@pytest.mark.parametrize("case", case_params())
def test_every_event_is_equal(case: Case, rotating_seed: int) -> None:
    assert_same_run(case, rotating_seed)


@pytest.mark.soak
@pytest.mark.parametrize("case", case_params())
def test_every_event_is_equal_under_every_schedule(
    case: Case, rotating_seed: int
) -> None:
    assert_same_run(case, rotating_seed, "eager", "late", "seed")


SMALL = [
    Case(129, 40, 544, schedule="seed"),
    Case(64, 130, 288, schedule="seed", sms=3, config={"d_format": "nvfp4"}),
    Case(
        40,
        65,
        1536,
        schedule="seed",
        config={"c_format": "f32", "beta": 1.3, "tile_n": 64, "stages": 2},
    ),
]


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_fifty_seeds_change_nothing(case: Case, rotating_seed: int) -> None:
    emulator = case.run("emulator")
    for seed in range(rotating_seed, rotating_seed + 50):
        ptx = case.run("ptx", seed)
        outcome = fp4ref.compare(emulator, ptx)
        assert outcome.ok, f"seed {seed}\n{outcome.report()}"


def test_the_cases_cover_every_setting() -> None:
    assert len(CONFIG_CASES) >= 40
    assert {c.sms for c in CONFIG_CASES} == {1, 2, 3, 4}
    assert {c.schedule for c in CONFIG_CASES} == {"eager", "late", "seed"}
    assert {c.scale_format.name for c in CONFIG_CASES} == {"UE4M3", "UE8M0"}
    configs = [asked(case.config)[0] for case in CONFIG_CASES]
    wanted: dict[str, set[Any]] = {
        "d_format": {"f32", "bf16", "f16", "nvfp4"},
        "c_format": {None, "f32", "bf16", "f16"},
        "activation": {None, "relu", "gelu", "silu"},
        "scheduler": {"clc", "static"},
        "raster": {"m", "n"},
        "tile_n": {64, 128},
        "scale_buffers": {1, 2},
        "bias": {False, True},
    }
    for name, values in wanted.items():
        assert {config.asked(name) for config in configs} == values, name
    assert {plan(config).loads_c for config in configs} == {False, True}


def test_chosen_tiles_and_progress() -> None:
    case, seen = Case(200, 200, 96), []
    tiles = [(1, 0), (0, 1)]
    options: Any = {"tiles": tiles, "progress": lambda *at: seen.append(at)}
    ptx = case.run("ptx", **options)
    emulator = case.run("emulator", tiles=tiles)
    assert fp4ref.compare(emulator, ptx).ok
    assert np.array_equal(ptx.written, emulator.written)
    assert not ptx.written.all()
    assert seen[-1] == (2, 2)


def test_events_name_kernel_lines_and_barriers() -> None:
    trace = Case(129, 129, 288).run("ptx").trace
    assert trace is not None
    assert {"backend": "ptx"}.items() <= trace.meta.items()
    assert trace.meta["kernel"].startswith("nvfp4_gemm, ")
    files = {
        "tcgen05.mma": "one_sm.cuh",
        "tcgen05.cp": "scale_copies.cuh",
        "cp.async.bulk.tensor.3d.load": "tma_loader.cuh",
        "cp.async.bulk.tensor.3d.store": "tile_writer.cuh",
        "clusterlaunchcontrol.try_cancel": "clc_request.cuh",
        "tcgen05.dealloc": "allocator.cuh",
    }
    for operation, file in files.items():
        events = trace.select(operation=operation)
        assert events
        assert {e.kernel_source.split(":")[0] for e in events} == {file}
    labels = {change.label for e in trace for change in e.barrier}
    assert {"mainloop.full[0]", "accumulator.empty[1]", "clc.full[0]"} <= labels


def test_a_run_without_a_trace_gives_the_same_result() -> None:
    case = Case(130, 70, 96)
    untraced = case.run("ptx", trace=False)
    assert untraced.trace is None
    assert_bits_equal(untraced.d, case.run("emulator", trace=False).d)


def test_one_scale_buffer_needs_shipped_ordering() -> None:
    case = Case(64, 64, 512, config={"scale_buffers": 1}, schedule="late")
    with pytest.raises(
        (fp4ref.errors.ReadWhileInFlight, InputError),
        match=r"in flight|NVRTC is not installed",
    ):
        case.run("ptx")
