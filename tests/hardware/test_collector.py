"""The collector buffer of A: what uses it gives what A's memory gives, or a fault."""

from __future__ import annotations

import mma_tiles
import numpy as np
import pair_tiles
import pytest
import test_mma_unscaled as unscaled
from on_machine import launch, machine

from fp4ref.errors import CollectorFault
from fp4ref.hardware import mma_mxf8f6f4, mma_unscaled, tcgen05
from fp4ref.hardware.collector import COLLECTOR_USAGES

SCHEDULES = ["eager", "late", 1]
B_STEP = 32 * 128
"""Bytes from one N = 32 tile of B to the next."""


def block_scaled(warp, usage, *, d=0, b=0, a=mma_tiles.A_AT, negate=0, **options):
    word = mma_tiles.idesc(32, negate_a=negate)
    at = mma_tiles.descriptor(a), mma_tiles.descriptor(mma_tiles.B_AT + b * B_STEP)
    scales = mma_tiles.SFA, mma_tiles.SFB
    tcgen05.mma(warp, d, *at, word, *scales, False, collector=usage, **options)


def mxf8f6f4(warp, usage, *, d=0, b=0, a=mma_tiles.A_AT, negate=0):
    word = 1 << 23 | 32 >> 3 << 17 | 1 << 27 | negate << 13
    at = mma_tiles.descriptor(a), mma_tiles.descriptor(mma_tiles.B_AT + b * B_STEP)
    scales = mma_tiles.SFA, mma_tiles.SFB
    mma_mxf8f6f4.mma(warp, d, *at, word, *scales, False, collector=usage)


def plain(warp, usage, *, d=0, b=0, a=unscaled.A_AT, negate=0, kind="f16"):
    word = unscaled.idesc(32, negate_a=negate)
    at = unscaled.descriptor(a), unscaled.descriptor(unscaled.B_AT + b * B_STEP)
    mma_unscaled.mma(warp, d, *at, word, False, kind=kind, collector=usage)


MMAS = {"mxf4nvf4": block_scaled, "mxf8f6f4": mxf8f6f4, "f16": plain}


def launched(kind, *steps, schedule="late", races=None):
    """D in columns 0 to 127 after the steps, as bits."""
    module = unscaled if kind == "f16" else mma_tiles
    got = []

    def after(warp):
        yield from module.commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :128].copy())

    first = [] if kind == "f16" else [mma_tiles.easy_scales]
    body = module.with_tmem(*first, *steps, after)
    launch(machine(schedule, races=races), body, setup=module.put_memory)
    return got[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", MMAS)
def test_a_sequence_gives_what_a_from_memory_gives(kind, schedule):
    mma = MMAS[kind]

    def sequence(*usages):
        def steps(warp):
            for b, usage in enumerate(usages):
                mma(warp, usage, d=32 * b, b=b)

        return launched(kind, steps, schedule=schedule)

    found = sequence("fill", "use", "use", "lastuse")
    np.testing.assert_array_equal(found, sequence(*["discard"] * 4))
    parts = np.split(found, 4, axis=1)
    assert not any(np.array_equal(parts[0], part) for part in parts[1:])


ENDINGS = {
    "nothing before": [],
    "no fill": ["discard"],
    "after lastuse": ["fill", "lastuse"],
    "after discard": ["fill", "discard"],
    "after a use and lastuse": ["fill", "use", "lastuse"],
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("usage", ["use", "lastuse"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", MMAS)
def test_a_use_needs_a_valid_fill(kind, ending, usage, schedule):
    def steps(warp):
        for before in ENDINGS[ending]:
            MMAS[kind](warp, before)
        MMAS[kind](warp, usage)

    with pytest.raises(CollectorFault, match=f"{usage} with nothing in the collector"):
        launched(kind, steps, schedule=schedule)


@pytest.mark.parametrize(
    "other", [{"a": mma_tiles.A_AT + 32}, {"negate": 1}], ids=["place", "sign"]
)
@pytest.mark.parametrize("kind", MMAS)
def test_a_use_names_the_a_that_was_filled(kind, other):
    def steps(warp):
        MMAS[kind](warp, "fill")
        MMAS[kind](warp, "use", **other)

    with pytest.raises(CollectorFault, match="another A"):
        launched(kind, steps)


def test_another_type_is_another_a():
    def steps(warp):
        plain(warp, "fill")
        plain(warp, "lastuse", kind="f8f6f4")

    with pytest.raises(CollectorFault, match="another A"):
        launched("f16", steps)


def test_a_new_fill_replaces_the_old_one():
    def steps(warp):
        plain(warp, "fill", a=unscaled.A_AT + 32)
        plain(warp, "fill")
        plain(warp, "lastuse")

    def alone(warp):
        plain(warp, "discard")

    found = launched("f16", steps)[:, :32]
    np.testing.assert_array_equal(found, launched("f16", alone)[:, :32])


@pytest.mark.parametrize("kind", MMAS)
def test_the_memory_of_a_stays_as_it_was(kind):
    module = unscaled if kind == "f16" else mma_tiles

    def steps(warp):
        MMAS[kind](warp, "fill")
        yield from module.commit_and_wait(warp)
        warp.smem.poke(module.A_AT, ~module.MEMORY[:16])
        MMAS[kind](warp, "use")
        yield from module.commit_and_wait(warp, 1)

    with pytest.raises(CollectorFault, match="A has changed"):
        launched(kind, steps)


def test_each_cta_of_a_pair_has_its_own_buffer():
    """Both fill, both use: each half of D is what it is without the buffer."""

    def product(usages):
        def steps(warp):
            if warp.cta.rank == 0:
                for cta in warp.cta.cluster.ctas:
                    for lane in range(128):
                        scales = np.full(64, 0x38, np.uint8)
                        cta.tmem.poke(lane * 2048 + 4 * pair_tiles.SFA, scales)
            yield from pair_tiles.sync(warp)
            yield from issue(warp)

        def mma(usage, b):
            def step(warp):
                tcgen05.mma(
                    warp,
                    32 * b,
                    pair_tiles.descriptor(pair_tiles.A_AT),
                    pair_tiles.descriptor(pair_tiles.B_AT + b * B_STEP),
                    mma_tiles.idesc(32, 256),
                    pair_tiles.SFA,
                    pair_tiles.SFB,
                    False,
                    cta_group=2,
                    collector=usage,
                )

            return step

        issue = pair_tiles.by_leader(*(mma(u, b) for b, u in enumerate(usages)))
        memory = pair_tiles.memories()
        on = pair_tiles.run_pair(pair_tiles.in_pair(steps), memory=memory)
        return [sm.tmem.cells[:, :64].copy() for sm in on.sms]

    found, want = product(["fill", "lastuse"]), product(["discard", "discard"])
    np.testing.assert_array_equal(found, want)
    with pytest.raises(CollectorFault, match="nothing in the collector"):
        product(["discard", "use"])


def test_usages_are_ptx_words():
    assert COLLECTOR_USAGES == ("fill", "use", "lastuse", "discard")
