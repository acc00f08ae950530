"""What a plan says of itself: reasons, all broken rules, and its tables."""

from __future__ import annotations

import ast
import importlib
import inspect
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fp4ref import GemmConfig, ScaleFormat, plan
from fp4ref.cuda_kernel.header import plan_header
from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.errors import ConfigError
from fp4ref.gemm import plan as plan_room
from fp4ref.gemm import roles
from fp4ref.gemm.config import FIELDS
from fp4ref.gemm.cta_in_cluster import CtaInCluster
from fp4ref.gemm.plan import Plan, rings, values
from fp4ref.gemm.plan.rings import Arrivals, RingSpec
from fp4ref.gemm.plan.rules import RULES, broken
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.gemm.shared_storage import SharedStorage, used_rings
from fp4ref.gemm.why import Deduced

CONFIGS = [
    GemmConfig(),
    GemmConfig.example_72b(),
    GemmConfig.nvfp4(tile_n=64, d_format="bf16", c_format="f16", beta=0.5, stages=3),
    GemmConfig.nvfp4(scheduler="static", scale_buffers=1),
]


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_every_value_has_a_sentence_and_a_source(config: GemmConfig) -> None:
    p = plan(config)
    own = {name for name in dir(Plan) if not name.startswith("_")}
    said = own - {"why", "idesc", "k_tiles", "ring", "buffer", "to_dict", "config"}
    said -= {"workspace_nbytes", "fields", "first_warp"}
    assert set(p.why) == said
    for name, why in p.why.items():
        assert why.value == getattr(p, name)
        assert len(why.sentence) >= 8, name
        assert "{" not in why.sentence, name
        assert why.source.startswith(("CUTLASS", "PTX", "document 003")), name


def test_a_value_without_a_reason_would_be_seen(monkeypatch: Any) -> None:
    monkeypatch.setattr(Plan, "no_reason", property(lambda self: 1), raising=False)
    with pytest.raises(AssertionError):
        test_every_value_has_a_sentence_and_a_source(GemmConfig())


def test_the_reason_has_the_numbers() -> None:
    why = plan(GemmConfig()).why["most_stages"]
    assert why.sentence == ("232,448 - 160 - 32,768 of epilogue; 36,992 a stage: 5")
    other = plan(GemmConfig.nvfp4(tile_n=64)).why["most_stages"].sentence
    assert other == "232,448 - 160 - 32,768 of epilogue; 28,800 a stage: 6"


def test_all_broken_rules_are_reported_at_once() -> None:
    config = GemmConfig.nvfp4(
        tile_n=96, bias="yes", d_stages=0, beta=1.0, norm_constant=-1, clc_stages=2.5
    )
    with pytest.raises(ConfigError) as caught:
        plan(config)
    said = str(caught.value)
    for words in (
        *("tile_n=96", "bias='yes'", "d_stages=0", "clc_stages=2.5"),
        *("norm_constant=-1", "beta=1.0 without C"),
    ):
        assert words in said


def test_memory_and_columns_are_refused_together() -> None:
    names = [
        rule.name
        for rule, _ in broken(GemmConfig.nvfp4(accumulator_stages=4, d_stages=30))
    ]
    assert names == ["accumulators and scales fit in TMEM", "the epilogue leaves room"]


def test_every_rule_has_a_name_a_source_and_fields() -> None:
    known = set(FIELDS) | {each.name for each in RULES}
    assert len({each.name for each in RULES}) == len(RULES)
    for each in RULES:
        assert each.name
        assert each.source
        assert set(each.reads) <= known


ODD: list[Any] = [
    *(None, True, 0, 1, 2, 3, 4, 64, 128, 256, -1, 2**40, 10**5000, 1.5, -0.0, 1e300),
    *(float("nan"), float("inf"), 1e-60, "", "f32", "bf16", "clc", "n", b"x", [], {}),
    *([1], (2,), object(), ScaleFormat.UE8M0, ScaleFormat.UE4M3, "nvfp4", 1j, {1: 2}),
    *(np.arange(3), np.float32(2), np.int64(2), np.bool_(True)),
]


