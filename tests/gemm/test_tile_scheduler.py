"""Every output tile once: by a static stride, by CLC, on any number of SMs."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.gemm.parts import parts
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.gemm.problem import GemmProblem
from fp4ref.gemm.roles import body
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import TileGrid, WorkTile
from fp4ref.gemm.tiles.clc_request import TileRequest
from fp4ref.gemm.tiles.clc_scheduler import ClcTileScheduler
from fp4ref.gemm.tiles.scheduler_work_iterator import SchedulerWorkIterator
from fp4ref.hardware.clc import ClcFault
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Cta, Role, Warp

Seen = dict[tuple[Any, int], list[tuple[int, int, int]]]


def walk(
    m: int,
    n: int,
    batches: int,
    config: GemmConfig,
    *,
    sms: int,
    schedule: str | int,
    only: list[tuple[int, int, int]] | None = None,
) -> Seen:
    """Run the scheduler with roles that do no work; tiles of each (CTA, warp)."""
    machine = Machine(sms, make_schedule(schedule))
    a = BlockScaled(
        np.zeros((batches, m, 32), np.uint8), np.zeros((batches, m, 2), np.uint8)
    )
    b = BlockScaled(
        np.zeros((batches, n, 32), np.uint8), np.zeros((batches, n, 2), np.uint8)
    )
    params = GemmProblem(machine, a, b, None, None, config).params
    seen: Seen = defaultdict(list)
    chosen = parts(plan(config))

    def worker(warp: Warp, storage: SharedStorage) -> Any:
        yield from init_barriers(warp, storage)
        scheduler = chosen.tile_scheduler(warp, storage)
        throttle = chosen.throttle(warp, storage)
        work = scheduler.initial_work()
        while work.valid:
            seen[warp.cta.ctaid, warp.index].append((work.m, work.n, work.l))
            if warp.index == 2:
                yield from throttle.signal()
            work = yield from scheduler.fetch_next_work()

    def asker(warp: Warp, storage: SharedStorage) -> Any:
        scheduler = plan(config).warps[WarpRole.SCHEDULER.value]
        yield from body(plan(config), scheduler)(warp, storage, chosen)

    def idle(warp: Warp, storage: SharedStorage) -> Any:
        yield from init_barriers(warp, storage)

    def kernel(cta: Cta) -> list[Role]:
        storage = SharedStorage.of(cta, plan(config), params)
        bodies = [worker, asker, worker, idle, worker, worker, worker, worker]
        return [lambda warp, body=body: body(warp, storage) for body in bodies]

    dims = params.grid.dims
    if config.tiles.scheduler == "static":
        dims = (min(sms, params.grid.count), 1, 1)
    machine.launch(kernel, dims, smem_nbytes=plan(config).smem.end, only=only)
    return dict(seen)


def tiles_once(seen: Seen) -> Counter[tuple[int, int, int]]:
    """Count tiles over CTAs, after checking that the warps of each agree."""
    by_cta: dict[Any, list[Any]] = {}
    for (cta, _), tiles in seen.items():
        assert by_cta.setdefault(cta, tiles) == tiles
    return Counter(tile for tiles in by_cta.values() for tile in tiles)


def all_tiles(m: int, n: int, batches: int, tile_n: int) -> set[tuple[int, int, int]]:
    return set(
        itertools.product(
            range((m + 127) // 128), range((n + tile_n - 1) // tile_n), range(batches)
        )
    )


@pytest.mark.parametrize("sms", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("scheduler", ["clc", "static"])
@pytest.mark.parametrize("schedule", ["eager", "late", "seed"])
def test_every_tile_is_taken_once(
    sms: int, scheduler: Any, schedule: str, rotating_seed: int
) -> None:
    shapes = itertools.product((1, 129, 384, 640), (64, 192, 448), (1, 3))
    for number, (m, n, batches) in enumerate(shapes):
        config = GemmConfig.nvfp4(
            scheduler=scheduler,
            raster="mn"[number % 2],
            tile_n=(64, 128)[number // 2 % 2],
            clc_stages=1 + number % 3,
        )
        seed = rotating_seed + number
        counted = tiles_once(
            walk(
                m,
                n,
                batches,
                config,
                sms=sms,
                schedule=seed if schedule == "seed" else schedule,
            )
        )
        wanted = all_tiles(m, n, batches, config.tile.n)
        assert counted == Counter(dict.fromkeys(wanted, 1)), (m, n, batches)


@pytest.mark.parametrize("seed_block", range(2))
def test_fifty_seeds_cover_a_grid_on_three_sms(
    seed_block: int, rotating_seed: int
) -> None:
    for seed in range(
        rotating_seed + 25 * seed_block, rotating_seed + 25 * seed_block + 25
    ):
        print(f"schedule seed {seed}")
        seen = walk(500, 300, 1, GemmConfig(), sms=3, schedule=seed)
        assert tiles_once(seen) == Counter(
            dict.fromkeys(all_tiles(500, 300, 1, 128), 1)
        )


def test_clc_starts_one_cta_on_each_sm_and_cancels_the_rest() -> None:
    a, b = wide_pair(0, 640, 256, 32)
    run = fp4ref.run(a, b, sms=3, trace=False)
    assert (run.stats["cta"], run.stats["clc.canceled"]) == (3, 7)
    assert run.stats["clusterlaunchcontrol.try_cancel"] == 10


def test_a_static_schedule_strides_by_the_number_of_ctas() -> None:
    seen = walk(
        640, 256, 1, GemmConfig.nvfp4(scheduler="static"), sms=3, schedule="eager"
    )
    assert seen[(1, 0, 0), 0] == [(1, 0, 0), (4, 0, 0), (2, 1, 0)]


def test_an_only_list_is_all_that_clc_hands_out() -> None:
    chosen = [(0, 0, 0), (3, 1, 0), (4, 0, 0)]
    seen = walk(640, 256, 1, GemmConfig(), sms=1, schedule="late", only=chosen)
    assert tiles_once(seen) == Counter(chosen)


def test_asking_again_after_a_failure_is_a_fault() -> None:
    """The scheduler itself never does; here a role asks on and on."""
    machine = Machine(1)
    a, b = wide_pair(0, 1, 1, 32)
    config = GemmConfig()
    params = GemmProblem(machine, a, b, None, None, config).params

    def ask_on(warp: Warp, storage: SharedStorage) -> Any:
        yield from init_barriers(warp, storage)
        scheduler = ClcTileScheduler(warp, storage)
        work = SchedulerWorkIterator(warp, storage, scheduler, TileRequest)
        for _ in range(2):
            yield from work.advance_to_next_work()
            yield from work.next()

    def idle(warp: Warp, storage: SharedStorage) -> Any:
        yield from init_barriers(warp, storage)

    def kernel(cta: Cta) -> list[Role]:
        storage = SharedStorage.of(cta, plan(config), params)
        return [lambda w, b=b: b(w, storage) for b in [idle, ask_on, *[idle] * 6]]

    with pytest.raises(ClcFault, match="after a request that found no cluster left"):
        machine.launch(kernel, (1, 1, 1))


@pytest.mark.parametrize(
    ("m", "n"),
    list(itertools.product((1, 127, 128, 129, 384, 640), (64, 192, 256, 448))),
)
def test_b33_every_element_of_d_is_stored_once(m: int, n: int) -> None:
    """The coverage count is one everywhere."""
    number = m + n
    config = GemmConfig.nvfp4(
        scheduler=("clc", "static")[number % 2], tile_n=(64, 128)[number // 64 % 2]
    )
    a, b = wide_pair(0, m, n, 32)
    run = fp4ref.run(a, b, config=config, sms=1 + number % 3, schedule=number)
    assert run.trace is not None
    base = next(at for name, at, _ in run.meta["allocations"] if name == "D")
    pitch = -(-n // 4) * 16
    counts = np.zeros(m * pitch, np.int64)
    for e in run.trace.select(operation="cp.async.bulk.tensor.3d.store"):
        for where in e.writes:
            for row in range(where.rows):
                first = where.start - base + row * where.pitch
                counts[first : first + where.nbytes] += 1
    counts = counts.reshape(m, pitch)
    assert (counts[:, : 4 * n] == 1).all()
    assert (counts[:, 4 * n :] == 0).all()


@pytest.mark.parametrize("raster", ["m", "n"])
def test_grid_and_tile_are_inverses(raster: str) -> None:
    grid = TileGrid(3, 5, 2, raster)
    assert grid.count == 30
    assert grid.dims == ((3, 5, 2) if raster == "m" else (5, 3, 2))
    by_number = [grid.tile_of_number(i) for i in range(30)]
    assert len(set(by_number)) == 30
    for work in by_number:
        assert grid.tile(grid.ctaid(work.m, work.n, work.l)) == work
        assert work.valid
    fast = [(w.m, w.n) for w in by_number[:2]]
    assert fast == ([(0, 0), (1, 0)] if raster == "m" else [(0, 0), (0, 1)])


def test_numbers_beyond_the_grid_are_no_work() -> None:
    grid = TileGrid(3, 5, 2, "m")
    assert grid.tile_of_number(30) == WorkTile(0, 0, 0, False)
    assert not grid.tile((3, 0, 0)).valid
    assert not grid.tile((0, 5, 0)).valid


@pytest.mark.parametrize(
    ("m", "n", "tile_n", "tiles"),
    [
        (1, 1, 128, (1, 1)),
        (128, 128, 64, (1, 2)),
        (129, 65, 64, (2, 2)),
        (300, 300, 128, (3, 3)),
    ],
)
def test_tiles_cover_the_output(
    m: int, n: int, tile_n: int, tiles: tuple[int, int]
) -> None:
    grid = TileGrid.of(m, n, 1, GemmConfig.nvfp4(tile_n=tile_n))
    assert (grid.tiles_m, grid.tiles_n) == tiles
