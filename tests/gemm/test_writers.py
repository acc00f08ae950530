"""Writers, swapped operands and cp.async: every bit, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from family import FamilyCase
from oracle_problem import Problem

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError, HardwareFault, InputError
from fp4ref.evidence import oracle
from fp4ref.gemm.load import cp_async_loader
from fp4ref.gemm.multiply import after_cp_async

SMEM = {"element_wise": "smem"}
SWAPPED: dict[str, Any] = {"swap_ab": True} | SMEM
ACROSS: dict[str, Any] = {"store": "transposed"} | SMEM

CASES = [
    FamilyCase(5, 200, 96, schedule="late", config=SMEM | {"d_format": "f16"}),
    FamilyCase(129, 65, 96, schedule="seed", config=SWAPPED | {"bias": True}),
    FamilyCase(
        65,
        40,
        288,
        2,
        schedule="late",
        config=SWAPPED | {"d_format": "nvfp4", "c_format": "bf16", "beta": 0.5},
    ),
    FamilyCase(
        33,
        150,
        96,
        schedule="seed",
        config=ACROSS | {"d_format": "bf16", "bias": True, "tile_n": 64},
    ),
    FamilyCase(
        40,
        129,
        96,
        config={"swap_ab": True, "store": "transposed", "bias": True}
        | {"c_format": "f32", "beta": -1.5},
    ),
    FamilyCase(
        *(40, 70, 96),
        schedule="seed",
        config={"tmem_load": "16x256b", "d_format": "bf16", "bias": True},
    ),
    FamilyCase(5, 40, 80, schedule="seed"),
    FamilyCase(
        20,
        12,
        272,
        2,
        schedule="late",
        config=SWAPPED | {"scheduler": "static", "tile_n": 64},
    ),
    FamilyCase(129, 33, 64, config={"loader": "cp_async", "operand_format": "mxfp4"}),
    FamilyCase(
        *(129, 65, 96, 2),
        schedule="seed",
        config=ACROSS | {"d_format": "nvfp4", "c_format": "f32", "beta": 0.5},
    ),
    FamilyCase(
        *(33, 150, 96),
        schedule="late",
        config={"swap_ab": True, "store": "transposed", "bias": True}
        | {"d_format": "nvfp4", "subtile_n": 64},
    ),
]
BACKENDS = [
    "emulator",
    pytest.param(
        "ptx",
        marks=pytest.mark.skipif(
            nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
        ),
    ),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_bit_is_the_oracles(case: FamilyCase, backend: str) -> None:
    problem = Problem.of(case)
    run = problem.run(3, backend=backend, trace=True)
    problem.compare(run)
    assert (run.verdict, run.races) == ("clean", ())


def operands(m: int, n: int, k: int) -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    rng = np.random.default_rng(m + n + k)
    values = (rng.standard_normal((rows, k), np.float32) for rows in (m, n))
    a, b = (fp4ref.quantize(each, global_scale="auto") for each in values)
    return a, b


@pytest.mark.parametrize("m", [1, 129, 300])
def test_a_virtual_peer_stores_nothing(m: int) -> None:
    """Three tiles of M are two pairs: the fourth CTA only loads and multiplies."""
    a, b = operands(m, 40, 64)
    pair = GemmConfig.nvfp4(cta_group=2, tile_m=256, cluster_m=2, tile_n=64)
    run = fp4ref.run(a, b, config=pair, sms=4)
    alone = fp4ref.run(a, b, config=GemmConfig.nvfp4(tile_n=64))
    np.testing.assert_array_equal(run.d, alone.d)
    for name in ("tile", "cp.async.bulk.tensor.3d.store"):
        assert run.stats[name] == alone.stats[name]
    assert run.stats["tile"] == -(-m // 128)


def test_scales_along_m_are_those_of_the_transpose() -> None:
    """16 rows of a column share one, and no shape lets them pass for scales along N."""
    a, b = operands(40, 48, 64)
    across = GemmConfig.nvfp4(d_format="nvfp4", **ACROSS)
    run = fp4ref.run(a, b, config=across, trace=False)
    assert (run.d.shape, run.sfd.shape) == ((40, 48), (3, 48))
    other = fp4ref.run(b, a, config=GemmConfig.nvfp4(d_format="nvfp4"), trace=False)
    np.testing.assert_array_equal(run.d, other.d.T)
    np.testing.assert_array_equal(run.sfd, other.sfd.T)
    with pytest.raises(InputError, match=r"scales of shape \(3, 48\)"):
        fp4ref.BlockScaled(run.d, run.sfd)
    padded = np.pad(run.d.T, [(0, 0), (0, 8)])
    matrix = fp4ref.BlockScaled(padded, run.sfd.T)
    exact = oracle.expected(a, b).d.T
    assert np.abs(matrix.dequantize()[:, :40] - exact).max() < np.abs(exact).max() / 4


def test_swapped_operands_give_a_small_m_the_n_side() -> None:
    """8 x 600 is ten tiles of 64 columns, or five of 128 rows of the transpose."""
    a, b = operands(8, 600, 64)
    plain = fp4ref.run(a, b, config=GemmConfig.nvfp4(tile_n=64), trace=False)
    swapped = GemmConfig.nvfp4(tile_n=64, **SWAPPED)
    run = fp4ref.run(a, b, config=swapped, trace=False)
    np.testing.assert_array_equal(run.d, plain.d)
    assert (plain.stats["tile"], run.stats["tile"]) == (10, 5)


def test_a_launch_chooses_the_loader_that_can_read_its_rows() -> None:
    for k, loader in ((64, "tma"), (80, "cp_async"), (96, "tma"), (16, "cp_async")):
        a, b = operands(3, 5, k)
        run = fp4ref.run(a, b, trace=False)
        assert run.config.mainloop.loader == loader
        assert ("cp.async" in run.stats) == (loader == "cp_async")


def test_only_scales_come_by_tma_for_threads_that_copy() -> None:
    asked = GemmConfig.nvfp4(loader="cp_async", k_group=2)
    ring = plan(asked).ring("mainloop").full
    assert (ring.count, ring.tx_bytes) == (1 + 32, 2 * (2048 + 2048))


@pytest.mark.parametrize("module", [cp_async_loader, after_cp_async])
def test_a_copy_without_its_fence_is_a_race(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fence is between MMAs and the next copies, one between copies and MMAs."""
    a, b = operands(3, 5, 1552)

    class NoFence:
        @staticmethod
        def fence_proxy_async(warp: Any) -> None:
            """Order nothing."""

    monkeypatch.setattr(module, "smem", NoFence)
    with pytest.raises(HardwareFault, match=r"fence\.proxy\.async"):
        fp4ref.run(a, b, config=GemmConfig.nvfp4(tile_n=64, stages=2))


