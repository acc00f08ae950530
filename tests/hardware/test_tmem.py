"""tmem: the allocator, lane quarters, and the shapes of ld and st."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, TILE, launch, machine

from fp4ref.errors import (
    DeadlockError,
    DescriptorFault,
    ExitFault,
    LaneQuarterViolation,
    NotModelled,
    ReadWhileInFlight,
    RegistersNotReady,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware import named_barrier, smem, tmem
from fp4ref.hardware.advisory import Advisory


def allocated(columns, *steps):
    """One warp that allocates, does the steps with the address, and frees."""

    def body(warp):
        yield from tmem.alloc(warp, BASE, columns)
        taddr = int(smem.ld(warp, BASE, 4).view("<u4")[0])
        for step in steps:
            result = step(warp, taddr)
            if result is not None:
                yield from result
        tmem.dealloc(warp, taddr, columns)

    return body


@pytest.mark.parametrize("columns", [32, 64, 128, 256, 512])
def test_alloc_writes_an_address_and_dealloc_frees(columns):
    seen = []

    def step(warp, taddr):
        seen.append((taddr, warp.tmem.allocated))

    on = launch(machine(), allocated(columns, step))
    assert seen == [(0, columns)]
    assert on.sms[0].tmem.allocated == 0


@pytest.mark.parametrize("columns", [0, 1, 16, 31, 33, 48, 96, 608, 1024])
def test_column_count_is_a_power_of_two(columns):
    with pytest.raises(TmemAllocationFault, match=r"power of two in 32\.\.512"):
        launch(machine(), allocated(columns))


def several(*sizes):
    def body(warp):
        addresses = []
        for i, size in enumerate(sizes):
            yield from tmem.alloc(warp, BASE + 4 * i, size)
            addresses.append(int(smem.ld(warp, BASE + 4 * i, 4).view("<u4")[0]))
        for address, size in zip(addresses, sizes, strict=True):
            tmem.dealloc(warp, address, size)
        spans = [set(range(a, a + s)) for a, s in zip(addresses, sizes, strict=True)]
        assert len(set().union(*spans)) == sum(sizes)

    return body


def test_several_allocations_do_not_overlap():
    launch(machine(), several(256, 128, 64, 32, 32))


def test_allocations_take_the_first_free_columns():
    """What is free, not how much, is this machine's own choice."""
    on = machine(trace=True)
    launch(on, several(256, 64, 64, 32))
    allocs = [e for e in on.recorder.trace if e.operation == "tcgen05.alloc"]
    assert [e.operands["taddr"] for e in allocs] == [0, 256, 320, 384]


def test_successive_allocations_do_not_grow():
    launch(machine(), several(64, 64))
    with pytest.raises(TmemAllocationFault, match="must not grow"):
        launch(machine(), several(32, 64))


@pytest.mark.parametrize("sizes", [(512, 32), (256, 128, 128, 32)])
def test_b32_more_than_512_columns_blocks_and_says_so(sizes):
    with pytest.raises(DeadlockError, match="512 of 512 in use") as caught:
        launch(machine(), several(*sizes))
    assert caught.value.edges[0][2] == "a tcgen05.dealloc on the same SM"


def test_b32_rounding_up():
    for need, columns in [(1, 32), (33, 64), (192, 256), (384, 512), (396, 512)]:
        with pytest.raises(TmemAllocationFault):
            launch(machine(), allocated(need))
        launch(machine(), allocated(columns))


def test_a_blocked_alloc_goes_on_after_a_dealloc():
    order = []

    def first(warp):
        yield from tmem.alloc(warp, BASE, 512)
        yield from named_barrier.sync(warp, 1, 96)
        order.append("free")
        tmem.dealloc(warp, 0, 512)

    def later(warp):
        yield from named_barrier.sync(warp, 1, 96)
        at = BASE + 4 * warp.index
        yield from tmem.alloc(warp, at, 512)
        order.append("got")
        tmem.dealloc(warp, 0, 512)

    for schedule in ("eager", "late", *range(10)):
        order.clear()
        launch(machine(schedule), first, later, later)
        assert order == ["free", "got", "got"]