def random_config(rng: random.Random) -> GemmConfig:
    """Some fields of a configuration with anything in them."""
    names = list(FIELDS)
    chosen = rng.sample(names, rng.choice((1, 1, 1, 2, 5)))
    return GemmConfig.nvfp4(**{name: rng.choice(ODD) for name in chosen})


def test_five_hundred_random_configurations_give_a_plan_or_an_error(
    rotating_seed: int,
) -> None:
    rng = random.Random(rotating_seed)
    planned = 0
    for _ in range(500):
        config = random_config(rng)
        if said := [said for _, said in broken(config)]:
            assert 10 < len("".join(said)) < 3000
            with pytest.raises(ConfigError):
                plan(config)
            continue
        planned += 1
        p = plan(config)
        assert p.smem.end <= 232_448
        assert p.tmem.end <= 512
        assert plan_header(config)
    assert planned > 5


def test_one_edit_adds_a_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the table is in the memory map, the initialisation and the header."""
    ring = RingSpec(
        "workspace",
        3,
        full=Arrivals(5, "somebody"),
        empty=Arrivals(7, "somebody else"),
        producer=WarpRole.MMA,
        consumers=(WarpRole.EPILOGUE,),
    )
    table = rings.rings
    before = plan(GemmConfig()).smem
    assert "workspace.full[0]" not in dict(initialised(plan(GemmConfig())))
    monkeypatch.setattr(values, "rings", lambda *a, **k: (*table(*a, **k), ring))
    p = Plan(GemmConfig.nvfp4(clc_stages=2))
    monkeypatch.setattr("fp4ref.cuda_kernel.header.plan", lambda config: p)
    assert set(p.smem) - set(before) == {"workspace_full", "workspace_empty"}
    assert p.smem["workspace_empty"] == p.smem["workspace_full"] + 8 * 3
    header = plan_header(p.config)
    assert f"WORKSPACE_FULL = {p.smem['workspace_full']};" in header
    assert "Ring<3> workspace() const" in header
    assert "workspace().init(5, 7);" in header
    counts = dict(initialised(p))
    assert (counts["workspace.full[0]"], counts["workspace.empty[2]"]) == (5, 7)


def initialised(p: Plan) -> list[tuple[str, int]]:
    """Labels and counts that warp 0 gives the barriers of `p`."""
    cta = CtaInCluster(0, 0, *p.cluster[:2], p.cta_group)
    storage = SharedStorage(p, None, 0, cta)  # type: ignore[arg-type]
    found = []
    for ring in used_rings(storage):
        counts = [ring.full_count] * ring.stages + [ring.empty_count] * len(ring.empty)
        found += list(zip((name for _, name in ring.labels()), counts, strict=True))
    return found


def test_the_deduced_values_are_computed_once() -> None:
    p = plan(GemmConfig())
    assert p.rings is p.rings
    assert isinstance(vars(Plan)["rings"], Deduced)


OF_ALL_ROLES = {
    *("cleanup", "pipeline"),
    *("tiles.work_iterator", "tiles.scheduler_work_iterator"),
}
ROLES = sorted(
    {path.stem for path in Path(plan_room.__file__).parents[1].glob("*_warp.py")}
    | OF_ALL_ROLES
)
TESTS_OF_A_CHOICE = {"d_format", "c_format", "loads_c", "used", "works"}


@pytest.mark.parametrize("name", ROLES)
def test_a_role_reads_no_configuration_and_makes_no_choice(name: str) -> None:
    text = inspect.getsource(importlib.import_module(f"fp4ref.gemm.{name}"))
    assert not words_of(text) & {"config", "GemmConfig", "Plan", *TESTS_OF_A_CHOICE}
    kernel = kernel_root() / f"kernel/gemm/{name.replace('.', '/')}.cuh"
    assert "if constexpr" not in kernel.read_text()


def test_every_role_is_looked_at() -> None:
    bodies = roles.ROLES.values()
    chosen = {"idle_warp", "staged_epilogue_warp", "prefetching_producer_warp"}
    of_one = {each.__module__.rpartition(".")[2] for each in bodies}
    assert of_one | OF_ALL_ROLES | chosen == set(ROLES)


def words_of(text: str) -> set[str]:
    """Names and attributes of a module."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_reading_the_configuration_is_seen() -> None:
    assert "config" in words_of("if storage.plan.config.bias: pass")
