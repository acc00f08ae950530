"""Split-K: slices of K, their sums in a stated order, and one epilogue for a tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_cases import Case
from oracle_problem import Problem
from raw_bits import assert_bits_equal
from wide_operands import wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.cuda_kernel import launch_ptx
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError, InputError
from fp4ref.gemm.load import tma_loader
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.gemm.split_k import SplitK
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware.machine import Machine

ONE, TWO = 0x38, 0x40
"""UE4M3 1.0 and 2.0; the E2M1 code of 1.0 is 2."""

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
BACKENDS = ["emulator", pytest.param("ptx", marks=needs_nvrtc)]


def ones(*scales: int, rows: int = 128) -> BlockScaled:
    """Rows of ones, with these scales for their blocks of 16."""
    codes = np.full((rows, 16 * len(scales)), 2, np.uint8)
    return BlockScaled(codes, np.tile(np.array(scales, np.uint8), (rows, 1)))


TWO_K_TILES = ones(*[ONE] * 16, *[TWO] * 16)
"""256 products of 1 and 256 of 4: 1280."""


def integers(seed: int, rows: int, k: int) -> BlockScaled:
    """Small whole numbers: every order of addition gives the same float32."""
    codes = np.random.default_rng(seed).choice([2, 4, 5, 10, 12, 13], (rows, k))
    return BlockScaled(codes.astype(np.uint8), np.full((rows, k // 16), ONE, np.uint8))


def d_of(
    a: BlockScaled, b: BlockScaled, backend: Any = "emulator", **asked: Any
) -> Any:
    """Return D of a run without a race."""
    run = fp4ref.run(a, b, config=GemmConfig.nvfp4(**asked), backend=backend)
    assert run.verdict == "clean"
    assert run.written.all()
    return run.d


# -- which k-tiles ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k_tiles", "splits", "slices"),
    [
        (2, 1, [(0, 2)]),
        (2, 2, [(0, 1), (1, 1)]),
        (7, 3, [(0, 3), (3, 2), (5, 2)]),
        (8, 3, [(0, 3), (3, 3), (6, 2)]),
        (2, 4, [(0, 1), (1, 1), (2, 0), (2, 0)]),
    ],
)
def test_the_first_splits_have_the_rest(
    k_tiles: int, splits: int, slices: list[tuple[int, int]]
) -> None:
    """CUTLASS's big units come first; splits beyond the k-tiles have none."""
    found = SplitK(k_tiles, splits)
    numbers = range(splits)
    assert [(found.k_idx(i), found.k_tile_count(i)) for i in numbers] == slices
    last = min(splits, k_tiles) - 1
    assert [found.is_final_split(i) for i in numbers] == [i == last for i in numbers]


@pytest.mark.parametrize("raster", ["m", "n"])
@pytest.mark.parametrize("cluster", [(1, 1), (4, 2)])
def test_every_split_of_every_tile_is_one_work_unit(
    raster: str, cluster: tuple[int, int]
) -> None:
    config = GemmConfig.nvfp4(
        raster=raster, splits=3, cluster_m=cluster[0], cluster_n=cluster[1]
    )
    grid = TileGrid.of(640, 448, 2, config)
    xs, ys, zs = grid.dims
    units = [
        grid.tile((x, y, z)) for z in range(zs) for y in range(ys) for x in range(xs)
    ]
    assert len(set(units)) == len(units) == 3 * grid.output_tiles
    for unit in units:
        assert grid.tile(grid.ctaid(unit.m, unit.n, unit.l, unit.split)) == unit
    indices = {grid.output_tile_index(unit) for unit in units}
    assert indices == set(range(grid.output_tiles))
    in_order = [grid.tile_of_number(i) for i in range(grid.output_tiles * 3)]
    turn = {unit: i for i, unit in enumerate(in_order) if unit.valid}
    later = [unit for unit in turn if unit.split]
    assert later
    assert all(turn[replace(u, split=u.split - 1)] < turn[u] for u in later)