def test_no_alloc_after_relinquish():
    def step(warp, taddr):
        tmem.relinquish_alloc_permit(warp)
        return tmem.alloc(warp, BASE + 4, 32)

    with pytest.raises(TmemAllocationFault, match="gave up the permit"):
        launch(machine(), allocated(256, step))


def test_permit_and_sizes_are_fresh_for_the_next_cta():
    def step(warp, taddr):
        tmem.relinquish_alloc_permit(warp)

    def body(warp):
        return allocated(32 << warp.cta.ctaid[0], step)(warp)

    launch(machine(), body, grid=(3, 1, 1))


@pytest.mark.parametrize(
    ("taddr", "columns"), [(32, 64), (0, 32), (0, 128), (1 << 16, 64)]
)
def test_dealloc_names_one_allocation(taddr, columns):
    def step(warp, _):
        with pytest.raises(TmemAllocationFault, match="address and size of one live"):
            tmem.dealloc(warp, taddr, columns)

    launch(machine(), allocated(64, step))


def test_double_dealloc():
    with pytest.raises(TmemAllocationFault, match="one live alloc"):
        launch(machine(), allocated(64, lambda w, t: tmem.dealloc(w, t, 64)))


def test_leak_at_exit():
    with pytest.raises(ExitFault, match="64 TMEM columns are allocated at exit"):
        launch(machine(), lambda w: tmem.alloc(w, BASE, 64))


@pytest.mark.parametrize(("column", "repeat"), [(64, 1), (60, 8), (511, 1), (0, 128)])
def test_only_allocated_columns(column, repeat):
    def step(warp, taddr):
        tmem.ld(warp, column, "32x32b", repeat)

    with pytest.raises(TmemAllocationFault, match="not all allocated"):
        launch(machine(), allocated(64, step))


def test_beyond_column_512():
    def step(warp, taddr):
        tmem.ld(warp, 500, "32x32b", 16)

    with pytest.raises(TmemAllocationFault, match="0x1f4 to 0x203"):
        launch(machine(), allocated(512, step))


# -- fragments


