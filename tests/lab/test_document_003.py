"""Document 003's kernel: the oracle's bits in every variant, its counts, its memory."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from narrow_operands import narrow
from raw_bits import assert_bits_equal, raw

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError, InputError
from fp4ref.evidence import oracle
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware import smem
from fp4ref.hardware.shared_memory import BASE
from fp4ref.lab import compiled_003
from fp4ref.lab.banks import access
from fp4ref.lab.document_003 import TABLE, VARIANTS, config, variant, work
from fp4ref.lab.staging import STAGINGS, Fit

POSITIONS = 7
"""Rows of the embedding's table: they divide no tile."""
NAMES = sorted(VARIANTS)
SCHEDULES: tuple[Any, ...] = ("late", 5)
BACKENDS = ("emulator", "ptx")
COVER = [
    (name, backend, SCHEDULES[(number + other) % 2])
    for number, name in enumerate(NAMES)
    for other, backend in enumerate(BACKENDS)
]
"""Every pair of a variant, a backend and a schedule: who is late in one is seeded in
the other. Eager runs are those of each day."""
needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


@cache
def operands(m: int, n: int, k: int) -> tuple[Any, Any, dict[str, Any]]:
    """Codes over the whole range of E4M3, NaN too, and a table over that of BF16."""
    a, b = narrow(1, (m, k), "e4m3"), narrow(2, (n, k), "e4m3")
    return a, b, {TABLE: narrow(3, (POSITIONS, n), "bf16")}


def run(asked: GemmConfig, shape: tuple[int, int, int], **options: Any) -> fp4ref.Run:
    a, b, arguments = operands(*shape)
    pairs = asked.cluster.cta_group
    return fp4ref.run(
        a, b, config=asked, arguments=arguments, **{"sms": pairs} | options
    )


@cache
def wanted(asked: GemmConfig, shape: tuple[int, int, int]) -> Any:
    a, b, arguments = operands(*shape)
    return oracle.expected(a, b, config=asked, arguments=arguments).d


def check(name: str, shape: tuple[int, int, int], **options: Any) -> fp4ref.Run:
    """Every bit of D, and nothing left out."""
    asked = variant(name)
    found = run(asked, shape, **options)
    assert found.written.all()
    assert_bits_equal(found.d, wanted(asked, shape))
    return found


# -- what is computed ----------------------------------------------------------------

SHORT = (256, 256, 256)
"""One tile of a pair, two k-tiles: for tests of each day."""
LONG = (768, 512, 384)
"""Three tiles for each of two pairs: each ring goes round more than once."""


def test_the_kernel_computes_the_oracles_bits_without_a_race() -> None:
    found = check("baseline", SHORT, trace=True)
    assert found.verdict == "clean"
    assert found.races == ()


@needs_nvrtc
@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_variant_of_today_has_the_oracles_bits(name: str) -> None:
    check(name, SHORT, trace=False)
    check(name, SHORT, backend="ptx", trace=False)


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize(("name", "backend", "schedule"), COVER)
def test_every_variant_has_the_oracles_bits(
    name: str, backend: str, schedule: Any
) -> None:
    """With every access watched under a seed."""
    traced = schedule != "late"
    found = check(name, LONG, backend=backend, schedule=schedule, trace=traced, sms=4)
    assert found.races == ()
    assert found.verdict == ("clean" if traced else "incomplete")


def test_the_two_orders_of_rounding_differ() -> None:
    """In BF16 the accumulator is rounded before the sum, in float32 behind it."""
    of_bf16 = wanted(variant("baseline"), SHORT)
    of_f32 = wanted(variant("F22, add in float32"), SHORT)
    assert (raw(of_bf16) != raw(of_f32)).mean() > 0.05
    accumulators, table = np.float32(1 + 2**-8), np.float32(2**-8)
    tie = fp4ref.numerics.bf16x2.add_bf16x2(accumulators, table)
    assert float(tie) == 1.0  # 1 + 2^-8 is a tie, which goes to 1, and so does the sum
    assert accumulators + table == 1 + 2**-7