REFUSED = [
    ({"swap_ab": True}, "Use element_wise=smem"),
    ({"store": "transposed"}, "Use element_wise=smem"),
    ({"loader": "cp_async", "cluster_n": 2}, "Use a cluster of one CTA, or loader=tma"),
    ({"store": "rows"}, "store='rows': this kernel takes one of plain, transposed"),
    (SMEM | {"d_stages": 12}, "leaves room for"),
    ({"tmem_load": "16x256b"}, "Use d_format=bf16, or tmem_load=32x32b"),
    (
        {"tmem_load": "16x256b", "d_format": "f16"} | SMEM,
        "Use element_wise=registers, or tmem_load=32x32b",
    ),
]


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_what_is_refused_says_what_would_do(settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(GemmConfig.nvfp4(**settings))


def test_a_cluster_takes_rows_that_tma_can_address() -> None:
    a, b = operands(3, 5, 80)
    with pytest.raises(InputError, match="Pad with code 0 and scale 0 to 96"):
        fp4ref.run(a, b, config=GemmConfig.nvfp4(cluster_n=2))


def test_the_formula_on_shared_memory_costs_a_subtile() -> None:
    plain, there = (plan(GemmConfig.nvfp4(**more)) for more in ({}, SMEM))
    assert there.epilogue_nbytes - plain.epilogue_nbytes == 128 * 32 * 4
    assert (plain.mainloop_stages, there.mainloop_stages) == (5, 4)