def cell_of(shape, t, j, split=0):
    """Lane and column, from the base, of register j of thread t. PTX's figures."""
    if shape == "32x32b":
        return t, j
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), 2 * j + (t // 2) % 2
    if shape == "16x128b":
        return t // 4 + 8 * (j % 2), 4 * (j // 2) + t % 4
    if shape == "16x256b":
        row = t // 4 + 8 * ((j % 4) // 2)
        return row, 8 * (j // 4) + 2 * (t % 4) + j % 2
    assert shape == "16x32bx2"
    return t % 16, j + (split if t >= 16 else 0)


REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
LARGEST = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}
REPEATS = [(s, 1 << i) for s, m in LARGEST.items() for i in range(m.bit_length())]


@pytest.mark.parametrize(("shape", "repeat"), REPEATS)
@pytest.mark.parametrize("warp_index", [0, 3])
def test_st_and_ld_by_the_formula(shape, repeat, warp_index):
    split = 200 if shape == "16x32bx2" else 0
    half = 16 if shape != "32x32b" and repeat % 2 == 0 else 0
    quarter = 32 * warp_index
    words = np.arange(32 * REGISTERS[shape] * repeat, dtype=np.uint32) * 2654435761
    words = words.astype(np.uint32).reshape(32, -1)
    first = 3 if shape in ("32x32b", "16x32bx2") else 0

    def step(warp, taddr):
        at = (quarter + half) << 16 | first
        tmem.st(warp, at, words, shape, repeat, split)
        yield from tmem.wait_st(warp)
        cells = warp.tmem.cells
        written = warp.tmem.written.reshape(128, 512, 4).all(2)
        expected = {}
        for t in range(32):
            for j in range(words.shape[1]):
                lane, column = cell_of(shape, t, j, split)
                expected[quarter + half + lane, first + column] = words[t, j]
        assert len(expected) == words.size
        assert written.sum() == words.size
        for (lane, column), word in expected.items():
            assert cells[lane, column] == word
            assert written[lane, column]
        registers = tmem.ld(warp, at, shape, repeat, split)
        yield from tmem.wait_ld(warp)
        np.testing.assert_array_equal(registers.words, words)

    bodies = [lambda w: None] * warp_index + [allocated(512, step)]
    launch(machine("late"), *bodies)


def test_the_two_halves_of_16x32bx2_may_be_neighbours_but_not_overlap():
    words = np.arange(128, dtype=np.uint32).reshape(32, 4)

    def step(split):
        def run(warp, taddr):
            tmem.st(warp, 0, words, "16x32bx2", 4, split)
            yield from tmem.wait_st(warp)
            np.testing.assert_array_equal(warp.tmem.cells[:16, :4], words[:16])
            np.testing.assert_array_equal(warp.tmem.cells[:16, 4:8], words[16:])

        return run

    launch(machine(), allocated(512, step(4)))
    with pytest.raises(DescriptorFault, match="different columns"):
        launch(machine(), allocated(512, step(3)))


@pytest.mark.parametrize(
    ("warp_index", "lane"), [(0, 32), (1, 0), (1, 64), (2, 96), (3, 0), (5, 0), (0, 8)]
)
def test_a_warp_reaches_only_its_own_quarter(warp_index, lane):
    def step(warp, taddr):
        tmem.ld(warp, lane << 16, "32x32b", 1)

    bodies = [lambda w: None] * warp_index + [allocated(32, step)]
    with pytest.raises(LaneQuarterViolation, match="32 \\* \\(warp % 4\\)") as caught:
        launch(machine(), *bodies)
    assert f"warp {warp_index} reaches lanes {32 * (warp_index % 4)}" in str(
        caught.value
    )


def test_warps_4_to_7_have_the_quarters_0_to_3():
    def step(warp, taddr):
        word = np.full((32, 1), warp.index, np.uint32)
        tmem.st(warp, (32 * (warp.index - 4)) << 16, word)
        yield from tmem.wait_st(warp)

    def other(warp):
        yield from named_barrier.sync(warp, 1, 160)
        yield from step(warp, 0)
        yield from named_barrier.sync(warp, 2, 160)

    def owner(warp):
        yield from tmem.alloc(warp, BASE, 32)
        yield from named_barrier.sync(warp, 1, 160)
        yield from named_barrier.sync(warp, 2, 160)
        np.testing.assert_array_equal(
            warp.tmem.cells[:, 0], np.repeat([4, 5, 6, 7], 32)
        )
        tmem.dealloc(warp, 0, 32)

    launch(machine(), owner, *[lambda w: None] * 3, *[other] * 4)


def test_lanes_8_to_23_are_not_modelled():
    with pytest.raises(NotModelled, match="multiple of 16 lanes"):
        launch(
            machine(),
            allocated(32, lambda w, t: tmem.ld(w, 8 << 16, "16x64b", 1) and None),
        )


@pytest.mark.parametrize(
    ("shape", "repeat"),
    [("32x32b", 3), ("32x32b", 256), ("16x128b", 128), ("16x256b", 64), ("16x64b", 0)],
)
def test_repeat(shape, repeat):
    def step(warp, taddr):
        tmem.ld(warp, taddr, shape, repeat)

    with pytest.raises(DescriptorFault, match="power of two up to"):
        launch(machine(), allocated(512, step))


def test_unknown_shape():
    def step(warp, taddr):
        tmem.ld(warp, taddr, "32x64b", 1)

    with pytest.raises(DescriptorFault, match="32x64b"):
        launch(machine(), allocated(32, step))


def test_wrong_number_of_registers():
    def step(warp, taddr):
        tmem.st(warp, taddr, np.zeros((32, 2), np.uint32), "16x256b", 1)

    with pytest.raises(DescriptorFault, match="4 registers of each of 32 threads"):
        launch(machine(), allocated(32, step))


# -- asynchronous


def filled(warp, taddr):
    tmem.st(warp, taddr, np.arange(32, dtype=np.uint32).reshape(32, 1))
    return tmem.wait_st(warp)


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_registers_are_not_overwritten_before_wait_ld(schedule):
    def step(warp, taddr):
        tmem.ld(warp, taddr).overwrite()
        yield from tmem.wait_ld(warp)

    with pytest.raises(RegistersNotReady, match="wait::ld first"):
        launch(machine(schedule), allocated(32, filled, step))
    launch(machine(schedule, ordering="shipped"), allocated(32, filled, step))


def test_wait_ld_covers_the_loads_before_it_only():
    def step(warp, taddr):
        first = tmem.ld(warp, taddr)
        yield from tmem.wait_ld(warp)
        second = tmem.ld(warp, taddr)
        first.overwrite()
        with pytest.raises(RegistersNotReady):
            second.overwrite()
        yield from tmem.wait_ld(warp)
        assert not warp.tmem_accesses

    launch(machine("late"), allocated(32, filled, step))


@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
def test_the_first_use_lands_a_load(ordering):
    on = machine("late", ordering=ordering)

    def step(warp, taddr):
        registers = tmem.ld(warp, taddr)
        np.testing.assert_array_equal(registers.words[:, 0], range(32))

    launch(on, allocated(32, filled, step))
    assert on.advisories == {Advisory.LOAD_WITHOUT_WAIT.value: 1}


def test_st_then_ld_needs_wait_st():
    def step(warp, taddr):
        tmem.st(warp, taddr, np.zeros((32, 1), np.uint32))
        tmem.ld(warp, taddr)

    with pytest.raises(ReadWhileInFlight, match=r"tcgen05\.st in flight writes"):
        launch(machine("late"), allocated(32, step))


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
def test_shipped_ordering_lets_a_load_follow_a_store_of_its_warp(schedule):
    on = machine(schedule, ordering="shipped")

    def step(warp, taddr):
        tmem.st(warp, taddr, np.arange(32, dtype=np.uint32).reshape(32, 1))
        registers = tmem.ld(warp, taddr)
        yield from tmem.wait_ld(warp)
        np.testing.assert_array_equal(registers.words[:, 0], range(32))
        yield from tmem.wait_st(warp)

    launch(on, allocated(32, step))
    assert on.advisories == {Advisory.LOAD_AFTER_STORE.value: 1}


def test_st_keeps_the_values_it_was_given():
    def step(warp, taddr):
        words = np.arange(32, dtype=np.uint32).reshape(32, 1)
        tmem.st(warp, taddr, words)
        words[:] = 0
        yield from tmem.wait_st(warp)
        np.testing.assert_array_equal(warp.tmem.cells[:32, 0], range(32))

    launch(machine("late"), allocated(32, step))


def test_never_written_cells():
    def step(warp, taddr):
        tmem.ld(warp, taddr, "32x32b", 2)
        yield from tmem.wait_ld(warp)

    with pytest.raises(UninitialisedRead, match="lane 0 column 0x1"):
        launch(machine(), allocated(32, filled, step))


def test_dealloc_forgets_the_values():
    def body(warp):
        for _ in range(2):
            yield from tmem.alloc(warp, TILE, 32)
            if _ == 1:
                tmem.ld(warp, 0)
            else:
                yield from filled(warp, 0)
            tmem.dealloc(warp, 0, 32)

    with pytest.raises(UninitialisedRead):
        launch(machine(), body)