@pytest.mark.parametrize(
    "staging",
    [
        {"staging": "padded"},
        {"staging": "bulk"},
        {"staging": "swizzled"},
        {"staging": "none"},
        {"staging": "padded", "epilogue_warps": 6, "tile_n": 256},
    ],
    ids=str,
)
def test_ragged_edges_are_those_of_the_other_epilogue(staging: dict[str, Any]) -> None:
    """Rows that fill no warp, and a row of D that ends inside 16 bytes."""
    shape = (161, 203, 128)
    fields = {"operand_format": "e4m3", "d_format": "bf16", "tile_n": 128}
    fields |= {"fusion": variant("baseline").epilogue.fusion}
    asked = GemmConfig.nvfp4(**fields | staging)
    found = run(asked, shape, trace=False)
    assert found.written.all()
    assert_bits_equal(found.d, wanted(GemmConfig.nvfp4(**fields), shape))


# -- what is counted -----------------------------------------------------------------


def test_the_plan_counts_the_documents_tiles_and_stages() -> None:
    """10,878 pairs of tiles with six stages each; the laboratory counts as many."""
    planned, product = plan(config()), work()
    grid = TileGrid.of(product.m, product.n, 1, planned.config)
    along_m, along_n = grid.clusters
    stages = -(-product.k // planned.tile_k)
    assert along_m * along_n == product.tiles == 10_878
    assert along_m * along_n * stages == product.stages == 65_268
    assert (stages * planned.k_blocks, planned.kind) == (24, "f8f6f4")
    assert planned.tile_k == 128


def test_a_tile_has_24_mmas_six_stage_commits_and_one_of_the_accumulator() -> None:
    shape = 512, 256, 768
    found = run(variant("baseline"), shape, trace=True)
    events = [e for e in found.trace if e.kind in ("issue", "sync")]
    commits = [e for e in events if e.operation.startswith("tcgen05.commit")]
    mmas = [e for e in events if e.operation.startswith("tcgen05.mma")]
    tiles = 2
    assert len(mmas) == 24 * tiles
    first = BASE + plan(variant("baseline")).smem.mainloop_empty
    stages = range(first, first + 4 * 8)
    of = Counter(e.operands["mbar"] in stages for e in commits)
    assert of == {True: 6 * tiles, False: tiles}
    assert {e.operands["cta_mask"] for e in commits} == {0x3}
    assert {e.agent for e in mmas + commits} == {"warp1"}


def test_the_roles_are_the_documents() -> None:
    roles = plan(config()).warps
    assert [(each.role, each.first, each.count) for each in roles] == [
        (WarpRole.MAINLOOP_LOAD, 0, 1),
        (WarpRole.MMA, 1, 1),
        (WarpRole.EPILOGUE, 2, 4),
    ]
    assert plan(config()).threads == 192
    assert plan(config()).ring("clc").used is False


# -- shared memory -------------------------------------------------------------------


def test_the_staging_is_as_large_as_the_laboratory_says() -> None:
    sizes = {each.name: each.nbytes for each in STAGINGS}
    padded, swizzled = (plan(config(staging=s)) for s in ("padded", "swizzled"))
    assert padded.epilogue_nbytes == sizes["272-byte rows"] == 69_632
    assert swizzled.epilogue_nbytes == sizes["two swizzled panels of 128"] == 65_536
    assert (padded.smem.end, swizzled.smem.end) == (201_728, 197_632)
    assert padded.staging_half_nbytes * padded.staging_halves == 4 * 17_408


def test_five_stages_fit_beside_swizzled_rows_alone() -> None:
    with pytest.raises(ConfigError, match=r"At most 4 stages fit\. Use stages=4"):
        plan(config(stages=5))
    assert Fit(5, plan(config()).epilogue_nbytes).nbytes == 233_472
    five = plan(variant("F24, swizzled, 5 stages"))
    data = five.mainloop_stages * five.k_tile_nbytes + five.epilogue_nbytes
    assert data == Fit(5, five.epilogue_nbytes).nbytes == 229_376
    table = compiled_003.table()
    assert "At most 4 stages fit" in table.note
    assert [row["refused"] is None for row in table.rows].count(False) == 2


@pytest.mark.parametrize(
    ("name", "staging"),
    [
        ("baseline", "272-byte rows"),
        ("F24, swizzled", "two swizzled panels of 128"),
    ],
)
def test_the_banks_are_those_that_the_laboratory_counts(
    name: str, staging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each store of a warp, by the places at which the kernel writes."""
    right, found = smem.st_each, list[int]()

    def st_each(warp: Any, addresses: Any, data: Any) -> None:
        found.append(access([int(a) - BASE for a in addresses], 16).passes)
        right(warp, addresses, data)

    monkeypatch.setattr(smem, "st_each", st_each)
    one = {"cta_group": 1, "tile_m": 128, "cluster_m": 1, "stages": 2}
    asked = variant(name).replace(**one)
    run(asked, (128, 256, 128), trace=False)
    counted = next(each for each in STAGINGS if each.name == staging)
    of_half = [each.passes for each in counted.writes]
    assert Counter(found) == Counter(4 * 2 * of_half)


# -- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epilogue_warps": 2}, "2 of them leave 64 rows of the 128 of a CTA unread"),
        ({"epilogue_warps": 3}, "3 of them leave 32 rows"),
        ({"epilogue_warps": 5}, "this kernel takes one of 4, 6, 8"),
        ({"epilogue_warps": 6, "tile_n": 128}, "there are none. Use epilogue_warps=4"),
        ({"scheduler": "clc"}, "no warp asks for tiles. Use scheduler=static"),
        ({"tile_n": 192}, "a half has 128 columns. Use tile_n=256"),
        ({"tile_m": 128}, "a warp has half of N of its rows. Use tile_m=256"),
        ({"d_format": "f32"}, "with d_format='f32': a warp stages rows of 128"),
        ({"subtile_n": 64}, "Use subtile_n=32, or staging=tiles"),
        ({"staging": "tiles"}, "unroll=2 with staging=tiles"),
        ({"staging": "bulk", "release": "stored"}, "the warp only issues copies"),
        ({"unroll": 3}, "unroll=3: this kernel takes one of 1, 2, 4; the nearest is"),
        ({"staging": "paded"}, "the nearest is padded"),
        (
            {"store": "transposed", "staging": "tiles", "unroll": 1}
            | {"element_wise": "smem"},
            "its rows are those of D, which a thread has none of",
        ),
    ],
    ids=str,
)
def test_what_no_plan_allows_is_said(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        plan(config(**changes))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "nothing was passed"),
        (np.zeros((3, 256), np.float32), "got float32 (3, 256)"),
        (np.zeros((3, 255), np.uint16), "got bfloat16 (3, 255)"),
        (np.zeros((0, 256), np.uint16), "with a row or more"),
    ],
)
def test_a_table_of_another_shape_is_refused(table: Any, said: str) -> None:
    a, b, _ = operands(*SHORT)
    given = {} if table is None else {TABLE: table}
    with pytest.raises(InputError) as error:
        fp4ref.run(a, b, config=config(), arguments=given, sms=2)
    assert said in str(error.value)


# -- what the compiler makes ---------------------------------------------------------


def test_the_table_has_every_variant_without_a_spill() -> None:
    _, figures = compiled_003.recorded()
    assert list(figures) == list(VARIANTS)
    assert all(each.spill_instructions == 0 for each in figures.values())
    assert max(each.registers for each in figures.values()) <= 128
    assert max(each.per_k_tile for each in figures.values()) <= 40
    of_bf16, of_f32 = figures["baseline"], figures["F22, add in float32"]
    assert of_bf16.instructions < of_f32.instructions
    by_unroll = [figures[n] for n in ("F22, unroll 1", "baseline", "F22, unroll 4")]
    counts = [each.instructions for each in by_unroll]
    assert counts == sorted(counts)


@needs_nvrtc
@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_compiler_makes_what_the_table_says(name: str) -> None:
    """Run ``python -m fp4ref.lab.compiled_003`` after a change of these kernels."""
    nvrtc, figures = compiled_003.recorded()
    if nvrtc_version() != nvrtc:
        pytest.skip(f"the table is of NVRTC {nvrtc}")
    assert compiled_003.compiled(name) == figures[name]
