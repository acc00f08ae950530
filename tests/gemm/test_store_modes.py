"""D lies in C's stages, stores are delayed: same bits, and what cannot work."""

from __future__ import annotations

from typing import Any

import pytest
from family import FamilyCase
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import ConfigError, DeadlockError
from fp4ref.gemm.plan import rules

FORMULAS: list[dict[str, Any]] = [
    {"d_format": "bf16", "c_format": "f32", "beta": 0.5},
    {"d_format": "f32", "c_format": "bf16", "beta": 0.5, "bias": True},
    {"d_format": "nvfp4", "c_format": "f32", "beta": -1.75, "activation": "relu"},
    {"d_format": "f16", "c_format": "f16", "beta": 1.0, "element_wise": "smem"},
    {"d_format": "nvfp4", "c_format": "bf16", "beta": 0.0},
]
"""What D depends on: rows of C longer than D's, shorter, and as long."""
STAGES = ((1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3), (5, 4))
TILES: list[dict[str, Any]] = [
    {},
    {"tile_n": 64, "scheduler": "static"},
    {"tile_n": 256, "raster": "n"},
    {"cta_group": 2, "tile_m": 256, "cluster_m": 2},
]
MODES = [
    {"reuse_smem_c": reuse, "delay_tma_store": delay, "c_stages": c, "d_stages": d}
    for reuse in (False, True)
    for delay in (False, True)
    for c, d in STAGES
    if not (reuse and delay and c <= d)
]
DEADLOCK: dict[str, Any] = {
    **{"c_format": "f32", "beta": 0.5, "reuse_smem_c": True, "delay_tma_store": True},
    **{"c_stages": 2, "d_stages": 2, "stages": 2},
}


def run(config: dict[str, Any], seed: int, schedule: str, sms: int = 2) -> fp4ref.Run:
    """Two tiles for a CTA, so that every ring wraps, with ragged edges."""
    case = FamilyCase(200, 300, 96, sms=sms, schedule=schedule, config=config)
    parts = dict(zip(("a", "b", "c", "bias"), case.operands(seed), strict=True))
    found = fp4ref.run(
        **parts,
        config=GemmConfig.nvfp4(**config),
        **case.settings(seed) | {"trace": False},
    )
    assert found.written.all()
    return found


def same_bits(formula: dict[str, Any], seed: int, modes: list[dict[str, Any]]) -> None:
    """D and SFD of `formula` in every mode are those of separate, prompt stores."""
    wanted = run({"stages": 2} | formula, seed, "eager")
    for i, mode in enumerate(modes):
        tile = TILES[(seed + i) % len(TILES)]
        schedule = ("late", "seed", "eager")[(seed + i) % 3]
        found = run({"stages": 2} | formula | mode | tile, seed, schedule)
        assert_bits_equal(wanted.d, found.d)
        if wanted.sfd is not None and found.sfd is not None:
            assert_bits_equal(wanted.sfd, found.sfd)


def test_d_is_the_same_in_every_mode(rotating_seed: int) -> None:
    formula = FORMULAS[rotating_seed % len(FORMULAS)]
    first = 4 * rotating_seed % len(MODES)
    same_bits(formula, rotating_seed, (MODES + MODES)[first : first + 4])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("formula", FORMULAS, ids=range(len(FORMULAS)))
def test_d_is_the_same_in_all_modes(formula: dict[str, Any], seed: int) -> None:
    same_bits(formula, seed, MODES)


def test_another_formula_has_other_bits() -> None:
    """The comparison sees what D does depend on."""
    wanted, other = (run(FORMULAS[0] | {"beta": b}, 1, "eager") for b in (0.5, 1.0))
    with pytest.raises(AssertionError):
        assert_bits_equal(wanted.d, other.d)


def test_a_delayed_store_must_not_keep_the_stage_it_waits_for() -> None:
    with pytest.raises(ConfigError, match="This TMA epilogue configuration will dead"):
        plan(GemmConfig.nvfp4(**DEADLOCK))
    assert plan(GemmConfig.nvfp4(**DEADLOCK | {"c_stages": 3})).store_stages == 3
    with pytest.raises(ConfigError, match="Smem reuse requirements not met"):
        plan(GemmConfig.nvfp4(reuse_smem_c=True))
    with pytest.raises(ConfigError, match="Use d_stages=1"):
        plan(GemmConfig.nvfp4(reuse_smem_c=True, c_format="f32", c_stages=1))


@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_forced_it_deadlocks_on_cs_empty_barrier(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the report names who would have released it."""
    if backend == "ptx" and nvrtc_version() is None:
        pytest.skip("needs NVRTC")
    name = "a delayed store does not keep what it waits for"
    left = [each for each in rules.RULES if each.name != name]
    assert len(left) == len(rules.RULES) - 1
    monkeypatch.setattr(rules, "RULES", left)
    case = FamilyCase(128, 128, 96, sms=1, schedule="eager", config=DEADLOCK)
    parts = dict(zip(("a", "b", "c", "bias"), case.operands(1), strict=True))
    with pytest.raises(DeadlockError) as caught:
        fp4ref.run(**parts, config=GemmConfig.nvfp4(**DEADLOCK), backend=backend)
    report = str(caught.value)
    root = report[report.index("root:") :]
    assert "(c.empty[0])" in root.splitlines()[0]
    assert "signalled by warp4, warp5, warp6, warp7" in root


@pytest.mark.parametrize(("c_format", "nbytes"), [("f32", 18_432), ("bf16", 9_216)])
def test_the_budget_is_cutlasss_shared_storage(c_format: str, nbytes: int) -> None:
    """A stage as long as the longer of the two, an empty struct, and the barriers."""
    asked = {"c_format": c_format, "d_format": "nvfp4", "c_stages": 1, "d_stages": 1}
    p = plan(GemmConfig.nvfp4(reuse_smem_c=True, **asked))
    assert p.smem.d_subtile == p.smem.c_subtile
    assert p.epilogue_nbytes == nbytes
