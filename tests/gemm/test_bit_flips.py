"""Flip one bit of SMEM, TMEM or a barrier during a run: only what must change does.

A run without a flip is traced. From the events after the flip, a predictor that knows
the layouts by formula, and the machine only by its trace, says what will happen: which
bits of D and SFD change and to what, or which fault is raised. Then the flip is made in
a second run under the same schedule.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from flip_predictor import Flip, Prediction, Predictor
from flip_reference import LANE, SMEM_BASE, Reference, Setting, writes
from numpy.typing import NDArray
from wide_operands import UE8M0

from fp4ref.errors import HardwareFault
from fp4ref.gemm.plan import plan
from fp4ref.hardware.machine import Machine

MATRICES = ("A", "B", "SFA", "SFB", "C", "D", "accumulator")

SETTINGS = {
    "f32": Setting(250, 60, 640, "eager", {"tile_n": 64, "stages": 2}),
    "bf16 with C": Setting(
        120,
        150,
        544,
        "late",
        {
            "tile_n": 64,
            "c_format": "bf16",
            "d_format": "bf16",
            "beta": 0.5,
            "stages": 3,
        },
        sms=2,
    ),
    "nvfp4": Setting(
        100,
        180,
        512,
        7,
        {
            "tile_n": 64,
            "d_format": "nvfp4",
            "bias": True,
            "scheduler": "static",
            "stages": 2,
        },
        sms=2,
    ),
    "nvfp4 with C": Setting(
        110,
        140,
        576,
        11,
        {
            "d_format": "nvfp4",
            "sfd_format": UE8M0,
            "norm_constant": 2.0,
            "c_format": "f32",
            "beta": 64.0,
            "activation": "relu",
            "stages": 2,
        },
        scale_format=UE8M0,
    ),
}


def places(reference: Reference) -> dict[str, list[tuple[str, int, int]]]:
    """Every class of location: pieces (space, first address, bytes)."""
    config = reference.problem.config
    smem, tmem, size = plan(config).smem, plan(config).tmem, LANE // 4
    ends = sorted(
        [
            (smem.d_subtile, config.epilogue.d_stages * plan(config).d_subtile_nbytes),
            (smem.c_subtile, config.epilogue.c_stages * plan(config).c_subtile_nbytes),
            (smem.a, plan(config).mainloop_stages * plan(config).a_nbytes),
            (smem.b, plan(config).mainloop_stages * plan(config).b_nbytes),
            (smem.sfa, plan(config).mainloop_stages * plan(config).sfa_nbytes),
            (smem.sfb, plan(config).mainloop_stages * plan(config).sfb_nbytes),
        ]
    )
    names = {
        smem.d_subtile: "D",
        smem.c_subtile: "C",
        smem.a: "A",
        smem.b: "B",
        smem.sfa: "SFA",
        smem.sfb: "SFB",
    }
    parts = [(names[at], at, nbytes) for at, nbytes in ends if nbytes]
    rings = {
        "mainloop": (smem.mainloop_full, 16 * plan(config).mainloop_stages),
        "accumulator": (smem.accumulator_full, 16 * config.mainloop.accumulator_stages),
        "clc": (smem.clc_full, 16 * config.tiles.clc_stages),
        "throttle": (smem.throttle_full, 16 * config.tiles.clc_stages),
        "c": (smem.c_full, 16 * config.epilogue.c_stages),
        "load_order": (smem.load_order, 8),
    }
    parts += [(f"barrier.{name}", at, n) for name, (at, n) in rings.items()]
    parts += [
        ("response", smem.clc_response, 16 * config.tiles.clc_stages),
        ("pointer", smem.tmem_pointer, 4),
        ("unused smem", smem.end, 232_448 - smem.end),
        ("unused smem", smem.tmem_pointer + 4, smem.d_subtile - smem.tmem_pointer - 4),
    ]
    columns = [
        ("accumulator", 0, config.mainloop.accumulator_stages * config.tile.n),
        *(("tmem SFA", at, 16) for at in tmem.sfa),
        *(("tmem SFB", at, 4 * plan(config).sf_rows_b // 32) for at in tmem.sfb),
        ("unused tmem", tmem.end, size - tmem.end),
    ]
    found: dict[str, list[tuple[str, int, int]]] = {}
    for sm in range(reference.setting.sms):
        for name, at, nbytes in parts:
            found.setdefault(name, []).append((f"smem{sm}", SMEM_BASE + at, nbytes))
        for name, column, count in columns:
            for lane in range(128):
                at = lane * LANE + 4 * column
                found.setdefault(name, []).append((f"tmem{sm}", at, 4 * count))
    return found


def draw_flips(reference: Reference, count: int, seed: int) -> list[Flip]:
    """Take turns over the classes; six flips in ten follow a write at once."""
    rng = np.random.default_rng(seed)
    where = places(reference)
    turns = [n for n in where for _ in range(3 if n in MATRICES else 1)]
    steps = reference.event_at_step
    flips = []
    for i in range(count):
        name = turns[i % len(turns)]
        pieces = where[name]
        space, first, nbytes = pieces[int(rng.integers(len(pieces)))]
        address = first + int(rng.integers(nbytes))
        when = int(rng.integers(len(steps)))
        uses = reference.uses(space, address, 0)
        uses = [e for e in uses if writes(e, space, address)] or uses
        if uses and rng.random() < 0.6:
            after = uses[int(rng.integers(len(uses)))].step
            when = min(int(np.searchsorted(steps, after + 1)), len(steps) - 1)
        flips.append(Flip(name, space, address, int(rng.integers(8)), when))
    return flips


def run_with(
    reference: Reference, flip: Flip
) -> tuple[NDArray[Any], NDArray[np.uint8] | None] | HardwareFault:
    """Run once more and flip the bit before the machine step."""
    step = -1

    def inject(machine: Machine) -> None:
        nonlocal step
        step += 1
        if step == flip.when:
            sm = machine.sms[int(flip.space[4:])]
            memory = sm.smem if flip.space.startswith("smem") else sm.tmem
            memory.data[flip.address - memory.base] ^= np.uint8(1 << flip.bit)

    try:
        return reference.problem.execute(inject)
    except HardwareFault as fault:
        return fault


def same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return (a is None and b is None) or (
        a is not None and b is not None and bool((a == b).all())
    )


def check(reference: Reference, flip: Flip, wanted: Prediction) -> str:
    """Make the flip; return what came of it, or fail."""
    result = run_with(reference, flip)
    if isinstance(result, HardwareFault):
        assert "fault" in wanted.outcome or wanted.outcome == "within", str(result)
        assert isinstance(result, wanted.fault), str(result)
        assert wanted.text in str(result)
        return "fault"
    d, sfd = result
    unchanged = same(d, reference.d) and same(sfd, reference.sfd)
    if wanted.outcome == "unread":
        assert unchanged
        return "unread"
    assert wanted.outcome != "fault", "no fault was raised"
    if wanted.outcome == "within":
        assert wanted.mask is not None
        assert (d == reference.d)[~wanted.mask].all()
    else:
        assert same(d, wanted.d)
        assert same(sfd, wanted.sfd)
    return "masked" if unchanged else "changed"


@cache
def reference_of(name: str) -> Reference:
    return Reference(SETTINGS[name])


def check_many(name: str, count: int, seed: int) -> Counter[tuple[str, str]]:
    reference = reference_of(name)
    predictor = Predictor(reference)
    outcomes: Counter[tuple[str, str]] = Counter()
    for flip in draw_flips(reference, count, seed):
        wanted = predictor.predict(flip)
        print(flip, wanted.outcome)
        outcomes[flip.where, check(reference, flip, wanted)] += 1
    return outcomes


@pytest.mark.parametrize("name", SETTINGS)
def test_the_predictor_knows_the_run_without_a_flip(name: str) -> None:
    reference = reference_of(name)
    d, sfd = reference.problem.finish(reference.problem.accumulators)
    assert same(d, reference.d)
    assert same(sfd, reference.sfd)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", SETTINGS)
def test_flips_change_exactly_what_is_predicted(name: str) -> None:
    outcomes = check_many(name, 260, seed=1)
    table = {
        where: {o: n for (w, o), n in sorted(outcomes.items()) if w == where}
        for where, _ in sorted(outcomes)
    }
    print(table)
    reference = reference_of(name)
    assert set(table) == set(places(reference))
    idle = {"unused smem", "unused tmem"}
    if reference.problem.c is None:
        idle |= {"barrier.c", "barrier.load_order"}
    if reference.problem.config.tiles.scheduler == "static":
        idle |= {"barrier.clc", "barrier.throttle", "response"}
    if reference.setting.schedule == "eager":
        # Copy and MMA land in one machine step: no flip comes between them.
        idle |= {"tmem SFA", "tmem SFB"}
    for where, found in table.items():
        if where in idle:
            assert set(found) == {"unread"}, where
        elif where in MATRICES:
            assert "changed" in found, where
        elif where == "response":
            assert found.keys() - {"unread"}
        else:
            assert "fault" in found, where


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", SETTINGS)
def test_other_flips_every_day(name: str, rotating_seed: int) -> None:
    check_many(name, 40, rotating_seed)


@pytest.mark.soak
@pytest.mark.parametrize("name", SETTINGS)
def test_ten_thousand_flips(name: str, rotating_seed: int) -> None:
    check_many(name, 2500, rotating_seed)
