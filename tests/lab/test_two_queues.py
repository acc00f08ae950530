"""The model of document 003's kernel: limits that can be worked out, and its fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fp4ref.errors import InputError
from fp4ref.hardware.timing import Durations
from fp4ref.lab.bounds import issue_interval
from fp4ref.lab.fitted import FILE, Fitted, fitted, read, rows
from fp4ref.lab.records import CYCLES, records
from fp4ref.lab.two_queues import Kernel, steady
from fp4ref.lab.variants import VARIANTS, kernel
from fp4ref.lab.workload import workloads
from fp4ref.parameters import Corner, published

CLOCK = Durations.of()
PLAIN = Kernel(to_first_mma=0, to_last_mma=0, switch=0)
FREE = replace(PLAIN, passes_through_l1=0, store_passes=0)
NO_WORK = Fitted(own_work=0, unevenness=0, port_shared=0)


def test_it_takes_the_machines_durations() -> None:
    """The stage of the model is four MMAs of the interval that `bounds` has."""
    machine = published().machine(Corner.PUBLISHED)
    clock = Durations.ideal(smem_bandwidth=128, mma_column=CLOCK.mma_column)
    found = steady(FREE, clock, NO_WORK)
    assert found["tile"] == pytest.approx(24 * issue_interval(256, 256, 2, machine))


def test_it_knows_the_products_tiles_and_stages() -> None:
    work, found = workloads()["003"], kernel(())
    assert found is not None
    assert found.tiles == work.tiles // 74
    assert found.k_iterations == work.k_tiles
    assert found.stage_nbytes == work.operand_nbytes
    assert found.tile_nbytes == work.d_nbytes


def test_loads_alone_take_their_bytes() -> None:
    clock = Durations.ideal(tma_fill_bandwidth=16.0)
    found = steady(FREE, clock, NO_WORK)
    # A tile's first stage waits for the last MMA that reads stage 0, or for the line.
    assert found["tile"] == pytest.approx(6 * 32_768 / 16)


def test_the_port_is_shared_by_all_that_goes_through_it() -> None:
    clock = Durations.ideal(smem_bandwidth=16.0)
    alone = steady(FREE, clock, NO_WORK)["tile"]
    shared = steady(FREE, clock, replace(NO_WORK, port_shared=1))["tile"]
    assert alone == pytest.approx(6 * 32_768 / 16)
    assert shared == pytest.approx(2 * alone)


def test_an_epilogue_alone_takes_its_work() -> None:
    found = steady(FREE, Durations.ideal(), replace(NO_WORK, own_work=5000))
    assert found["tile"] == pytest.approx(5000)
    assert found["phase 1"] == pytest.approx(5000)
    assert found["epi wait"] == pytest.approx(5000)
    two = replace(FREE, epilogue_warps=2)
    found = steady(two, Durations.ideal(), replace(NO_WORK, own_work=5000))
    assert found["tile"] == pytest.approx(10_000)


def test_rows_of_phase_2b_are_loads_one_after_another() -> None:
    clock = Durations.ideal(smem_load_latency=29.0, smem_bandwidth=1e30)
    assert steady(PLAIN, clock, NO_WORK)["phase 2B"] == 32 * 29


def test_two_accumulators_let_either_side_be_one_tile_ahead() -> None:
    """The longer side alone decides, when every tile takes the same time."""
    clock = Durations.ideal(smem_bandwidth=128.0, mma_column=0.5)
    for own, tile in ((1000, 3072), (3000, 3072), (4000, 4000)):
        found = steady(FREE, clock, replace(NO_WORK, own_work=own))
        assert found["tile"] == pytest.approx(tile)


def test_uneven_tiles_make_both_sides_wait() -> None:
    clock = Durations.ideal(smem_bandwidth=128.0, mma_column=0.5)
    even = replace(NO_WORK, own_work=3072)
    found = steady(FREE, clock, replace(even, unevenness=0.2))
    assert found["tile"] > 1.05 * steady(FREE, clock, even)["tile"]
    assert min(found["epi wait"], found["ml wait"]) > 50


def test_an_early_barrier_never_slows_a_tile_that_nothing_else_slows() -> None:
    parts = Fitted(own_work=4000, unevenness=0.1, port_shared=0)
    late = steady(PLAIN, CLOCK, parts)
    early = steady(replace(PLAIN, early_release=True), CLOCK, parts)
    assert early["tile"] <= late["tile"]
    assert early["epi wait"] < late["epi wait"]


def test_the_same_bytes_on_two_runs() -> None:
    steady.cache_clear()
    first = steady(Kernel(), CLOCK, fitted())
    steady.cache_clear()
    assert steady(Kernel(), CLOCK, fitted()) == first


def test_every_switch_of_a_record_is_known_or_refused_with_a_reason() -> None:
    for id in records():
        for name in records().switches(id):
            assert VARIANTS[name].reason
    assert kernel(("six_epilogue_warps",)) is None
    with pytest.raises(InputError, match=r"^switch 'none': there is none; there are"):
        kernel(("none",))


def worst(unevenness: float, port_shared: float) -> float:
    """Largest error over the seven counts."""
    cycles = records().cycles
    parts = replace(fitted(), unevenness=unevenness, port_shared=port_shared)
    base = kernel(())
    assert base is not None
    found = steady(base, CLOCK, parts)
    return max(abs(found[name] / cycles[name] - 1) for name in CYCLES)


def test_the_own_work_is_what_phase_1_leaves_beside_its_bytes() -> None:
    base = kernel(())
    assert base is not None
    nbytes = base.passes_through_l1 * base.tile_nbytes
    left = records().cycles["phase 1"] - nbytes / CLOCK.smem_bandwidth
    assert fitted().own_work == left


def test_no_neighbour_fits_the_baseline_better() -> None:
    """The stored fit is the best of its grid, as far as one step."""
    parts = fitted()
    best = worst(parts.unevenness, parts.port_shared)
    assert best < 0.1
    for step in (-0.01, 0.01):
        assert worst(parts.unevenness + step, parts.port_shared) > best
    assert worst(parts.unevenness, parts.port_shared - 0.05) > best


@pytest.mark.soak
def test_nothing_of_the_whole_grid_fits_better() -> None:
    def grid() -> Iterator[tuple[float, float]]:
        for share in range(21):
            for uneven in range(31):
                yield uneven / 100, share / 20

    found = min(grid(), key=lambda each: worst(*each))
    assert found == (fitted().unevenness, fitted().port_shared)


def test_a_fit_stays_within_its_published_range() -> None:
    for row in rows():
        if row.published:
            asked = published()[row.published]
            assert (row.low, row.high) == (asked.low, asked.high)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value = 0.17", "value = -1", "unevenness: value = -1: need a finite number"),
        ("value = 0.17", "value = nan", "unevenness: value = nan: need a finite"),
        ("value = 0.17", "value = 0.9", "unevenness: the value lies outside of low"),
        ("value = 0.17", "values = 0.17", "unevenness: need name, unit, fits,"),
        ("value = 0.17", "value = true", "unevenness: value = True: need a number"),
        ('fits = "epi wait"', "fits = 3", "unevenness: fits: need a text"),
    ],
)
def test_a_damaged_fit_is_refused_with_file_and_line(
    old: str, new: str, said: str
) -> None:
    from importlib import resources

    text = resources.files("fp4ref.data").joinpath("lab_fitted.toml").read_text()
    assert FILE.endswith("lab_fitted.toml")
    before = text[: text.index('name = "unevenness"')]
    line = before.count("\n")
    with pytest.raises(InputError) as caught:
        read(text.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(f"mine.toml:{line}: {said}")
    with pytest.raises(InputError, match=r"^mine.toml:1: need one row for each of"):
        read(before[: before.rindex("[[fitted]]")], "mine.toml")
    with pytest.raises(InputError, match=r"^mine.toml: no TOML"):
        read("=", "mine.toml")