# -- the sums ---------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("splits", [1, 2, 5])
def test_a_slice_reads_the_scales_of_its_own_k_tiles(backend: Any, splits: int) -> None:
    """256 * 1 + 256 * 4; beyond two splits there are empty slices."""
    assert np.all(d_of(TWO_K_TILES, TWO_K_TILES, backend, splits=splits) == 1280)


def test_a_restarted_scale_base_gives_512(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice as if its scales were those of the first k-tile: what must not be."""
    for name in ("sfa_coords", "sfb_coords"):
        coords = getattr(tma_loader, name)
        monkeypatch.setattr(
            tma_loader, name, lambda w, k, p, coords=coords: coords(w, 0, p)
        )
    assert np.all(d_of(TWO_K_TILES, TWO_K_TILES, splits=2) == 512)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("splits", [1, 2])
def test_scales_from_1_to_128_give_349520(backend: Any, splits: int) -> None:
    """16 * (1 + 4 + ... + 4^7): one k-tile, so the second slice is empty."""
    q = ones(*range(0x38, 0x78, 8))
    assert np.all(d_of(q, q, backend, splits=splits) == 349520)


@pytest.mark.parametrize("splits", [2, 3, 4, 5, 7])
def test_whole_numbers_have_the_same_bits_for_every_split(splits: int) -> None:
    a, b = integers(1, 129, 1280), integers(2, 70, 1280)
    one = d_of(a, b)
    exact = a.dequantize(np.float64) @ b.dequantize(np.float64).T
    assert_bits_equal(one, exact.astype(np.float32))
    assert_bits_equal(d_of(a, b, splits=splits), one)


def test_wide_operands_have_other_bits_for_other_splits() -> None:
    """The order is a part of the result; empty slices are not."""
    a, b = wide_pair(3, 100, 60, 800)
    two, four, nine = (d_of(a, b, splits=splits) for splits in (2, 4, 9))
    assert (two.view(np.uint32) != four.view(np.uint32)).any()
    assert_bits_equal(nine, four)


CASES = [
    Case(127, 65, 1056, sms=1, config={"splits": 2}),
    Case(129, 65, 544, sms=3, schedule="late", config={"splits": 3, "bias": True}),
    Case(40, 70, 800, 2, sms=4, schedule="seed", config={"splits": 4, "raster": "n"}),
    Case(
        *(200, 70, 1312),
        sms=2,
        schedule="seed",
        config={
            **{"splits": 3, "d_format": "nvfp4", "c_format": "bf16", "beta": 0.5},
            **{"scheduler": "static", "tile_n": 64, "activation": "relu"},
        },
    ),
    Case(
        *(300, 200, 800),
        sms=4,
        schedule="late",
        config={
            **{
                "splits": 2,
                "tile_m": 256,
                "cta_group": 2,
                "cluster_m": 2,
                "k_group": 2,
            },
            **{"d_format": "f16", "accumulator_stages": 1, "cluster_n": 2},
        },
    ),
    Case(
        *(129, 120, 288),
        sms=8,
        schedule="seed",
        config={"splits": 5, "cluster_m": 2, "cluster_n": 2, "scheduler": "static"},
    ),
    Case(128, 128, 512, sms=1, schedule="late", config={"splits": 2, "d_stages": 1}),
]
"""One SM and several, every schedule, clusters, pairs, C, SFD and empty slices."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_backends_have_the_oracles_bits(case: Case, backend: Any) -> None:
    """Each tile is stored once, by one split, and no access races."""
    problem = Problem.of(case)
    run = problem.run(5, backend=backend, trace=True)
    problem.compare(run)
    assert (run.verdict, run.races) == ("clean", ())
    p = plan(problem.config)
    grid = TileGrid.of(case.m, case.n, case.batches or 1, problem.config)
    stores = sum(n for name, n in run.stats.items() if name.endswith(".store"))
    assert stores == grid.count * p.subtiles


def test_only_some_tiles_have_all_their_splits() -> None:
    a, b = integers(3, 256, 768), integers(4, 256, 768)
    config = GemmConfig.nvfp4(splits=3)
    run = fp4ref.run(a, b, config=config, tiles=[(1, 0)])
    assert run.written.sum() == 128 * 128
    assert_bits_equal(run.d[128:, :128], d_of(a, b)[128:, :128])


# -- the workspace -----------------------------------------------------------------


def problem_of(**options: Any) -> GemmProblem:
    config = GemmConfig.nvfp4(splits=options.pop("splits", 2))
    q = TWO_K_TILES
    return GemmProblem(Machine(1), q, q, None, None, config, **options)


NBYTES = 128 * 128 * 4 + 4
"""The sums of one output tile in float32, and its lock."""


def test_the_workspace_has_a_place_and_a_lock_for_each_output_tile() -> None:
    planned = plan(GemmConfig.nvfp4(splits=2))
    assert planned.workspace_nbytes(1) == NBYTES
    assert planned.workspace_nbytes(6) == 6 * NBYTES
    assert plan(GemmConfig()).workspace_nbytes(6) == 0
    assert problem_of(splits=1).params.workspace == 0


@pytest.mark.parametrize(
    ("splits", "workspace", "said"),
    [
        (2, np.zeros(NBYTES - 1, np.uint8), rf"give uint8 \({NBYTES},\)"),
        (2, np.zeros(NBYTES // 4, np.float32), r"workspace is float32"),
        (2, b"", r"workspace is bytes"),
        (1, np.zeros(NBYTES, np.uint8), r"splits=1 needs none"),
    ],
)
def test_a_workspace_of_another_form_is_refused(
    splits: int, workspace: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        problem_of(splits=splits, workspace=workspace)


def launches(problem: GemmProblem) -> list[Any]:
    """The backends that a test can launch."""
    found: list[Any] = [problem.launch]
    return [*found, lambda: launch_ptx(problem)] if nvrtc_version() else found


def test_a_workspace_of_the_user_serves() -> None:
    """The sums may hold anything before."""
    workspace = np.full(NBYTES, 0xFF, np.uint8)
    workspace[-4:] = 0
    problem = problem_of(workspace=workspace)
    problem.launch()
    assert np.all(problem.output().d == 1280)


def test_locks_that_are_not_zero_are_refused_before_the_launch() -> None:
    workspace = np.zeros(NBYTES, np.uint8)
    workspace[-4] = 1
    problem = problem_of(workspace=workspace)
    for launch in launches(problem):
        with pytest.raises(InputError, match="its locks are not zero"):
            launch()
    assert not problem.output().written.any()


def test_a_second_launch_needs_its_locks_zeroed() -> None:
    problem = problem_of()
    problem.launch()
    with pytest.raises(InputError, match="zero them before each launch"):
        problem.launch()
    problem.zero_locks()
    problem.launch()
    assert np.all(problem.output().d == 1280)


def changed(params: GemmParams, problem: GemmProblem) -> list[tuple[int, str]]:
    """Addresses that are no workspace, and what is said of them."""
    return [
        (0, "no global memory is there"),
        (params.workspace + 16, f"workspace of {NBYTES - 16:,} bytes"),
        (problem.machine.gmem.allocate("odd", NBYTES + 8) + 4, "align it to 16"),
    ]


@pytest.mark.parametrize("which", range(3))
def test_another_address_is_refused_before_the_launch(which: int) -> None:
    problem = problem_of()
    address, said = changed(problem.params, problem)[which]
    problem.params = replace(problem.params, workspace=address)
    for launch in launches(problem):
        with pytest.raises(InputError, match=said):
            launch()


@pytest.mark.parametrize(
    ("splits", "said"),
    [(0, "at least 1"), (1.5, "at least 1"), (70_000, "at most 65535"), (True, "1")],
)
def test_splits_is_a_count_that_a_grid_can_have(splits: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(GemmConfig.nvfp4(splits=splits))


def test_batches_and_splits_share_the_grids_z() -> None:
    q = BlockScaled(np.zeros((2, 1, 32), np.uint8), np.zeros((2, 1, 2), np.uint8))
    with pytest.raises(InputError, match="2 batches of splits=65535"):
        fp4ref.run(q, q, config=GemmConfig.nvfp4(splits=65_535))
